"""Strings out of a buffer: a loop writes them as the pickle of a list, which Python reads faster than it cuts strings."""

import pickle
from collections.abc import Iterable

import numpy as np

from opkernel.device import string_buffer
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array

_MARK, _LIST, _STOP = ord("("), ord("l"), ord(".")
_SHORT_BYTES, _BYTES = ord("C"), ord("B")
_LONG = 256
"""The length of such bytes stands in four bytes, that of shorter ones in one."""
_MOST = 1 << 31


def _none(data: Array, begins: Array, ends: Array) -> Array:
    """Cutting the strings takes less time than writing this without a loop."""
    return np.zeros(0, np.uint8)


@loop(otherwise=_none)
def pickled(data: Array, begins: Array, ends: Array) -> Array:
    """The strings between places as the pickle of a list, uint8; nothing where one is too long."""
    size = 3
    for i in range(begins.size):
        length = ends[i] - begins[i]
        if length >= _MOST:
            return np.zeros(0, np.uint8)
        size += length + (2 if length < _LONG else 5)
    out = np.empty(size, np.uint8)
    out[0] = _MARK
    to = 1
    for i in range(begins.size):
        length = ends[i] - begins[i]
        if length < _LONG:
            out[to], out[to + 1] = _SHORT_BYTES, length
            to += 2
        else:
            out[to] = _BYTES
            for k in range(4):
                out[to + 1 + k] = length >> 8 * k & 255
            to += 5
        for k in range(length):
            out[to + k] = data[begins[i] + k]
        to += length
    out[to], out[to + 1] = _LIST, _STOP
    return out


def strings_between(data: Array, begins: Array, ends: Array) -> Iterable[bytes]:
    """As `string_buffer.strings_between`."""
    found = pickled(data, begins, ends)
    if not found.size:
        return string_buffer.strings_between(data, begins, ends)
    strings: list[bytes] = pickle.loads(found)
    return strings
