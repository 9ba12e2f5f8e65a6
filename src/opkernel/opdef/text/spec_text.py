"""Declarations as the specs that declare them: the inverse of `opkernel.opdef.core.spec`."""

from collections.abc import Callable, Mapping
from typing import Any

from opkernel.opdef.text.attr_value_text import dtype_text, summarize_attr_value
from opkernel.opdef.text.debug_string import short_debug_string
from opkernel.opdef.text.escaping import c_escape
from opkernel.proto import AttrValue, OpDef


def attr_spec(attr: OpDef.AttrDef) -> str:
    """The spec of an attr: `"T: {float, int32} = DT_FLOAT"`."""
    is_list = attr.type.startswith("list(")
    kind = attr.type.removeprefix("list(").removesuffix(")")
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


def _message_text(message: Any) -> str:
    inner = short_debug_string(message)
    return f"{{ {inner} }}" if inner else "{ }"


_SPELL: Mapping[str, Callable[[Any], str]] = {
    "s": _quoted,
    "shape": _message_text,
    "tensor": _message_text,
    "func": _message_text,
}


def _text_of(kind: str, element: Any) -> str:
    if kind in _SPELL:
        return _SPELL[kind](element)
    # A number, bool or type is short: its summary spells it in full.
    return summarize_attr_value(AttrValue(**{kind: element}))
