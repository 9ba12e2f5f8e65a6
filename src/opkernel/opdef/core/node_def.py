"""The meaning of a NodeDef under its OpDef: types, arguments, defaults, validity.

Source: TensorFlow core/framework/node_def_util.cc.
"""

import re
from collections.abc import Iterable
from typing import Any

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.opdef import text as summaries
from opkernel.opdef.core.attr_value import attr_to_python
from opkernel.opdef.core.validate import (
    are_attr_values_equal,
    attr_value_has_type,
    validate_attr_value,
    with_context,
)
from opkernel.proto import AttrValue, NodeDef, OpDef
from opkernel.types import DataType

_MIN_INT32, _MAX_INT32 = -(2**31), 2**31 - 1

MAX_LIST_TENSORS = 2**20
"""The longest list of tensors that an argument may stand for; else a small file takes gigabytes."""

_PIECE = r"[A-Za-z0-9.][A-Za-z0-9_./\-]*"
_NAME = re.compile(rf"{_PIECE}(?:>{_PIECE})*")
_DATA_INPUT = re.compile(rf"{_PIECE}(?:>{_PIECE}|:(?:0|[1-9][0-9]*))*")
_CONTROL_INPUT = re.compile(rf"\^{_PIECE}(?:>{_PIECE})*")


def attach_def(error: OpError, node: NodeDef) -> OpError:
    """The same error, naming the node that it is about (AttachDef)."""
    attached = with_context(error, f" [[{summaries.format_node_def_for_error(node)}]]")
    attached.node, attached.op = error.node or node.name, error.op or node.op
    return attached


def _find_attr(node: NodeDef, name: str) -> AttrValue:
    """The value of an attr, or NotFoundError."""
    if name not in node.attr:  # reading a missing key would add it
        error = NotFoundError(f"No attr named '{name}' in NodeDef:")
        raise error if name.startswith("_") else attach_def(error, node)
    return node.attr[name]


def get_node_attr(node: NodeDef, name: str, attr_type: str) -> Any:
    """The value of an attr as a Python object (see `opkernel.opdef.core.attr_value`).

    Raises:
        NotFoundError: the node lacks the attr.
        InvalidArgumentError: the attr is of another type.
    """
    value = _find_attr(node, name)
    attr_value_has_type(value, attr_type)
    return attr_to_python(value, attr_type)


def _types_of_arg(node: NodeDef, arg: OpDef.ArgDef) -> list[DataType]:
    """The types of an input or output, one for each tensor that it stands for."""
    if arg.number_attr:
        types = _repeated_types(node, arg)
    elif arg.type_attr:
        types = [DataType(_find_attr(node, arg.type_attr).type)]
    elif arg.type_list_attr:
        types = [DataType(number) for number in _find_attr(node, arg.type_list_attr).list.type]
    elif arg.type:
        types = [DataType(arg.type)]
    else:
        raise InvalidArgumentError(f"No type fields in {summaries.short_debug_string(arg)}")
    if not arg.is_ref:
        return types
    if any(dtype.is_ref for dtype in types):
        raise InvalidArgumentError(
            f"Requested reference to a reference type: {summaries.short_debug_string(arg)}"
        )
    return [dtype.ref for dtype in types]


def _repeated_types(node: NodeDef, arg: OpDef.ArgDef) -> list[DataType]:
    count = get_node_attr(node, arg.number_attr, "int")
    if count > MAX_LIST_TENSORS or count < _MIN_INT32:
        raise attach_def(InvalidArgumentError(f"Number of outputs is too big: {count}"), node)
    if count < 0:
        raise attach_def(InvalidArgumentError(f"Value for number_attr() {count} < 0"), node)
    if arg.type_attr:
        return [get_node_attr(node, arg.type_attr, "type")] * count
    if not arg.type:
        raise InvalidArgumentError(
            f"Missing type or type_attr field in {summaries.short_debug_string(arg)}"
        )
    return [DataType(arg.type)] * count


def _types_of_args(node: NodeDef, args: Iterable[OpDef.ArgDef]) -> list[DataType]:
    return [dtype for arg in args for dtype in _types_of_arg(node, arg)]


def in_out_types_for_node(node: NodeDef, op_def: OpDef) -> tuple[list[DataType], list[DataType]]:
    """The types of the node's inputs and of its outputs, one for each tensor.

    Raises:
        NotFoundError: the node lacks an attr that a type or a length comes from.
        InvalidArgumentError: such an attr is of another type, or a length is out of range.
    """
    return _types_of_args(node, op_def.input_arg), _types_of_args(node, op_def.output_arg)


def input_types_for_node(node: NodeDef, op_def: OpDef) -> list[DataType]:
    """The types of the node's inputs; raises as `in_out_types_for_node` does."""
    return _types_of_args(node, op_def.input_arg)


def output_types_for_node(node: NodeDef, op_def: OpDef) -> list[DataType]:
    """The types of the node's outputs; raises as `in_out_types_for_node` does."""
    return _types_of_args(node, op_def.output_arg)


def num_outputs(node: NodeDef, op_def: OpDef) -> int:
    """How many tensors the node gives; raises as `in_out_types_for_node` does."""
    return len(output_types_for_node(node, op_def))


def name_ranges_for_node(
    node: NodeDef, op_def: OpDef
) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
    """Which of the node's inputs and outputs each named argument stands for: name -> [start, stop).

    Raises:
        NotFoundError: the node lacks an attr that a length comes from.
        InvalidArgumentError: such an attr is of another type or out of range.
    """
    inputs = _name_ranges(node, op_def.input_arg, op_def)
    return inputs, _name_ranges(node, op_def.output_arg, op_def)


def _name_ranges(
    node: NodeDef, args: Iterable[OpDef.ArgDef], op_def: OpDef
) -> dict[str, tuple[int, int]]:
    ranges = {}
    start = 0
    for arg in args:
        stop = start + _length_of_arg(node, arg, op_def)
        ranges[arg.name] = (start, stop)
        start = stop
    return ranges


def _length_of_arg(node: NodeDef, arg: OpDef.ArgDef, op_def: OpDef) -> int:
    if arg.number_attr:
        count: int = get_node_attr(node, arg.number_attr, "int")
        if not _MIN_INT32 <= count <= _MAX_INT32:
            raise InvalidArgumentError(
                f"Attr {arg.number_attr} has value {count} out of range for an int32"
            )
        return count
    if arg.type_list_attr:
        return len(_find_attr(node, arg.type_list_attr).list.type)
    if arg.type_attr or arg.type:
        return 1
    raise InvalidArgumentError(
        f"Argument '{arg.name}' incorrectly specified in op definition: {summaries.summarize_op_def(op_def)}"
    )


def validate_node_def(node: NodeDef, op_def: OpDef) -> tuple[list[DataType], list[DataType]]:
    """Check that the node is a legal use of the op: name, attrs, number and order of inputs.

    The result is that of `in_out_types_for_node`.

    Attrs that the op does not declare are let pass, as in TensorFlow. The syntax of names is not
    looked at.

    Raises:
        InvalidArgumentError: it is not; the message names the part and shows both summaries.
    """
    if node.op != op_def.name:
        raise InvalidArgumentError(
            f"NodeDef op '{node.op}' does not match {summaries.summarize_op_def(op_def)}; "
            f"NodeDef: {summaries.format_node_def_for_error(node)}"
        )
    num_inputs = count_data_inputs(node)
    _validate_attrs(node, op_def)
    types = in_out_types_for_node(node, op_def)
    if num_inputs != len(types[0]):
        names = ", ".join([dtype.string for dtype in types[0]])
        raise InvalidArgumentError(
            f"NodeDef expected inputs '{names}' do not match {num_inputs} inputs specified; "
            f"{_op_and_node(node, op_def)}"
        )
    return types


def _op_and_node(node: NodeDef, op_def: OpDef) -> str:
    return f"{summaries.summarize_op_def(op_def)}; NodeDef: {summaries.format_node_def_for_error(node)}"


def count_data_inputs(node: NodeDef) -> int:
    """How many inputs of a node are tensors.

    Raises:
        InvalidArgumentError: a control input stands before one of them, or names an output.
    """
    count = 0
    has_control = False
    for name in node.input:
        if name.startswith("^"):
            has_control = True
            if ":" in name:
                raise InvalidArgumentError(
                    f"Control input '{name}' must not have ':' in NodeDef: "
                    f"{summaries.format_node_def_for_error(node)}"
                )
        elif has_control:
            raise InvalidArgumentError(
                f"Non-control input '{name}' after control input in NodeDef: "
                f"{summaries.format_node_def_for_error(node)}"
            )
        else:
            count += 1
    return count


def _validate_attrs(node: NodeDef, op_def: OpDef) -> None:
    """Check every attr that the op declares; a placeholder for a function's attr is let pass."""
    seen: set[str] = set()
    for attr in op_def.attr:
        if attr.name in seen:
            raise InvalidArgumentError(
                f"OpDef has duplicate attr name '{attr.name}': {summaries.summarize_op_def(op_def)}"
            )
        seen.add(attr.name)
    errors = [error for attr in op_def.attr if (error := _attr_error(node, attr))]
    if errors:
        # All of them, for TensorFlow names whichever its hash map gives first.
        joined = type(errors[0])("\n\t".join(error.message for error in errors))
        context = f"; NodeDef: {summaries.format_node_def_for_error(node)}; {summaries.summarize_op_def(op_def)}"
        raise with_context(joined, context)
    missing = [attr.name for attr in op_def.attr if attr.name not in node.attr]
    if missing:
        names = "', '".join(missing)
        raise InvalidArgumentError(
            f"NodeDef missing attr{'s' if len(missing) > 1 else ''} '{names}' from "
            f"{_op_and_node(node, op_def)}"
        )


def _attr_error(node: NodeDef, attr: OpDef.AttrDef) -> OpError | None:
    """Why the node's value of an attr is not allowed; a missing or placeholder value is."""
    if attr.name not in node.attr or attr.name.startswith("_"):
        return None
    value = node.attr[attr.name]
    if value.placeholder:
        return None
    try:
        validate_attr_value(value, attr)
    except OpError as error:
        return error
    return None


def validate_external_node_def_syntax(node: NodeDef) -> None:
    """Check how the node's name and its inputs are spelled, and that control inputs come last.

    Raises:
        InvalidArgumentError: a name breaks the grammar, or a data input follows a control input.
    """
    if not _NAME.fullmatch(node.name):
        raise attach_def(InvalidArgumentError(f"Illegal op name '{node.name}'"), node)
    in_control_inputs = False
    for name in node.input:
        is_control = _CONTROL_INPUT.fullmatch(name) is not None
        if not is_control and not _DATA_INPUT.fullmatch(name):
            raise attach_def(InvalidArgumentError(f"Illegal op input name '{name}'"), node)
        if in_control_inputs and not is_control:
            raise attach_def(
                InvalidArgumentError("All control inputs must follow all data inputs"), node
            )
        in_control_inputs = is_control


def add_defaults_to_node_def(node: NodeDef, op_def: OpDef) -> None:
    """Give the node the defaults of the attrs that it lacks."""
    for attr in op_def.attr:
        if attr.HasField("default_value") and attr.name not in node.attr:
            node.attr[attr.name].CopyFrom(attr.default_value)


def strip_defaults_from_node_def(node: NodeDef, op_def: OpDef) -> None:
    """Take the attrs that have their defaults from the node."""
    for attr in op_def.attr:
        if (
            attr.HasField("default_value")
            and attr.name in node.attr
            and are_attr_values_equal(node.attr[attr.name], attr.default_value)
        ):
            del node.attr[attr.name]
