r"""The text form of messages in attr defaults and specs, read as TensorFlow reads it; and ApiDef files, with long strings.

This is not protobuf's own text format: TensorFlow reads attr values with a small generated parser
(its "proto_text"), which knows no octal or hexadecimal integers, lets a word that names no field
stand for nothing, and takes no separators between fields. A default that one accepts and the
other refuses is rare but real, so the generated rules are followed here, driven by descriptors.

In ApiDef files, which protobuf reads, a long string stands on lines of its own:

    description: <<END
    Computes the "sum"
    of all.
    END

is `description: "Computes the \"sum\"\nof all."`. The word after `<<` is free. The value ends at the
first line that begins with the word; the rest of that line stays behind the value.

Source: TensorFlow core/framework/op_gen_lib.cc for the latter.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from opkernel.errors import InvalidArgumentError
from opkernel.file_errors import file_errors
from opkernel.opdef.text.debug_string import is_repeated
from opkernel.opdef.text.escaping import Cursor, c_escape, c_unescape
from opkernel.proto import Message, message_class

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


@cache
def _is_map(entry: Descriptor | None) -> bool:
    """Whether the messages of a repeated field are the entries of a map."""
    # Asking for options that are not there would import descriptor_pb2, which takes long.
    return entry is not None and entry.has_options and entry.GetOptions().map_entry


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


class _Reader(Cursor):
    """A position in the text, and one method for each thing that can stand there."""

    def __init__(self, text: str, ignore_unknown: bool) -> None:
        super().__init__(text)
        self._ignore_unknown = ignore_unknown

    def read_message(
        self, message: Any, close: str, nesting: int, *, may_repeat: bool = False
    ) -> set[str]:
        """Read fields up to the `close` bracket; "" is the end of the text.

        The last value of a singular field counts where it `may_repeat`. The result names the
        singular fields that were read.
        """
        if nesting == 0:
            raise TextProtoError("messages are nested too deeply")
        fields = message.DESCRIPTOR.fields_by_name
        seen: set[str] = set()
        while not self._at_end(close):
            name = self._take(_WORD)
            self.take(_SPACE)
            has_colon = self._take_char(":")
            field = fields.get(name)
            if field is None:
                if not self._ignore_unknown:
                    raise TextProtoError(f"there is no field {name}")
                continue
            if name in seen and not may_repeat:
                raise TextProtoError(f"{name} is set twice")
            if not has_colon and field.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE:
                raise TextProtoError(f"no ':' after {name}")
            if is_repeated(field):
                self._read_repeated(message, field, nesting)
            else:
                seen.add(name)
                self._read_singular(message, field, nesting)
        return seen

    def _read_singular(self, message: Any, field: FieldDescriptor, nesting: int) -> None:
        oneof = field.containing_oneof
        if oneof is not None and message.WhichOneof(oneof.name):
            raise TextProtoError(f"{oneof.name} is set twice")
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            value = getattr(message, field.name)
            value.SetInParent()
            self._read_braced(value, nesting)
        else:
            setattr(message, field.name, self._read_scalar(field))

    def _read_repeated(self, message: Any, field: FieldDescriptor, nesting: int) -> None:
        """Read one value, or several in brackets."""
        values = getattr(message, field.name)
        is_list = self._peek() == "["
        while True:
            if is_list:
                self.at += 1
                self.take(_SPACE)
            if _is_map(field.message_type):
                self._read_map_entry(message, field, nesting)
            elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
                self._read_braced(values.add(), nesting)
            else:
                values.append(self._read_scalar(field))
            if not (is_list and self._peek() == ","):
                break
        if is_list and not self._take_char("]"):
            raise TextProtoError(f"the list of {field.name} is not closed")

    def _read_map_entry(self, message: Any, field: FieldDescriptor, nesting: int) -> None:
        """Read `{ key: ... value { ... } }` into a map of strings to messages."""
        # A map entry has a class like any message: it is read as one, then moved into the map.
        entry: Any = message_class(field.message_type)()
        if self._read_braced(entry, nesting, may_repeat=True) != {"key", "value"}:
            raise TextProtoError(f"an entry of {field.name} lacks its key or value")
        getattr(message, field.name)[entry.key].CopyFrom(entry.value)

    def _read_braced(self, message: Any, nesting: int, *, may_repeat: bool = False) -> set[str]:
        close = {"{": "}", "<": ">"}.get(self._peek())
        if close is None:
            raise TextProtoError("a message does not begin with { or <")
        self.at += 1
        return self.read_message(message, close, nesting - 1, may_repeat=may_repeat)

    def _read_scalar(self, field: FieldDescriptor) -> Any:
        match field.cpp_type:
            case FieldDescriptor.CPPTYPE_STRING:
                value = self._read_string()
                is_bytes = field.type == FieldDescriptor.TYPE_BYTES
                return value if is_bytes else value.decode("utf-8", "replace")
            case FieldDescriptor.CPPTYPE_ENUM:
                return self._read_enum(field)
            case FieldDescriptor.CPPTYPE_BOOL:
                return self._read_bool()
            case _:
                return self._read_number(field.cpp_type)

    def _read_string(self) -> bytes:
        quoted = self._take(_STRING)
        self.take(_SPACE)
        try:
            return c_unescape(quoted[1:-1])
        except ValueError as error:
            raise TextProtoError(str(error)) from None

    def _read_enum(self, field: FieldDescriptor) -> int:
        word = self._take(_ENUM)
        known = field.enum_type.values_by_name.get(word) if field.enum_type else None
        return (
            known.number
            if known is not None
            else _parse_integer(word, FieldDescriptor.CPPTYPE_INT32)
        )

    def _read_bool(self) -> bool:
        word = self._take(_BOOL)
        self.take(_SPACE)
        if word not in _BOOLS:
            raise TextProtoError(f"{word} is not a bool")
        return _BOOLS[word]

    def _read_number(self, kind: int) -> int | float:
        word = self._take(_NUMBER)
        self.take(_SPACE)
        if _LEADING_ZEROS.match(word):
            raise TextProtoError(f"{word} has several leading zeros")
        if kind in _INTEGER_RANGES:
            return _parse_integer(word, kind)
        return _parse_float(word)

    def _at_end(self, close: str) -> bool:
        """Whether the message ends here; its closing bracket is consumed."""
        self.take(_SPACE)
        return self._take_char(close) if close else self.at == len(self.text)

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take_char(self, char: str) -> bool:
        """Whether `char` stands here; it is consumed with the blanks after it."""
        if not self.take_literal(char):
            return False
        self.take(_SPACE)
        return True

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = self.take(pattern)
        if found is None:
            raise TextProtoError(f"unexpected text at '{self.rest[:20]}'")
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


AnyMessage = TypeVar("AnyMessage", bound=Message)

_QUOTED = re.compile(r'(?P<head> *(?P<field>[^:]*)): *"(?P<escaped>.*)"(?P<rest>[^"]*)', re.DOTALL)
_MULTILINE = re.compile(r"(?P<head>[^:]*:) *<<(?P<end>[^\n]*)\n")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def pb_txt_to_multiline(pbtxt: str, multi_line_fields: Collection[str]) -> str:
    """Write the strings of some fields on lines of their own (PBTxtToMultiline).

    Args:
        pbtxt: a text proto with each field on its line. Lines that cannot be read as one of the
            fields with a quoted string stay as they are.
        multi_line_fields: the names of the fields.
    """
    lines = pbtxt.removesuffix("\n").split("\n") if pbtxt else []
    return "".join([f"{_to_multiline(line, multi_line_fields)}\n" for line in lines])


def _to_multiline(line: str, fields: Collection[str]) -> str:
    found = _QUOTED.fullmatch(line)
    if found is None or found["field"] not in fields:
        return line
    try:
        text = c_unescape(found["escaped"]).decode("utf-8", "surrogateescape")
    except ValueError:
        return line
    ends = itertools.chain(["END"], (f"END{number}" for number in itertools.count()))
    end = next(end for end in ends if end not in text)
    return f"{found['head']}: <<{end}\n{text}\n{end}{found['rest']}"


def pb_txt_from_multiline(multiline_pbtxt: str) -> str:
    """Turn strings on lines of their own into quoted ones (PBTxtFromMultiline)."""
    lines = iter(_LINE.findall(multiline_pbtxt))
    return "".join([_from_multiline(line, lines) for line in lines])


def _from_multiline(line: str, following: Iterator[str]) -> str:
    """The line, with the string that begins at its end; takes that from the following lines."""
    found = _MULTILINE.fullmatch(line)
    if found is None:
        return line
    value, suffix = [], ""
    for text in following:
        text = text.removesuffix("\n")
        if text.startswith(found["end"]):
            suffix = text.removeprefix(found["end"])
            break
        value.append(text)
    escaped = c_escape("\n".join(value).encode("utf-8", "surrogateescape"))
    return f'{found["head"]} "{escaped}"{suffix}\n'


def read_multiline(filename: str | os.PathLike[str]) -> str:
    """The text of a file; bytes that are no UTF-8 become surrogates.

    Raises:
        NotFoundError: there is no such file.
        FailedPreconditionError: the file cannot be read.
    """
    with file_errors(filename):
        return Path(filename).read_text(encoding="utf-8", errors="surrogateescape")


def parse_multiline(text: str, message: AnyMessage) -> AnyMessage:
    """Fill a message from (multi-line) text format.

    Raises:
        InvalidArgumentError: the text is no text of the message; the error tells the line and column.
    """
    from google.protobuf import text_format  # slow to import

    try:
        return text_format.Parse(pb_txt_from_multiline(text), message)
    except (text_format.ParseError, UnicodeError, RecursionError) as error:
        raise InvalidArgumentError(f"not a text of {message.DESCRIPTOR.name}: {error}") from None
