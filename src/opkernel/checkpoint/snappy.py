"""Decompression of Snappy blocks, which tables may hold.

Source: https://github.com/google/snappy/blob/main/format_description.txt.
"""

from __future__ import annotations

from opkernel.checkpoint.varint import read_varint
from opkernel.errors import DataLossError
from opkernel.types import charge_decoded

_AT_ONCE = 1 << 13
"""So many bytes of a block are decompressed between two looks at the clock."""
_MOST_TIMES = 64
"""A copy of two bytes gives at most so many bytes, so that a size cannot be a lie by more."""


def decompressed(data: bytes) -> bytes:
    """The content of a compressed block.

    Raises:
        DataLossError: the block is damaged.
    """
    size, position = read_varint(data, 0)
    if size > _MOST_TIMES * len(data):
        raise DataLossError(f"A compressed block of {len(data)} bytes cannot hold {size}")
    charge_decoded(2 * size, "a compressed block")
    result = bytearray()
    while position < len(data) and len(result) <= size:
        charge_decoded(0, "a compressed block")
        position = _take_tags(data, position, min(position + _AT_ONCE, len(data)), result)
    if len(result) != size:
        raise DataLossError(f"A compressed block has not the {size} bytes that it tells of")
    return bytes(result)


def _take_tags(data: bytes, position: int, end: int, result: bytearray) -> int:
    """Append what tags tell until a place, or beyond it; the position after them."""
    while position < end:
        if data[position] & 3 == 0:
            position = _literal(data, position, result)
        else:
            position = _copy(data, position, result)
    return position


def _literal(data: bytes, position: int, result: bytearray) -> int:
    """Append bytes that stand in the block; the position after them."""
    length = data[position] >> 2
    position += 1
    if length >= 60:
        num_bytes = length - 59
        length = int.from_bytes(data[position : position + num_bytes], "little")
        position += num_bytes
    length += 1
    if position + length > len(data):
        raise DataLossError("A compressed block ends within a literal")
    result += data[position : position + length]
    return position + length


def _copy(data: bytes, position: int, result: bytearray) -> int:
    """Append bytes that came before; the position after the copy."""
    tag = data[position]
    kind = tag & 3
    num_bytes = (1, 2, 4)[kind - 1]
    if position + num_bytes >= len(data):
        raise DataLossError("A compressed block ends within a copy")
    offset = int.from_bytes(data[position + 1 : position + 1 + num_bytes], "little")
    length = (tag >> 2) + 1
    if kind == 1:
        length = (tag >> 2 & 7) + 4
        offset |= (tag >> 5) << 8
    if not 0 < offset <= len(result):
        raise DataLossError("A compressed block copies from before its beginning")
    start = len(result) - offset
    piece = result[start : start + length]
    if offset < length:
        piece = (piece * (length // offset + 1))[:length]
    result += piece
    return position + 1 + num_bytes
