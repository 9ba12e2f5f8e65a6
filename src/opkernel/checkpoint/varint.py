"""Whole numbers of 7 bits a byte, the lowest first, as tables and bundles have them.

Source: TensorFlow tsl/platform/coding.h.
"""

from __future__ import annotations

from opkernel.errors import DataLossError

_MOST_BYTES = 10


def varint(number: int) -> bytes:
    """A number below 2**64 as a varint."""
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def read_varint(data: bytes | memoryview, start: int) -> tuple[int, int]:
    """The number that starts at a position, and the position after it.

    Raises:
        DataLossError: the data ends within the number, or the number has more than 64 bits.
    """
    number = shift = 0
    for position in range(start, min(start + _MOST_BYTES, len(data))):
        byte = data[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> 64:
                break
            return number, position + 1
        shift += 7
    raise DataLossError(f"There is no varint at byte {start}")
