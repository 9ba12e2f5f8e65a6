"""A look at the wire format of a message without its schema: for telling files apart, and damage.

Source: the encoding of protocol buffers (protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

from collections.abc import Iterator

from opkernel.records import dataclass

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


class Truncated(ValueError):
    """The data do not go on like a message.

    Attributes:
        offset: where the part starts that is no field.
    """

    def __init__(self, offset: int) -> None:
        super().__init__(f"no field at byte {offset}")
        self.offset = offset


def scan_fields(data: bytes, start: int = 0, stop: int | None = None) -> Iterator[Field]:
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


def _varint(data: bytes, start: int, stop: int, offset: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = 0
    for position in range(start, min(start + _MAX_VARINT, stop)):
        byte = data[position]
        value |= (byte & 127) << (7 * (position - start))
        if byte < 128:
            return value, position + 1
    raise Truncated(offset)
