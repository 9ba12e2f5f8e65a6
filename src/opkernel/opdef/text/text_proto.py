"""The text form of messages in attr defaults and specs, read as TensorFlow reads it.

This is not protobuf's own text format: TensorFlow reads attr values with a small generated parser
(its "proto_text"), which knows no octal or hexadecimal integers, lets a word that names no field
stand for nothing, and takes no separators between fields. A default that one accepts and the
other refuses is rare but real, so the generated rules are followed here, driven by descriptors.
"""

import re
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from opkernel.opdef.text.escaping import c_unescape
from opkernel.opdef.text.field_label import is_repeated
from opkernel.proto import message_class

_MAX_NESTING = 200  # of messages; far beyond what specs hold and within Python's own stack

_SPACE = re.compile(r"(?:[ \t\n\v\f\r]+|#[^\n]*)*")
_WORD = re.compile(r"[A-Za-z0-9_]+")
_NUMBER = re.compile(r"[A-Za-z0-9.+-]+")
_BOOL = re.compile(r"[A-Za-z0-9]+")
_ENUM = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
_HEX_FLOAT = re.compile(
    r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?", re.IGNORECASE
)
_LEADING_ZEROS = re.compile(r"-*0-*0")

_BOOLS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}

_INTEGER_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


class TextProtoError(ValueError):
    """The text is not the text form of the message."""


class _Field(NamedTuple):
    """The facts about a field that the reader needs."""

    name: str
    kind: int  # FieldDescriptor.CPPTYPE_*
    is_repeated: bool
    is_map: bool
    is_bytes: bool
    oneof: str | None
    enum_values: dict[str, int]


@cache
def _fields(descriptor: Descriptor) -> dict[str, _Field]:
    return {field.name: _describe(field) for field in descriptor.fields}


def _describe(field: FieldDescriptor) -> _Field:
    entry = field.message_type
    return _Field(
        field.name,
        field.cpp_type,
        is_repeated(field),
        # Asking for options that are not there would import descriptor_pb2, which takes long.
        entry is not None and entry.has_options and entry.GetOptions().map_entry,
        field.type == FieldDescriptor.TYPE_BYTES,
        field.containing_oneof.name if field.containing_oneof else None,
        {v.name: v.number for v in field.enum_type.values} if field.enum_type else {},
    )


def merge_text(text: str, message: Any, *, ignore_unknown: bool = True) -> None:
    """Set the fields of `message` that `text` spells. Time is linear in the text.

    Args:
        text: the text.
        message: the message to fill.
        ignore_unknown: let words that name no field stand for nothing, as TensorFlow does.

    Raises:
        TextProtoError: the text breaks the grammar, gives a field a value of another kind or out
            of range, sets a singular field or a oneof twice, or nests too deeply.
    """
    _Reader(text, ignore_unknown).read_message(message, "", _MAX_NESTING)


class _Reader:
    """A position in the text, and one method for each thing that can stand there."""

    def __init__(self, text: str, ignore_unknown: bool) -> None:
        self._text = text
        self._ignore_unknown = ignore_unknown
        self._at = 0

    def read_message(
        self, message: Any, close: str, nesting: int, *, may_repeat: bool = False
    ) -> set[str]:
        """Read fields up to the `close` bracket; "" is the end of the text.

        The last value of a singular field counts where it `may_repeat`. The result names the
        singular fields that were read.
        """
        if nesting == 0:
            raise TextProtoError("messages are nested too deeply")
        fields = _fields(message.DESCRIPTOR)
        seen: set[str] = set()
        while not self._at_end(close):
            name = self._take(_WORD)
            self._skip_space()
            has_colon = self._take_char(":")
            field = fields.get(name)
            if field is None:
                if not self._ignore_unknown:
                    raise TextProtoError(f"there is no field {name}")
                continue
            if name in seen and not may_repeat:
                raise TextProtoError(f"{name} is set twice")
            if not has_colon and field.kind != FieldDescriptor.CPPTYPE_MESSAGE:
                raise TextProtoError(f"no ':' after {name}")
            if field.is_repeated:
                self._read_repeated(message, field, nesting)
            else:
                seen.add(name)
                self._read_singular(message, field, nesting)
        return seen

    def _read_singular(self, message: Any, field: _Field, nesting: int) -> None:
        if field.oneof and message.WhichOneof(field.oneof):
            raise TextProtoError(f"{field.oneof} is set twice")
        if field.kind == FieldDescriptor.CPPTYPE_MESSAGE:
            value = getattr(message, field.name)
            value.SetInParent()
            self._read_braced(value, nesting)
        else:
            setattr(message, field.name, self._read_scalar(field))

    def _read_repeated(self, message: Any, field: _Field, nesting: int) -> None:
        """Read one value, or several in brackets."""
        values = getattr(message, field.name)
        is_list = self._peek() == "["
        while True:
            if is_list:
                self._at += 1
                self._skip_space()
            if field.is_map:
                self._read_map_entry(message, field, nesting)
            elif field.kind == FieldDescriptor.CPPTYPE_MESSAGE:
                self._read_braced(values.add(), nesting)
            else:
                values.append(self._read_scalar(field))
            if not (is_list and self._peek() == ","):
                break
        if is_list and not self._take_char("]"):
            raise TextProtoError(f"the list of {field.name} is not closed")

    def _read_map_entry(self, message: Any, field: _Field, nesting: int) -> None:
        """Read `{ key: ... value { ... } }` into a map of strings to messages."""
        # A map entry has a class like any message: it is read as one, then moved into the map.
        descriptor = message.DESCRIPTOR.fields_by_name[field.name].message_type
        entry: Any = message_class(descriptor)()
        if self._read_braced(entry, nesting, may_repeat=True) != {"key", "value"}:
            raise TextProtoError(f"an entry of {field.name} lacks its key or value")
        getattr(message, field.name)[entry.key].CopyFrom(entry.value)

    def _read_braced(self, message: Any, nesting: int, *, may_repeat: bool = False) -> set[str]:
        close = {"{": "}", "<": ">"}.get(self._peek())
        if close is None:
            raise TextProtoError("a message does not begin with { or <")
        self._at += 1
        return self.read_message(message, close, nesting - 1, may_repeat=may_repeat)

    def _read_scalar(self, field: _Field) -> Any:
        match field.kind:
            case FieldDescriptor.CPPTYPE_STRING:
                value = self._read_string()
                return value if field.is_bytes else value.decode("utf-8", "replace")
            case FieldDescriptor.CPPTYPE_ENUM:
                return self._read_enum(field)
            case FieldDescriptor.CPPTYPE_BOOL:
                return self._read_bool()
            case _:
                return self._read_number(field.kind)

    def _read_string(self) -> bytes:
        quoted = self._take(_STRING)
        self._skip_space()
        try:
            return c_unescape(quoted[1:-1])
        except ValueError as error:
            raise TextProtoError(str(error)) from None

    def _read_enum(self, field: _Field) -> int:
        word = self._take(_ENUM)
        if word in field.enum_values:
            return field.enum_values[word]
        return _parse_integer(word, FieldDescriptor.CPPTYPE_INT32)

    def _read_bool(self) -> bool:
        word = self._take(_BOOL)
        self._skip_space()
        if word not in _BOOLS:
            raise TextProtoError(f"{word} is not a bool")
        return _BOOLS[word]

    def _read_number(self, kind: int) -> int | float:
        word = self._take(_NUMBER)
        self._skip_space()
        if _LEADING_ZEROS.match(word):
            raise TextProtoError(f"{word} has several leading zeros")
        if kind in _INTEGER_RANGES:
            return _parse_integer(word, kind)
        return _parse_float(word)

    def _at_end(self, close: str) -> bool:
        """Whether the message ends here; its closing bracket is consumed."""
        self._skip_space()
        return self._take_char(close) if close else self._at == len(self._text)

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take_char(self, char: str) -> bool:
        """Whether `char` stands here; it is consumed with the blanks after it."""
        if self._peek() != char:
            return False
        self._at += 1
        self._skip_space()
        return True

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise TextProtoError(f"unexpected text at '{self._text[self._at : self._at + 20]}'")
        self._at = found.end()
        return found.group()


def _parse_float(word: str) -> float:
    if _FLOAT.fullmatch(word):
        return float(word)
    if _HEX_FLOAT.fullmatch(word):
        return float.fromhex(word)
    raise TextProtoError(f"{word} is not a number")


def _parse_integer(word: str, kind: int) -> int:
    low, high = _INTEGER_RANGES[kind]
    if not _INTEGER.fullmatch(word) or not low <= int(word) <= high:
        raise TextProtoError(f"{word} is not an integer between {low} and {high}")
    return int(word)
