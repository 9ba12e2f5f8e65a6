"""What numbers are made of random words: uniform, normal and truncated normal ones, integers.

A distribution is a function of a place in a stream, a type and a range of groups; a group has the numbers
of one block, or of a place that it owns alone.

Source: TensorFlow core/lib/random/random_distributions.h, random_distributions_utils.h.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.ops.philox import Philox
from opkernel.ops.random.filling import BLOCKS_PER_OUTPUT, filled
from opkernel.ops.random.libm import log_of_float, sine_and_cosine_of_float
from opkernel.types import DataType

__all__ = [
    "LEAST_UNIFORM",
    "TRUNCATED_AT",
    "Distribution",
    "full_int",
    "normal",
    "normals_of_words",
    "numbers_in_block",
    "truncated_normal",
    "uniform",
    "uniform_int",
    "uniforms_of_words",
]

Array = np.ndarray[Any, Any]

Distribution = Callable[[Philox, tuple[int, ...], DataType], Array]
"""A tensor of random numbers, of a stream, a shape and a type."""

_TILE = 1 << 14
"""Blocks; the words of so many, and what they are computed of, are in the processor's cache."""

LEAST_UNIFORM = 1e-7
"""What counts instead of less, as its logarithm is taken."""

TRUNCATED_AT = 2
"""Truncated numbers are nearer to 0."""

_MANTISSAS = {
    DataType.DT_HALF: (10, 15, np.uint16),
    DataType.DT_BFLOAT16: (7, 127, np.uint16),
    DataType.DT_FLOAT: (23, 127, np.uint32),
}
"""Bits of the mantissa, exponent of 1, and the integer of that size."""


def numbers_in_block(dtype: DataType) -> int:
    """Four words, or two pairs of them."""
    return 2 if dtype.numpy_dtype.itemsize == 8 else 4


def _of_blocks(
    random: Philox,
    shape: tuple[int, ...],
    dtype: DataType,
    of_words: Callable[[Array], Array],
) -> Array:
    """A tensor of the numbers of blocks one after the other."""

    def values(part: slice) -> Array:
        return of_words(random.skip(part.start).blocks(part.stop - part.start))

    return filled(shape, dtype, values, numbers_in_block(dtype), _TILE)


def uniforms_of_words(words: Array, dtype: DataType) -> Array:
    """Numbers from 0 to 1, without 1: uint32 [n, 4] -> [n, 4], of double [n, 2].

    The words are the mantissas of numbers from 1 to 2. They may be written over.
    """
    if dtype == DataType.DT_DOUBLE:
        bits = words.view(np.uint64)
        mantissa = bits << np.uint64(32) & np.uint64((1 << 52) - 1) | bits >> np.uint64(32)
        doubles = (mantissa | np.uint64(1023 << 52)).view(np.float64)
        doubles -= 1
        return doubles
    size, one, integer = _MANTISSAS[dtype]
    words &= np.uint32((1 << size) - 1)
    words |= np.uint32(one << size)
    numbers: Array = words.astype(integer, copy=False).view(dtype.numpy_dtype)
    numbers -= numbers.dtype.type(1)
    return numbers


def uniform(random: Philox, shape: tuple[int, ...], dtype: DataType) -> Array:
    """Numbers from 0 to 1, without 1."""
    return _of_blocks(random, shape, dtype, lambda words: uniforms_of_words(words, dtype))


def full_int(random: Philox, shape: tuple[int, ...], dtype: DataType) -> Array:
    """Integers of the whole range of the type."""
    return _of_blocks(random, shape, dtype, lambda words: words.view(dtype.numpy_dtype))


def uniform_int(low: int, high: int) -> Distribution:
    """Integers from `low` to `high`, without `high`, which is larger."""

    def integers(random: Philox, shape: tuple[int, ...], dtype: DataType) -> Array:
        unsigned = np.dtype(f"u{dtype.numpy_dtype.itemsize}")
        count, least = unsigned.type(high - low), np.array(low, dtype.numpy_dtype).view(unsigned)

        def of_words(words: Array) -> Array:
            numbers: Array = (words.view(unsigned) % count + least).view(dtype.numpy_dtype)
            return numbers

        return _of_blocks(random, shape, dtype, of_words)

    return integers


# Normal numbers


def normals_of_words(words: Array, dtype: DataType) -> Array:
    """Normal numbers, by the transform of Box and Muller: uint32 [n, 4] -> [n, 4], of double [n, 2].

    Those of half and bfloat16 are float, to be rounded.
    """
    if dtype == DataType.DT_DOUBLE:
        first, second = uniforms_of_words(words, dtype).T
        length = np.sqrt(-2.0 * np.log(np.maximum(first, LEAST_UNIFORM)))
        angle = 2 * math.pi * second
        return np.stack([np.sin(angle) * length, np.cos(angle) * length], axis=1)
    uniforms = uniforms_of_words(words, DataType.DT_FLOAT)
    length = np.maximum(uniforms[:, ::2], np.float32(LEAST_UNIFORM))
    length = np.sqrt(np.float32(-2) * log_of_float(length))
    angle = (uniforms[:, 1::2] * np.float64(2 * math.pi)).astype(np.float32)
    sine, cosine = sine_and_cosine_of_float(angle)
    np.multiply(sine, length, out=uniforms[:, ::2])
    np.multiply(cosine, length, out=uniforms[:, 1::2])
    return uniforms


def normal(random: Philox, shape: tuple[int, ...], dtype: DataType) -> Array:
    """Numbers of mean 0 and deviation 1."""
    return _of_blocks(random, shape, dtype, lambda words: normals_of_words(words, dtype))


def truncated_normal(random: Philox, shape: tuple[int, ...], dtype: DataType) -> Array:
    """Normal numbers, those left out whose distance from 0 is 2 or more."""
    group = numbers_in_block(dtype)

    def values(part: slice) -> Array:
        starts = np.arange(part.start, part.stop, dtype=np.uint64)
        starts *= np.uint64(group * BLOCKS_PER_OUTPUT // 4)
        return _first_within_bound(random, starts, dtype)

    return filled(shape, dtype, values, group, _TILE)


def _first_within_bound(random: Philox, starts: Array, dtype: DataType) -> Array:
    """Of each place on, the first normal numbers that are near enough to 0, as many as a block has."""
    group = numbers_in_block(dtype)
    numbers = normals_of_words(random.blocks_at(starts), dtype)
    found = numbers.copy()
    rows = np.flatnonzero(~(np.abs(numbers) < TRUNCATED_AT).all(axis=1))
    numbers = numbers[rows]
    count = np.zeros(len(rows), np.int64)
    while rows.size:
        within = np.abs(numbers) < TRUNCATED_AT
        place = np.cumsum(within, axis=1) + count[:, None]
        row, column = np.nonzero(within & (place <= group))
        found[rows[row], place[row, column] - 1] = numbers[row, column]
        count = place[:, -1]
        left = count < group
        rows, count = rows[left], count[left]
        starts[rows] += np.uint64(1)
        numbers = normals_of_words(random.blocks_at(starts[rows]), dtype)
    return found
