"""Declarations as the specs that declare them: the inverse of `opkernel.opdef.core.spec`; and as C++ has them.

Source: TensorFlow core/framework/op.h (REGISTER_OP).
"""

from collections.abc import Iterator
from typing import Any

from opkernel.escaping import terminal_text
from opkernel.opdef.core.declarations import split_attr_type
from opkernel.opdef.text.attr_value_text import dtype_text
from opkernel.opdef.text.debug_string import short_debug_string
from opkernel.opdef.text.escaping import c_escape
from opkernel.opdef.text.summary import summarize_attr_value
from opkernel.proto import AttrValue, OpDef

_FLAGS = {
    "is_aggregate": "SetIsAggregate",
    "is_commutative": "SetIsCommutative",
    "is_stateful": "SetIsStateful",
    "allows_uninitialized_input": "SetAllowsUninitializedInput",
    "is_distributed_communication": "SetIsDistributedCommunication",
}


def attr_spec(attr: OpDef.AttrDef) -> str:
    """The spec of an attr: `"T: {float, int32} = DT_FLOAT"`."""
    kind, is_list = split_attr_type(attr.type)
    if attr.HasField("allowed_values"):
        allowed = attr.allowed_values.list
        choices = [dtype_text(number) for number in allowed.type] or [*map(_quoted, allowed.s)]
        kind = "{" + ", ".join(choices) + "}"
    spec = f"{attr.name}: list({kind})" if is_list else f"{attr.name}: {kind}"
    if attr.has_minimum:
        spec += f" >= {attr.minimum}"
    if attr.HasField("default_value"):
        spec += f" = {default_text(attr.default_value)}"
    return spec


def arg_spec(arg: OpDef.ArgDef) -> str:
    """The spec of an input or output: `"values: N * T"`, `"ref: Ref(float)"`."""
    element = dtype_text(arg.type) if arg.type else arg.type_attr or arg.type_list_attr
    if arg.number_attr:
        element = f"{arg.number_attr} * {element}"
    return f"{arg.name}: Ref({element})" if arg.is_ref else f"{arg.name}: {element}"


def default_text(value: AttrValue) -> str:
    """A value in the text form of defaults, which `parse_attr_value` reads, and in full."""
    kind = value.WhichOneof("value")
    if kind is None:
        return ""
    if kind != "list":
        return _text_of(kind, getattr(value, kind))
    lists = value.list.ListFields()
    pieces = [_text_of(field.name, element) for field, elements in lists for element in elements]
    return "[" + ", ".join(pieces) + "]"


def _quoted(value: bytes) -> str:
    return f'"{c_escape(value)}"'


def _text_of(kind: str, element: Any) -> str:
    if kind == "s":
        return _quoted(element)
    if kind in ("shape", "tensor", "func"):
        inner = short_debug_string(element)
        return f"{{ {inner} }}" if inner else "{ }"
    # A number, bool or type is short: its summary spells it in full.
    return summarize_attr_value(AttrValue(**{kind: element}))


def registration_text(op_def: OpDef) -> str:
    """`REGISTER_OP("Add").Input("x: T")...`, a line for each part; documentation is left out."""
    lines = [f"REGISTER_OP({_string_in_cpp(op_def.name)})", *_registered_parts(op_def)]
    return terminal_text("\n    ".join(lines))


def _registered_parts(op_def: OpDef) -> Iterator[str]:
    for arg in op_def.input_arg:
        yield f".Input({_spec_in_cpp(arg_spec(arg))})"
    for arg in op_def.output_arg:
        yield f".Output({_spec_in_cpp(arg_spec(arg))})"
    for name in op_def.control_output:
        yield f".ControlOutput({_string_in_cpp(name)})"
    for attr in op_def.attr:
        yield f".Attr({_spec_in_cpp(attr_spec(attr))})"
    for flag, method in _FLAGS.items():
        if getattr(op_def, flag):
            yield f".{method}()"
    if op_def.HasField("deprecation"):
        found = op_def.deprecation
        yield f".Deprecated({found.version}, {_string_in_cpp(found.explanation)})"


def _spec_in_cpp(spec: str) -> str:
    """A spec as a string of C++, with single quotes inside where it can have them."""
    return _string_in_cpp(spec if "'" in spec or "\\" in spec else spec.replace('"', "'"))


def _string_in_cpp(text: str) -> str:
    escaped = c_escape(text.encode()).replace("\\'", "'")
    return f'"{escaped}"'
