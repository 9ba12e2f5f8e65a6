"""Attr values as text: the defaults that specs give, and the one-line summaries in messages.

Source: TensorFlow core/framework/attr_value_util.cc (ParseAttrValue, SummarizeAttrValue).
"""

from collections.abc import Callable, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.core.declarations import FIELD_OF_KIND
from opkernel.proto import AttrValue, NameAttrList, TensorProto
from opkernel.types import REF_OFFSET, DataType, shape_proto_debug_string

_SPACE = " \t\n\v\f\r"
_MAX_TENSOR_NESTING = 100
_MAX_STRING_LENGTH = 80
_MAX_LIST_LENGTH = 30
_SHOWN_AT_EACH_END = 5
_SHOWN_CHARS_AT_EACH_END = 10

_DTYPE_STRINGS = {int(dtype): dtype.string for dtype in DataType}
_DTYPE_NAMES = {int(dtype): dtype.name for dtype in DataType}
_KNOWN: dict[tuple[str, str], dict[str, Any]] = {
    ("bool", "true"): {"b": True},
    ("bool", "false"): {"b": False},
    ("shape", "{ unknown_rank: true }"): {"shape": {"unknown_rank": True}},
}
"""The fields of AttrValue for texts that many ops have, by types."""


def parse_attr_value(type: str, text: str) -> AttrValue:
    """The value that `text`, as in the default of an attr spec, gives an attr of `type`.

    Args:
        type: "string", "int", ... or "list(string)", ...
        text: `true`, `3`, `'foo'`, `DT_FLOAT`, `{ dim { size: 2 } }`, `[1, 2]` ...

    Raises:
        InvalidArgumentError: the text is no value of the type, or the type is none.
    """
    fields = _KNOWN.get((type, text)) or _plain(type, text)
    value = AttrValue(**fields)
    if fields:
        return value
    field, is_list = _field_of_type(type)
    try:
        if is_list:
            _parse_list(text, field, value)
        else:
            _merge(f"{field}: {text}", field, value)
    except ValueError as error:
        raise InvalidArgumentError(
            f"Could not parse '{text}' as a value of type {type}: {error}"
        ) from None
    return value


def _plain(type: str, text: str) -> dict[str, Any]:
    """The field for a quoted word or a decimal number; none for all that takes a parser."""
    if type == "string" and text.isascii() and text[1:-1].isidentifier():
        return {"s": text[1:-1].encode()} if text[0] == text[-1] in ("'", '"') else {}
    is_number = text.isascii() and text.replace(".", "", 1).isdecimal()
    return {"f": float(text)} if type == "float" and is_number else {}


def _field_of_type(attr_type: str) -> tuple[str, bool]:
    """The field of AttrValue for an attr type, and whether the type is a list.

    As in TensorFlow a type is known by how it begins.
    """
    is_list = attr_type.startswith("list(")
    word = attr_type.removeprefix("list(")
    for name, field in (*FIELD_OF_KIND.items(), ("placeholder", "placeholder")):
        if word.startswith(name) and (not is_list or word.startswith(name + ")")):
            return field, is_list
    raise InvalidArgumentError(f"'{attr_type}' is not the type of an attr")


def _parse_list(text: str, field: str, value: AttrValue) -> None:
    stripped = text.strip(_SPACE)
    if len(stripped) < 2 or not (stripped[0] == "[" and stripped[-1] == "]"):
        raise ValueError("a list stands in [ ]")
    if stripped[1:].lstrip(_SPACE) == "]":
        value.list.SetInParent()
    else:
        _merge(f"list {{ {field}: {text} }}", field, value)


def _merge(text: str, field: str, value: AttrValue) -> None:
    from opkernel.opdef.text.text_proto import merge_text  # few values are written like messages

    if field == "tensor" and _nests_too_deeply(text):
        raise ValueError("the tensor is nested too deeply")
    merge_text(text, value)


def _nests_too_deeply(text: str) -> bool:
    depth = 0
    for char in text:
        if char in "{<":
            depth += 1
            if depth == _MAX_TENSOR_NESTING:
                return True
        elif char in "}>":
            depth -= 1
    return False


def summarize_attr_value(value: AttrValue) -> str:
    """The value on one line, long strings and lists shortened: `[1, 2, 3]`, `"foo"`, `DT_FLOAT`.

    A shortened list ends in the fingerprint of its full text, so that different values still
    differ.
    """
    kind = value.WhichOneof("value")
    if kind is None:
        return "<Unknown AttrValue type>"
    if kind == "list":
        return _summarize_list(_list_pieces(value.list))
    if kind == "placeholder":
        return f"${value.placeholder}"
    return _SUMMARIZE[kind](getattr(value, kind))


def _list_pieces(values: AttrValue.ListValue) -> list[str]:
    """The summaries of a list's elements; only the first kind that the list has is shown."""
    for kind, summarize in _SUMMARIZE.items():
        elements = getattr(values, kind)
        if elements:
            return [summarize(element) for element in elements]
    return []


def _summarize_list(pieces: Sequence[str]) -> str:
    from opkernel.opdef.core.fingerprint import fingerprint64  # of long lists alone

    if len(pieces) < _MAX_LIST_LENGTH:
        return "[" + ", ".join(pieces) + "]"
    shown = [*pieces[:_SHOWN_AT_EACH_END], "...", *pieces[-_SHOWN_AT_EACH_END:]]
    attr_hash = fingerprint64(",".join(pieces).encode("utf-8", "surrogateescape"))
    return "[" + ", ".join(shown) + f"]{{attr_hash={attr_hash}}}"


def _summarize_string(value: bytes) -> str:
    from opkernel.opdef.text.escaping import c_escape  # summaries are for messages

    escaped = c_escape(value)
    if len(escaped) >= _MAX_STRING_LENGTH:
        shown = _SHOWN_CHARS_AT_EACH_END
        escaped = f"{escaped[:shown]}...{escaped[-shown:]}"
    return f'"{escaped}"'


def _summarize_float(value: float) -> str:
    from opkernel.opdef.text.number_text import float_text  # summaries are for messages

    return float_text(value)


def _summarize_tensor(value: TensorProto) -> str:
    from opkernel.opdef.text.tensor_summary import summarize_tensor  # summaries are for messages

    return summarize_tensor(value)


def _summarize_func(func: NameAttrList) -> str:
    entries = sorted(f"{name}={summarize_attr_value(value)}" for name, value in func.attr.items())
    return f"{func.name}[{', '.join(entries)}]"


_SUMMARIZE: dict[str, Callable[[Any], str]] = {
    "s": _summarize_string,
    "i": str,
    "f": _summarize_float,
    "b": lambda value: "true" if value else "false",
    "type": lambda number: _DTYPE_NAMES.get(number, ""),
    "shape": shape_proto_debug_string,
    "tensor": _summarize_tensor,
    "func": _summarize_func,
}


def dtype_text(number: int) -> str:
    """The name of a type in messages; the number may belong to no type (DataTypeString)."""
    if number in _DTYPE_STRINGS:
        return _DTYPE_STRINGS[number]
    is_ref = number > REF_OFFSET
    unknown = f"unknown dtype enum ({number - REF_OFFSET if is_ref else number})"
    return f"{unknown}_ref" if is_ref else unknown


def has_placeholder(value: AttrValue) -> bool:
    """Whether a placeholder stands anywhere in the value (HasPlaceHolder)."""
    match value.WhichOneof("value"):
        case "placeholder":
            return True
        case "func":
            return _func_has_placeholder(value.func)
        case "list":
            return any(_func_has_placeholder(func) for func in value.list.func)
        case _:
            return False


def _func_has_placeholder(func: NameAttrList) -> bool:
    return any(has_placeholder(value) for value in func.attr.values())
