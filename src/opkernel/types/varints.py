"""Whole numbers of 7 bits a byte, the lowest first, and lists of strings that begin with their lengths as such numbers.

Source: TensorFlow tsl/platform/coding.h.
"""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.errors import DataLossError


def varint(number: int) -> bytes:
    """A number below 2**64 as a varint."""
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def read_varint(data: bytes | memoryview, start: int, most_bytes: int = 10) -> tuple[int, int]:
    """The number that starts at a position, and the position after it.

    Raises:
        DataLossError: the data ends within the number, or the number has more bytes or more than 64 bits.
    """
    number = shift = 0
    for position in range(start, min(start + most_bytes, len(data))):
        byte = data[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> 64:
                break
            return number, position + 1
        shift += 7
    raise DataLossError(f"There is no varint at byte {start}")


def read_varints(data: bytes, count: int, most_bytes: int = 10) -> tuple[list[int], int]:
    """So many numbers from the beginning of data, and the position after them; raises as `read_varint`."""
    numbers, position = [], 0
    for _ in range(count):
        number, position = read_varint(data, position, most_bytes)
        numbers.append(number)
    return numbers, position


def strings_of_lengths(data: bytes, position: int, lengths: Sequence[int]) -> list[bytes]:
    """The strings of these lengths that follow each other from a position on."""
    strings = []
    for length in lengths:
        strings.append(data[position : position + length])
        position += length
    return strings
