"""Attr values from text: the defaults that specs give.

Source: TensorFlow core/framework/attr_value_util.cc (ParseAttrValue).
"""

from itertools import accumulate
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.core.declarations import FIELD_OF_KIND
from opkernel.proto import AttrValue
from opkernel.types import REF_OFFSET, DataType

_SPACE = " \t\n\v\f\r"
_MAX_TENSOR_NESTING = 100

_DTYPE_STRINGS = {int(dtype): dtype.string for dtype in DataType}
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
    steps = ((char in "{<") - (char in "}>") for char in text)
    return max(accumulate(steps), default=0) >= _MAX_TENSOR_NESTING


def dtype_text(number: int) -> str:
    """The name of a type in messages; the number may belong to no type (DataTypeString)."""
    if number in _DTYPE_STRINGS:
        return _DTYPE_STRINGS[number]
    is_ref = number > REF_OFFSET
    unknown = f"unknown dtype enum ({number - REF_OFFSET if is_ref else number})"
    return f"{unknown}_ref" if is_ref else unknown


def has_placeholder(value: AttrValue) -> bool:
    """Whether a placeholder stands anywhere in the value (HasPlaceHolder)."""
    if value.HasField("placeholder"):
        return True
    functions = [value.func] if value.HasField("func") else value.list.func
    return any(has_placeholder(attr) for func in functions for attr in func.attr.values())
