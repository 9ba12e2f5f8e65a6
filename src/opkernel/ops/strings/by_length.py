"""Functions of strings computed by NumPy: those of one length at once, as columns of their bytes."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["Rows", "of_each_length"]

_TILE_BYTES = 1 << 18
"""The columns of one computation should stay in the cache."""


class Rows:
    """Strings of one length, one after the other in a buffer."""

    def __init__(self, buffer: bytes, start: int, count: int, length: int) -> None:
        self._buffer, self._start = buffer, start
        self.count, self.length = count, length

    def column(self, at: int, dtype: str) -> Any:
        """The numbers that begin at a byte of each string, as uint64."""
        column = np.ndarray(
            (self.count,), dtype, self._buffer, self._start + at, (max(self.length, 1),)
        )
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
    lengths = np.fromiter(map(len, flat), np.int64, flat.size)
    narrow = np.uint16 if lengths.max(initial=0) < 1 << 16 else np.int64
    order = np.argsort(lengths.astype(narrow), kind="stable")  # of 16 bits NumPy sorts fastest
    buffer = b"".join(flat[order].tolist())
    found = np.empty(flat.size, np.uint64)
    sorted_lengths = lengths[order]
    starts = np.cumsum(sorted_lengths) - sorted_lengths
    for first, stop in _tiles(sorted_lengths):
        rows = Rows(buffer, int(starts[first]), stop - first, int(sorted_lengths[first]))
        with np.errstate(over="ignore"):
            found[order[first:stop]] = function(rows)
    return found.reshape(strings.shape)


def _tiles(lengths: Any) -> Iterator[tuple[int, int]]:
    """Where runs of one length begin and end, cut where they are long."""
    edges = np.flatnonzero(np.diff(lengths)) + 1
    bounds = [0, *edges.tolist(), lengths.size]
    for first, stop in itertools.pairwise(bounds):
        if first == stop:
            continue
        step = max(_TILE_BYTES // max(int(lengths[first]), 8), 64)
        yield from ((at, min(at + step, stop)) for at in range(first, stop, step))
