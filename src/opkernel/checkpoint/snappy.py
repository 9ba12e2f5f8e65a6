"""Snappy, in which tables compress blocks, and tf.data elements.

Source: https://github.com/google/snappy/blob/main/format_description.txt.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from opkernel.errors import DataLossError
from opkernel.types import charge_decoded
from opkernel.types.varints import read_varint, varint

_AT_ONCE = 1 << 13
"""So many bytes of a block are decompressed between two looks at the clock."""
_MOST_TIMES = 64
"""A copy of two bytes gives at most so many bytes, so that a size cannot be a lie by more."""
_REACH = 1 << 16
"""A copy goes back by less than so many bytes."""
_LONGEST = 64
"""So many bytes a copy has at most."""


def compressed(data: bytes) -> bytes:
    """Data as a compressed block, which any reader of Snappy takes; the bytes are not those of another writer."""
    pieces = [varint(len(data))]
    for start in range(0, len(data), _REACH):
        charge_decoded(0, "a compressed block")
        part, done = data[start : start + _REACH], 0
        for place, source, length in _repeats(part):
            pieces += _literal_pieces(part[done:place])
            done = place + length
            back = (place - source).to_bytes(2, "little")
            for at in range(0, length, _LONGEST):
                pieces += bytes([min(length - at, _LONGEST) - 1 << 2 | 2]), back
        pieces += _literal_pieces(part[done:])
    return b"".join(pieces)


def _literal_pieces(content: bytes) -> list[bytes]:
    if not content:
        return []
    last = len(content) - 1
    size = last.to_bytes(2, "little")
    tag = bytes([last << 2]) if last < 60 else bytes([61 << 2]) + size
    return [tag, content]


def _repeats(part: bytes) -> Iterator[tuple[int, int, int]]:
    """Places of a part whose next bytes stand in it before: the place, the place before, how many bytes; in order."""
    data = np.frombuffer(part, np.uint8).astype(np.uint32)
    words = data[:-3] | data[1:-2] << 8 | data[2:-1] << 16 | data[3:] << 24
    order = np.argsort(words, kind="stable")
    is_repeat = words[order[1:]] == words[order[:-1]]
    sources = np.full(words.size, -1)
    sources[order[1:][is_repeat]] = order[:-1][is_repeat]
    places = np.flatnonzero(sources >= 0).tolist()
    number = 0
    while number < len(places):
        place = places[number]
        source = int(sources[place])
        length = _alike(part, source, place)
        yield place, source, length
        number = bisect_left(places, place + length, number)


def _alike(part: bytes, source: int, place: int) -> int:
    """How many bytes from two places on are equal."""
    length = 0
    while True:
        other = part[place + length : place + length + _LONGEST]
        same = part[source + length : source + length + len(other)]
        if not other:
            return length
        if other != same:
            difference = int.from_bytes(other, "little") ^ int.from_bytes(same, "little")
            lowest_bit = (difference & -difference).bit_length() - 1
            return length + lowest_bit // 8
        length += len(other)


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
        end = min(position + _AT_ONCE, len(data))
        while position < end:
            append = _copy if data[position] & 3 else _literal
            position = append(data, position, result)
    if len(result) != size:
        raise DataLossError(f"A compressed block has not the {size} bytes that it tells of")
    return bytes(result)


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
