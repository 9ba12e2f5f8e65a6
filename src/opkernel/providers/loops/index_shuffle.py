"""The loop of RandomIndexShuffle: each index is enciphered until it is none too large."""

from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.ops.random import shuffle
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array

_TURNS = 1 << 18
"""Turns of one call, some 20 ns each, as far as can be told."""


@part_of_loops
def _turned(x: Any, bits: int, word: int, mask: Any) -> Any:
    return (x << np.uint64(bits) | x >> np.uint64(word - bits)) & mask


@part_of_loops
def _mixed(x: Any, word: int, mask: Any) -> Any:
    both = _turned(x, 1, word, mask) & _turned(x, 8, word, mask)
    return both ^ _turned(x, 2, word, mask)


@loop(otherwise=shuffle.walk_by_numpy)
def _walk(index: Array, keys: Array, largest: Array, word: int) -> Array:
    """As `Walk` of ops."""
    result = np.empty_like(index)
    half = np.uint64(word)
    mask = (np.uint64(1) << half) - np.uint64(1)
    for row in range(index.size):
        value = index[row]
        is_inside = False
        while not is_inside:
            left, right = value >> half & mask, value & mask
            for turn in range(0, keys.shape[1], 2):
                left = left ^ _mixed(right, word, mask) ^ keys[row, turn]
                right = right ^ _mixed(left, word, mask) ^ keys[row, turn + 1]
            value = left << half | right
            is_inside = value <= largest[row]
        result[row] = value
    return result


def _walk_in_parts(index: Array, keys: Array, largest: Array, word: int) -> Array:
    result = np.empty_like(index)
    turns = (1 << 2 * word) // (int(largest.min()) + 1) + 1
    step = max(_TURNS // turns, 1)
    for start in range(0, len(index), step):
        check_time("shuffling indices")
        part = slice(start, start + step)
        result[part] = _walk(index[part], keys[part], largest[part], word)
    return result


shuffle.register_index_shuffle(_walk_in_parts, LOOPS.kernels)
