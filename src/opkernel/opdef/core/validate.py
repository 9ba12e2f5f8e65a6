"""Whether an OpDef makes sense: names, types, minima, defaults, and the references of args.

Source: TensorFlow core/framework/op_def_util.cc (ValidateOpDef).
"""

import re

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.opdef import text as summaries
from opkernel.opdef.core.attr_value_check import (
    attr_value_has_type,
    validate_attr_value,
    with_context,
)
from opkernel.opdef.core.declarations import FIELD_OF_KIND, find_attr, find_dtype
from opkernel.opdef.text.attr_value_text import dtype_text
from opkernel.proto import OpDef
from opkernel.types import REF_OFFSET, DataType

_OP_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*(?:>[A-Z][A-Za-z0-9_]*)*")
_LIST_KINDS = frozenset(f"list({kind})" for kind in FIELD_OF_KIND)


class _Invalid(Exception):
    """Breaks a rule; the text names the part and the rule."""


def validate_op_def(op_def: OpDef) -> None:
    """Check the whole declaration.

    Raises:
        InvalidArgumentError: it breaks a rule; the message names the part and the rule.
        UnimplementedError: an attr of a type other than "type" and "string" has a default and
            allowed values.
    """
    try:
        if not op_def.name.startswith("_") and not _OP_NAME.fullmatch(op_def.name):
            raise _Invalid(f"Invalid name: {op_def.name} (Did you use CamelCase?)")
        names: set[str] = set()
        for attr in op_def.attr:
            _add_name(attr.name, names)
            _validate_attr(attr, op_def)
        for what, args in (("input", op_def.input_arg), ("output", op_def.output_arg)):
            for arg in args:
                _add_name(arg.name, names)
                _validate_arg(arg, op_def, f" for {what} '{arg.name}'")
    except _Invalid as error:
        raise InvalidArgumentError(
            f"{error}; in OpDef: {summaries.short_debug_string(op_def)}"
        ) from None


def _add_name(name: str, names: set[str]) -> None:
    if name in names:
        raise _Invalid(f"Duplicate name: {name}")
    names.add(name)


def _validate_attr(attr: OpDef.AttrDef, op_def: OpDef) -> None:
    if find_dtype(attr.name) is not None:
        raise _Invalid(f"Attr can't have name {attr.name} that matches a data type")
    is_list = attr.type in _LIST_KINDS
    if not is_list and attr.type not in FIELD_OF_KIND:
        raise _Invalid(_wrong_type(attr))
    _validate_minimum(attr, is_list=is_list)
    if attr.HasField("allowed_values"):
        list_type = attr.type if is_list else f"list({attr.type})"
        try:
            attr_value_has_type(attr.allowed_values, list_type)
        except OpError as error:
            raise with_context(error, f" for attr '{attr.name}' in Op '{op_def.name}'") from None
    if attr.HasField("default_value"):
        try:
            validate_attr_value(attr.default_value, attr)
        except OpError as error:
            raise with_context(error, f" in Op '{op_def.name}'") from None


def _wrong_type(attr: OpDef.AttrDef) -> str:
    """The fault in the type of an attr."""
    is_list = attr.type.startswith("list(")
    rest = attr.type.removeprefix("list(")
    kind = next((kind for kind in FIELD_OF_KIND if rest.startswith(kind)), None)
    if kind is None:
        return f"Unrecognized type '{rest}' in attr '{attr.name}'"
    rest = rest.removeprefix(kind)
    if is_list and not rest.startswith(")"):
        return f"'list(' is missing ')' in attr {attr.name}'s type {attr.type}"
    extra = rest.removeprefix(")") if is_list else rest
    return f"Extra '{extra}' at the end of attr {attr.name}'s type {attr.type}"


def _validate_minimum(attr: OpDef.AttrDef, *, is_list: bool) -> None:
    if not attr.has_minimum:
        if attr.minimum != 0:
            raise _Invalid(
                f"Attr '{attr.name}' with has_minimum = false but minimum {attr.minimum} "
                "not equal to default of 0"
            )
    elif not is_list and attr.type != "int":
        raise _Invalid(f"Attr '{attr.name}' has minimum for unsupported type {attr.type}")
    elif is_list and attr.minimum < 0:
        raise _Invalid(
            f"Attr '{attr.name}' with list type must have a non-negative minimum, "
            f"not {attr.minimum}"
        )


def _validate_arg(arg: OpDef.ArgDef, op_def: OpDef, suffix: str) -> None:
    """Check an input or output; `suffix` names it in messages."""
    if arg.type == DataType.DT_INVALID and not arg.type_attr and not arg.type_list_attr:
        raise _Invalid(f"Missing type{suffix}")
    if arg.number_attr:
        _validate_length(arg, op_def, suffix)
    elif bool(arg.type) + bool(arg.type_attr) + bool(arg.type_list_attr) != 1:
        raise _Invalid(f"Exactly one of type, type_attr, type_list_attr must be set{suffix}")
    if arg.type_attr:
        _find_attr_of_type(op_def, arg.type_attr, "type", "type_attr", suffix)
    elif arg.type_list_attr:
        _find_attr_of_type(op_def, arg.type_list_attr, "list(type)", "type_list_attr", suffix)
    elif arg.type > REF_OFFSET:
        raise _Invalid(
            f"Illegal use of ref type '{dtype_text(arg.type)}'. Use 'Ref(type)' instead{suffix}"
        )


def _validate_length(arg: OpDef.ArgDef, op_def: OpDef, suffix: str) -> None:
    """Check an arg whose length an attr gives."""
    attr = _find_attr_of_type(op_def, arg.number_attr, "int", "length", suffix)
    use = f"Attr '{attr.name}' used as length{suffix}"
    if not attr.has_minimum:
        raise _Invalid(f"{use} must have minimum")
    if attr.minimum < 0:
        raise _Invalid(f"{use} must have minimum >= 0")
    if arg.type_list_attr:
        raise _Invalid(f"Can't have both number_attr and type_list_attr{suffix}")
    if bool(arg.type) + bool(arg.type_attr) != 1:
        raise _Invalid(f"Exactly one of type, type_attr must be set{suffix}")


def _find_attr_of_type(
    op_def: OpDef, name: str, attr_type: str, use: str, suffix: str
) -> OpDef.AttrDef:
    """The attr that an arg refers to; it must be there and of the type that the use needs."""
    attr = find_attr(op_def, name)
    if attr is None:
        raise _Invalid(f"No attr with name '{name}'{suffix}")
    if attr.type != attr_type:
        raise _Invalid(f"Attr '{name}' used as {use}{suffix} has type {attr.type} != {attr_type}")
    return attr
