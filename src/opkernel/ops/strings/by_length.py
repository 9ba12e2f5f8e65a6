"""Functions of strings computed by NumPy: those of one length at once, as columns of their bytes."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.kernel import shard

__all__ = ["Rows", "of_each_length", "tile_of"]

_BATCH = 1 << 18
"""Strings that are sorted by length together; the bytes of so many short ones are near the processor."""

_PIECE = 1 << 12
"""Strings whose objects stay in the cache from one look to the next."""

_TILE_BYTES, _TILE = 1 << 18, 1 << 13
"""The columns of one computation should stay in the cache: bytes, and strings."""


class Rows:
    """Strings of one length, one after the other in a buffer."""

    def __init__(self, buffer: Any, count: int, length: int) -> None:
        self._buffer = buffer
        self.count, self.length = count, length

    def column(self, at: int, dtype: str) -> Any:
        """The numbers that begin at a byte of each string, as uint64."""
        column = np.ndarray((self.count,), dtype, self._buffer, at, (max(self.length, 1),))
        return column.astype(np.uint64)

    def word(self, at: int) -> Any:
        """The eight bytes of each string from `at` on, little-endian."""
        return self.column(at, "<u8")

    def tail(self, at: int) -> Any:
        """The bytes of each string from `at` on, fewer than eight, as one number."""
        number = np.zeros(self.count, np.uint64)
        for i in range(at, self.length):
            number |= self.column(i, "u1") << np.uint64(8 * (i - at))
        return number


def of_each_length(strings: Any, function: Callable[[Rows], Any]) -> Any:
    """The numbers, as uint64, that a function gives for the rows of each length."""
    flat = strings.reshape(-1)
    found = np.empty(flat.size, np.uint64)
    for at in range(0, flat.size, _BATCH):
        _fill(found[at : at + _BATCH], flat[at : at + _BATCH], function)
    return found.reshape(strings.shape)


def _fill(found: Any, strings: Any, function: Callable[[Rows], Any]) -> None:
    buffer, lengths = _joined(strings)
    starts = np.cumsum(lengths) - lengths
    narrow = np.uint16 if lengths.max() < 1 << 16 else np.int64
    order = np.argsort(lengths.astype(narrow), kind="stable")  # of 16 bits NumPy sorts fastest
    sorted_lengths = lengths[order]

    def fill(tile: slice) -> None:
        chosen, length = order[tile], int(sorted_lengths[tile.start])
        rows = Rows(_gathered(buffer, starts[chosen], length), chosen.size, length)
        with np.errstate(over="ignore"):
            found[chosen] = function(rows)

    shard(fill, _tiles(sorted_lengths))


def _joined(strings: Any) -> tuple[bytes, Any]:
    """All strings in one buffer, and their lengths."""
    pieces, lengths = [], np.empty(strings.size, np.int64)
    for at in range(0, strings.size, _PIECE):
        piece = strings[at : at + _PIECE].tolist()
        lengths[at : at + _PIECE] = [*map(len, piece)]
        pieces.append(b"".join(piece))
    return b"".join(pieces), lengths


def _gathered(buffer: bytes, starts: Any, length: int) -> Any:
    """The parts of a buffer that begin at places, one after the other."""
    if not length:
        return b""
    # Any part of the buffer, as an element of so many bytes: the elements overlap.
    parts = np.ndarray((len(buffer) - length + 1,), f"V{length}", buffer, strides=(1,))
    return parts[starts]


def tile_of(length: int) -> int:
    """How many strings of a length are computed together."""
    return min(max(_TILE_BYTES // max(length, 8), 64), _TILE)


def _tiles(lengths: Any) -> list[slice]:
    """Where runs of one length begin and end, cut where they are long."""
    edges = np.flatnonzero(np.diff(lengths)) + 1
    bounds, tiles = [0, *edges.tolist(), lengths.size], []
    for first, stop in itertools.pairwise(bounds):
        step = tile_of(int(lengths[first]))
        tiles += [slice(at, min(at + step, stop)) for at in range(first, stop, step)]
    return tiles
