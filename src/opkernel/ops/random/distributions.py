"""What numbers are made of random words: uniform, normal and truncated normal ones, integers.

A distribution is a function of a place in a stream, a type and a range of groups; a group has the numbers
of one block, or of a place that it owns alone. Other numbers take as many random words as they need: each of
these has a stream of its own.

log, sin and cos of float are rounded as the C library rounds them. TensorFlow's normal numbers come from these
functions, so their last bits are part of its streams. NumPy's own differ by a unit in every fourth result. All
are polynomials in double, rounded once.

Source: TensorFlow core/lib/random/random_distributions.h, random_distributions_utils.h; the macro UNIFORM of
core/kernels/random_poisson_op.cc and random_binomial_op.cc; RandomSampleBuffer in stateless_random_gamma_op.h;
the single-precision functions of Arm's optimized routines, which glibc has.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.ops.math.error_functions import polynomial
from opkernel.ops.random.philox import BLOCKS_PER_OUTPUT, Philox, filled
from opkernel.types import Array, DataType

# log: x = 2^k z, with z near one of 16 centres c: log x = log1p(z/c - 1) + log c + k log 2

_LEAST_Z_BITS = np.int32(0x3F330000)
_EXPONENT_BITS = np.int32(-(1 << 23))
_LOG_2 = float.fromhex("0x1.62e42fefa39efp-1")


def _numbers(text: str) -> list[float]:
    return [float.fromhex(number) for number in text.split()]


_LOG1P = _numbers("-0x1.00ea348b88334p-2 0x1.5575b0be00b6ap-2 -0x1.ffffef20a4123p-2")
_SINE = _numbers("-0x1.555545995a603p-3 0x1.1107605230bc4p-7 -0x1.994eb3774cf24p-13")
_COSINE = _numbers(
    "-0x1.ffffffd0c621cp-2 0x1.55553e1068f19p-5 -0x1.6c087e89a359dp-10 0x1.99343027bf8c3p-16"
)
_CENTRES = """
0x1.661ec79f8f3bep+0 -0x1.57bf7808caadep-2 0x1.571ed4aaf883dp+0 -0x1.2bef0a7c06ddbp-2
0x1.49539f0f010bp+0 -0x1.01eae7f513a67p-2 0x1.3c995b0b80385p+0 -0x1.b31d8a68224e9p-3
0x1.30d190c8864a5p+0 -0x1.6574f0ac07758p-3 0x1.25e227b0b8eap+0 -0x1.1aa2bc79c81p-3
0x1.1bb4a4a1a343fp+0 -0x1.a4e76ce8c0e5ep-4 0x1.12358f08ae5bap+0 -0x1.1973c5a611cccp-4
0x1.0953f419900a7p+0 -0x1.252f438e10c1ep-5 0x1p+0 0x0p+0
0x1.e608cfd9a47acp-1 0x1.aa5aa5df25984p-5 0x1.ca4b31f026aap-1 0x1.c5e53aa362eb4p-4
0x1.b2036576afce6p-1 0x1.526e57720db08p-3 0x1.9c2d163a1aa2dp-1 0x1.bc2860d22477p-3
0x1.886e6037841edp-1 0x1.1058bc8a07ee1p-2 0x1.767dcf5534862p-1 0x1.4043057b6ee09p-2
"""
_INVERSES, _LOGS = np.array(_numbers(_CENTRES)).reshape(16, 2).T.copy()


def log_of_float(x: Array) -> Array:
    """log(x) of positive normal numbers: float32 -> float32."""
    bits = x.view(np.int32)
    distance = bits - _LEAST_Z_BITS
    z = (bits - (distance & _EXPONENT_BITS)).view(np.float32)
    centre = (distance >> 19 & 15).astype(np.intp)
    r = _INVERSES.take(centre)
    r *= z
    r -= 1
    log = _LOGS.take(centre)
    log += (distance >> 23) * _LOG_2
    log += r
    square = r * r
    r *= _LOG1P[1]
    r += _LOG1P[2]
    r *= square
    square *= square
    square *= _LOG1P[0]
    r += square
    r += log
    return r.astype(np.float32)


# sin and cos: of the distance to the nearest multiple of pi/2, which says how they are swapped and negated

_QUARTERS_PER_RADIAN = float.fromhex("0x1.45F306DC9C883p-1")
_QUARTER = float.fromhex("0x1.921FB54442D18p0")


def sine_and_cosine_of_float(x: Array) -> tuple[Array, Array]:
    """sin(x) and cos(x) of numbers from 0 to 2 pi: float32 -> float32."""
    near = x.astype(np.float64)
    quarter = np.rint(near * _QUARTERS_PER_RADIAN)
    near -= quarter * _QUARTER
    square = near * near
    sine = polynomial(square, _SINE)
    sine *= square * near
    sine += near
    cosine = polynomial(square, _COSINE)
    cosine *= square
    cosine += 1
    sine, cosine = sine.astype(np.float32), cosine.astype(np.float32)
    _turn(sine.view(np.uint32), cosine.view(np.uint32), quarter.astype(np.uint32))
    return sine, cosine


def _turn(sine: Array, cosine: Array, quarters: Array) -> None:
    """Swap and negate the bits of sines and cosines, as an angle gets larger by quarters of a turn."""
    swapped = np.negative(quarters & 1)
    swapped &= sine ^ cosine
    sine ^= swapped
    cosine ^= swapped
    sine ^= (quarters & 2) << 30
    cosine ^= (quarters + 1 & 2) << 30


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
    random: Philox, shape: tuple[int, ...], dtype: DataType, of_words: Callable[[Array], Array]
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

        def of_words(words: Array) -> Any:
            return (words.view(unsigned) % count + least).view(dtype.numpy_dtype)

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


_TILE_OF_SAMPLES = 1 << 13
"""Numbers."""


class Streams:
    """A place in the stream for each of some numbers."""

    def __init__(self, random: Philox, starts: Array) -> None:
        self._random = random
        self._next = starts.copy()

    def take(self, rows: Array) -> Array:
        """The next block of some of them: indices [n] -> uint32 [n, 4]."""
        words = self._random.blocks_at(self._next[rows])
        self._next[rows] += np.uint64(1)
        return words


class Buffer:
    """What is made of blocks, handed out one by one, the last one of a block first.

    Args:
        streams: Where blocks come from; several buffers take turns.
        values: What is made of blocks: uint32 [n, 4] -> [n, size].
        count: How many streams there are.
        size: How many values a block makes.
    """

    def __init__(
        self, streams: Streams, values: Callable[[Array], Array], count: int, size: int
    ) -> None:
        self._streams, self._values, self._size = streams, values, size
        self._kept = np.empty((count, size), values(np.zeros((0, 4), np.uint32)).dtype)
        self._left = np.zeros(count, np.int8)

    def draw(self, rows: Array) -> Array:
        """One value for each of some numbers."""
        empty = rows[self._left[rows] == 0]
        if empty.size:
            self._kept[empty] = self._values(self._streams.take(empty))
            self._left[empty] = self._size
        self._left[rows] -= 1
        return self._kept[rows, self._left[rows]]


def samples_per_parameter(shape: tuple[int, ...], parameters: tuple[int, ...]) -> int:
    """How many numbers of each parameter a tensor has, whose last dimensions are theirs.

    Raises:
        InvalidArgumentError: the last dimensions are not.
    """
    if shape[len(shape) - len(parameters) :] != parameters or len(shape) < len(parameters):
        raise InvalidArgumentError("Shape passed in must end with broadcasted shape.")
    return math.prod(shape[: len(shape) - len(parameters)])


def sampled(
    random: Philox,
    shape: tuple[int, ...],
    dtype: DataType,
    count: int,
    draw: Callable[[Philox, Array, Array], Array],
) -> Array:
    """A tensor of numbers of several parameters, which its last dimensions run through.

    The streams belong to the numbers of the first parameter, then to those of the second, and so on.

    Args:
        random: The stream that theirs begin in, every 256 blocks.
        shape: The shape.
        dtype: The type.
        count: How many numbers of each parameter there are.
        draw: The numbers, of the stream, their parameters' indices and their own.
    """

    def values(part: slice) -> Array:
        numbers = np.arange(part.start, part.stop, dtype=np.uint64)
        drawn = draw(random, (numbers // np.uint64(count)).astype(np.intp), numbers)
        # Half is rounded twice, as by TensorFlow.
        return drawn.astype(np.float32) if dtype == DataType.DT_HALF else drawn

    of_parameters = filled((math.prod(shape),), dtype, values, 1, _TILE_OF_SAMPLES)
    return np.ascontiguousarray(of_parameters.reshape(-1, max(count, 1)).T).reshape(shape)


def starts_of(numbers: Array) -> Array:
    """Where the streams of numbers begin."""
    return numbers * np.uint64(BLOCKS_PER_OUTPUT)
