"""Strings on their way to algorithms over bytes, and back: all in one buffer, one after the other, with splits."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.budget import check_time

_PIECE = 1 << 12
"""Strings whose objects stay in the cache from one look to the next."""


_BATCH_BYTES = 1 << 20
"""So many bytes of strings are computed on at once."""


class StringBuffer(NamedTuple):
    """Strings in one buffer.

    Attributes:
        data: The bytes of all strings, uint8.
        splits: Where each string begins, and the end of the last one, int64 [strings + 1].
    """

    data: Any
    splits: Any


def joined_strings(strings: Any) -> StringBuffer:
    """The buffer of the strings of an array of any shape, in order."""
    flat = strings.reshape(-1)
    pieces, splits = [], np.zeros(flat.size + 1, np.int64)
    for at in range(0, flat.size, _PIECE):
        piece = flat[at : at + _PIECE].tolist()
        splits[at + 1 : at + 1 + len(piece)] = np.fromiter(map(len, piece), np.int64, len(piece))
        pieces.append(b"".join(piece))
    np.cumsum(splits, out=splits)
    return StringBuffer(np.frombuffer(b"".join(pieces), np.uint8), splits)


class StringBatch(NamedTuple):
    """Some strings of a tensor, and their lengths, int64."""

    texts: list[bytes]
    lengths: Any

    def joined(self) -> StringBuffer:
        """The buffer of the strings."""
        splits = np.zeros(len(self.texts) + 1, np.int64)
        np.cumsum(self.lengths, out=splits[1:])
        return StringBuffer(np.frombuffer(b"".join(self.texts), np.uint8), splits)


def string_batches(strings: Any) -> Iterator[StringBatch]:
    """The strings of an array in order, some of few bytes at a time, with a look at the clock before each batch."""
    flat, at = strings.reshape(-1), 0
    while at < flat.size:
        check_time("computing on strings")
        texts = flat[at : at + _PIECE].tolist()
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        count = max(int(np.searchsorted(np.cumsum(lengths), _BATCH_BYTES)), 1)
        yield StringBatch(texts[:count], lengths[:count])
        at += min(count, len(texts))


def strings_between(data: Any, begins: Any, ends: Any) -> Iterable[bytes]:
    """The strings between places of a buffer.

    Args:
        data: The bytes, uint8.
        begins: Where each string begins, int64.
        ends: The place behind each.
    """
    whole = data.tobytes()
    return [whole[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


def counts_in_strings(flags: Any, splits: Any) -> Any:
    """How many bytes of each string are flagged, int64."""
    lengths = np.diff(splits)
    counts, some = np.zeros(lengths.size, np.int64), np.flatnonzero(lengths)
    if some.size:
        counts[some] = np.add.reduceat(flags, splits[:-1][some], dtype=np.int64)
    return counts


def parts_of_buffer(splits: Any, size: int) -> list[slice]:
    """Runs of strings that begin within so many bytes; together they are all strings.

    Args:
        splits: The splits of a buffer.
        size: The bytes of a run; those of its last string beyond it are more.
    """
    marks = np.arange(splits[0], splits[-1] + 1, size)
    bounds = sorted({0, *np.searchsorted(splits[:-1], marks).tolist(), splits.size - 1})
    return [slice(a, b) for a, b in pairwise(bounds)]
