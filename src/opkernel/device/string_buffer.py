"""Strings on their way to algorithms over bytes, and back: all in one buffer, one after the other, with splits."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import in_time

_PIECE = 1 << 12
"""Strings whose objects stay in the cache from one look to the next."""


class StringBuffer(NamedTuple):
    """Strings in one buffer.

    Attributes:
        data: The bytes of all strings, uint8.
        splits: Where each string begins, and the end of the last one, int64 [strings + 1].
    """

    data: Any
    splits: Any


def joined_strings(strings: Any, padding: int = 0) -> StringBuffer:
    """The buffer of the strings of an array, in order.

    Args:
        strings: An array of bytes objects, of any shape.
        padding: So many zeros stand behind the last string.
    """
    flat = strings.reshape(-1)
    pieces, splits = [], np.zeros(flat.size + 1, np.int64)
    for at in range(0, flat.size, _PIECE):
        piece = flat[at : at + _PIECE].tolist()
        lengths = np.fromiter(map(len, piece), np.int64, len(piece))
        np.cumsum(lengths, out=splits[at + 1 : at + 1 + len(piece)])
        splits[at + 1 : at + 1 + len(piece)] += splits[at]
        pieces.append(b"".join(piece))
    data = pieces[0] if len(pieces) == 1 and not padding else b"".join([*pieces, bytes(padding)])
    return StringBuffer(np.frombuffer(data, np.uint8), splits)


def parts_of_buffer(splits: Any, size: int) -> list[slice]:
    """Runs of strings that begin within so many bytes; together they are all strings.

    Args:
        splits: The splits of a buffer.
        size: The bytes of a run; those of its last string beyond it are more.
    """
    marks = np.arange(splits[0], splits[-1] + 1, size)
    bounds = sorted({0, *np.searchsorted(splits[:-1], marks).tolist(), splits.size - 1})
    return [slice(a, b) for a, b in pairwise(bounds)]


def string_parts(
    shape: tuple[int, ...], data: bytes, begins: Sequence[int], ends: Sequence[int]
) -> Any:
    """The tensor of the strings between places of a buffer.

    Raises:
        ResourceExhaustedError: they are more than the budget has left.
    """
    return string_tensor(shape, (data[a:b] for a, b in in_time(zip(begins, ends, strict=True))))
