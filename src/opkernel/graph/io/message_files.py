"""Protocol buffers in files: the bytes of a file, messages in text format, and a look at bytes without a schema.

The look at the wire format is for telling files apart, and damage.

Source: the encoding of protocol buffers (protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, Protocol, TypeVar

from google.protobuf.message import EncodeError

from opkernel.device.budget import current_budget
from opkernel.errors import DataLossError, InvalidArgumentError
from opkernel.file_errors import file_errors
from opkernel.proto import DecodeError, Message
from opkernel.records import dataclass

_MAX_BYTES = 2**31 - 1
_WEIGHTS_MANIFEST = "weights_manifest.json"

_AnyMessage = TypeVar("_AnyMessage", bound=Message)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a file that holds a protocol buffer.

    Raises:
        NotFoundError, PermissionDeniedError: the file cannot be read.
        InvalidArgumentError: it is larger than a protocol buffer may be.
        ResourceExhaustedError: it is larger than the memory limit.
    """
    with file_errors(path):
        checked_size(path)
        with open(path, "rb") as file:
            return file.read()


def checked_size(path: str | os.PathLike[str]) -> int:
    """The bytes of a file; raises as `read_file` does."""
    size = os.stat(path).st_size
    if size > _MAX_BYTES:
        raise InvalidArgumentError(
            f"{path} is too large: {size} bytes, and a protocol buffer has at most {_MAX_BYTES}"
        )
    budget = current_budget()
    if budget is not None:
        budget.check_memory(size, f"the content of {path}")
    return size


def weights_manifest_beside(path: str | os.PathLike[str]) -> str | None:
    """The list of weights beside the GraphDef of a TensorFlow.js model of 2018; None beside other files."""
    manifest = os.path.join(os.path.dirname(os.fspath(path)), _WEIGHTS_MANIFEST)
    return manifest if os.path.isfile(manifest) else None


def read_message(path: str | os.PathLike[str], message_class: type[_AnyMessage]) -> _AnyMessage:
    """The message that a file holds.

    Raises:
        NotFoundError, PermissionDeniedError, InvalidArgumentError, ResourceExhaustedError: as `read_file`.
        DataLossError: it is damaged.
    """
    try:
        return parse_file(path, message_class)
    except DecodeError as error:
        raise DataLossError(f"{path} is damaged or truncated") from error


def parse_file(path: str | os.PathLike[str], message_class: type[_AnyMessage]) -> _AnyMessage:
    """The message that a file holds. A large file is read in pieces, so that memory holds its content only once.

    Raises:
        NotFoundError, PermissionDeniedError, InvalidArgumentError, ResourceExhaustedError: as `read_file`.
        DecodeError: the file is damaged.
    """
    message = message_class()
    with file_errors(path):
        size = checked_size(path)
        with open(path, "rb") as file:
            for piece in _pieces(file, size):
                message.MergeFromString(piece)
    return message


_PIECE = 1 << 24
_MANY_FIELDS = 1 << 12
"""A piece with so many fields has small ones: looking for their ends takes longer than it saves."""


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The content of a file in pieces of some MB that begin and end with a field of its message."""
    start = 0
    while size - start > _PIECE:
        piece = file.read(_PIECE)
        try:
            ends = [field.stop for field in islice(scan_fields(piece), _MANY_FIELDS)]
        except Truncated:
            ends = []
        if not ends or len(ends) == _MANY_FIELDS:
            file.seek(start)
            break
        whole = [end for end in ends if end <= _PIECE]
        stop = whole[-1] if whole else ends[0]
        if whole:
            piece = piece[:stop]
        else:
            piece += file.read(stop - _PIECE)
        yield piece
        start += stop
        file.seek(start)
    yield file.read()


def parse_text(
    path: str | os.PathLike[str], data: bytes, message_class: type[_AnyMessage]
) -> _AnyMessage:
    """The message that a file holds in text format.

    Raises:
        InvalidArgumentError: the text is no such message; the error tells the line.
    """
    from google.protobuf import text_format  # slow to import, and seldom needed

    what = f"{path} is not a valid {message_class.DESCRIPTOR.name} in text format"
    try:
        parsed = text_format.Parse(data.decode(), message_class())
        found = message_class()
        found.MergeFromString(parsed.SerializeToString())  # refuses what nests too deep
        return found
    except text_format.ParseError as error:
        line = error.GetLine()
        place = "" if line is None else f" in line {line}"
        raise InvalidArgumentError(f"{what}: error{place}: {error}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidArgumentError(f"{what}: line {line} is not UTF-8") from error
    except (RecursionError, ValueError, DecodeError, EncodeError) as error:
        raise InvalidArgumentError(f"{what}: {error}") from error


VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
_MAX_VARINT = 10


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    Attributes:
        number: its number in the schema.
        wire_type: VARINT, FIXED64, LENGTH or FIXED32.
        offset: where it starts.
        start, stop: where its content is; `stop` may lie behind the end of the data.
    """

    number: int
    wire_type: int
    offset: int
    start: int
    stop: int


class Bytes(Protocol):
    """Bytes, or what gives them one by one."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> int: ...


class Truncated(ValueError):
    """The data do not go on like a message.

    Attributes:
        offset: where the part starts that is no field.
    """

    def __init__(self, offset: int) -> None:
        super().__init__(f"no field at byte {offset}")
        self.offset = offset


def scan_fields(data: Bytes, start: int = 0, stop: int | None = None) -> Iterator[Field]:
    """The fields of a message, one after another; the last may be cut off.

    Raises:
        Truncated: what comes next is no field.
    """
    stop = len(data) if stop is None else min(stop, len(data))
    while start < stop:
        offset = start
        tag, start = _varint(data, start, stop, offset)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise Truncated(offset)
        if wire_type == VARINT:
            end = _varint(data, start, stop, offset)[1]
        elif wire_type == LENGTH:
            length, start = _varint(data, start, stop, offset)
            end = start + length
        elif wire_type in _FIXED_SIZES:
            end = start + _FIXED_SIZES[wire_type]
        else:
            raise Truncated(offset)
        yield Field(number, wire_type, offset, start, end)
        start = end


def _varint(data: Bytes, start: int, stop: int, offset: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = 0
    for position in range(start, min(start + _MAX_VARINT, stop)):
        byte = data[position]
        value |= (byte & 127) << (7 * (position - start))
        if byte < 128:
            return value, position + 1
    raise Truncated(offset)
