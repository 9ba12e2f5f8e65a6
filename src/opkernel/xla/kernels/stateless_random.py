"""Numbers that a seed, or a key and a counter, determines: the streams of the CPU's kernels.

Philox4x32-10 in programs gives the blocks of streams whose key and counter are values of the program;
opkernel.ops.random.philox is the same of known numbers. Integers and uniform numbers have the same bits, normal
numbers may differ in the last ones.
Bounds that leave no integer cannot be refused: any may be drawn.

Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011); TensorFlow core/kernels/
stateless_random_ops.cc, stateless_random_ops_v2.cc; compiler/tf2xla/kernels/stateless_random_ops.cc, random_ops_util.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.ops.random.distributions import (
    LEAST_UNIFORM,
    TRUNCATED_AT,
    numbers_in_block,
    samples_per_parameter,
    uniforms_of_words,
)
from opkernel.ops.random.inputs import (
    PHILOX,
    SEED_KEY,
    check_philox,
    check_scalar_bounds,
    check_seed,
    check_signed,
    key_and_counter,
    shape_of,
)
from opkernel.ops.random.multinomial import samples_of
from opkernel.ops.random.philox import BLOCKS_PER_OUTPUT, MULTIPLIERS, ROUNDS, WEYL
from opkernel.records import dataclass
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel

__all__ = [
    "Distribution",
    "between",
    "classes",
    "filled",
    "full_int",
    "normal",
    "stream_of_seed",
    "truncated_normal",
    "uniform",
    "uniform_int",
]


_MASK = 0xFFFFFFFF


@dataclass(frozen=True, eq=False)
class PhiloxStream:
    """A place in a stream of random blocks; a block is four words of 32 bits.

    Attributes:
        key: Chooses the stream: a scalar of uint64.
        low, high: The halves of the number of the next block, also.
    """

    key: Any
    low: Any
    high: Any

    def skipped(self, blocks: Any) -> PhiloxStream:
        """The places at distances from here: of blocks of uint64, any number at once."""
        low = self.low + blocks
        return PhiloxStream(self.key, low, self.high + (low < blocks))  # with the carry

    def blocks_at(self, offsets: Any) -> Any:
        """The blocks at distances from here: uint64 [n] -> uint32 [n, 4]."""
        place = self.skipped(offsets)
        words = [half for pair in (place.low, place.high) for half in _halves(pair)]
        return _enciphered(self.key, words)

    def blocks(self, count: int) -> Any:
        """The next blocks: uint32 [count, 4]."""
        return self.blocks_at(jnp().arange(count, dtype=jnp().uint64))


def _halves(value: Any) -> tuple[Any, Any]:
    """The lower and the upper 32 bits of uint64, as uint64."""
    return value & _MASK, lax().shift_right_logical(value, jnp().full_like(value, 32))


def _enciphered(key: Any, words: list[Any]) -> Any:
    c0, c1, c2, c3 = words
    k0, k1 = _halves(key)
    for _ in range(ROUNDS):
        (low0, high0), (low1, high1) = _halves(c0 * MULTIPLIERS[0]), _halves(c2 * MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + WEYL[0]) & _MASK, (k1 + WEYL[1]) & _MASK
    return jnp().stack([c0, c1, c2, c3], axis=-1).astype(jnp().uint32)


Distribution = Callable[[PhiloxStream, int, DataType], Any]
"""At least so many numbers of a stream."""


# Streams


def stream_of_seed(seed: Any) -> PhiloxStream:
    """The stream of a seed, which is scrambled first."""
    check_seed(seed)
    check_signed(seed)
    first, second = seed.astype(jnp().uint64)
    scrambler = PhiloxStream(jnp().uint64(SEED_KEY), first, second)
    key, high = scrambler.blocks(1).view(jnp().uint64)[0]
    return PhiloxStream(key, jnp().uint64(0), high)


@register_xla_kernel("StatelessRandomGetKeyCounter")
def stateless_random_get_key_counter(seed: Any) -> tuple[Any, Any]:
    """The key and the counter of a seed."""
    stream = stream_of_seed(seed)
    return stream.key[None], jnp().stack([stream.low, stream.high])


@register_xla_kernel("StatelessRandomGetKeyCounterAlg")
def stateless_random_get_key_counter_alg(seed: Any) -> tuple[Any, Any, Any]:
    """The same, and the algorithm."""
    return (*stateless_random_get_key_counter(seed), stateless_random_get_alg())


@register_xla_kernel("StatelessRandomGetAlg")
def stateless_random_get_alg() -> Any:
    """The algorithm, which is known at compile time."""
    return np.array(PHILOX, np.int32)


# Distributions


def uniform(stream: PhiloxStream, count: int, dtype: DataType) -> Any:
    """Numbers from 0 to 1, without 1."""
    return uniforms_of_words(stream.blocks(-(-count // numbers_in_block(dtype))), dtype)


def full_int(stream: PhiloxStream, count: int, dtype: DataType) -> Any:
    """Integers of the whole range of their type."""
    return stream.blocks(-(-count // numbers_in_block(dtype))).view(dtype.numpy_dtype)


def uniform_int(minval: Any, maxval: Any) -> Distribution:
    """Integers between bounds, which must be scalars; bounds that leave no integer cannot be refused."""
    check_scalar_bounds(minval, maxval)

    def integers(stream: PhiloxStream, count: int, dtype: DataType) -> Any:
        unsigned = np.dtype(f"u{dtype.numpy_dtype.itemsize}")
        low, high = minval.astype(unsigned), maxval.astype(unsigned)
        words = full_int(stream, count, dtype).view(unsigned)
        return lax().rem(words, jnp().full_like(words, high - low)) + low

    return integers


def _normals_of_words(words: Any, dtype: DataType) -> Any:
    """By the transform of Box and Muller; those of half and bfloat16 are float, to be rounded."""
    xp = jnp()
    wide = DataType.DT_DOUBLE if dtype is DataType.DT_DOUBLE else DataType.DT_FLOAT
    uniforms = uniforms_of_words(words, wide)
    length = xp.sqrt(-2 * xp.log(xp.maximum(uniforms[:, ::2], LEAST_UNIFORM)))
    angle = 2 * math.pi * uniforms[:, 1::2]
    pairs = xp.stack([xp.sin(angle) * length, xp.cos(angle) * length], axis=-1)
    return pairs.reshape(uniforms.shape)


def normal(stream: PhiloxStream, count: int, dtype: DataType) -> Any:
    return _normals_of_words(stream.blocks(-(-count // numbers_in_block(dtype))), dtype)


def truncated_normal(stream: PhiloxStream, count: int, dtype: DataType) -> Any:
    """Groups of numbers, each of the first of a place that are near enough to 0."""
    xp, group = jnp(), numbers_in_block(dtype)
    starts = xp.arange(-(-count // group), dtype=xp.uint64) * (group * BLOCKS_PER_OUTPUT // 4)
    first = _normals_of_words(stream.blocks_at(starts), dtype)

    def is_unfinished(state: Any) -> Any:
        return (state[1] < group).any()

    def take_block(state: Any) -> Any:
        found, taken, block = state
        numbers = _normals_of_words(stream.blocks_at(starts + block), dtype)
        for column in range(group):
            number = numbers[:, column]
            within = xp.abs(number) < TRUNCATED_AT
            is_place = within[:, None] & (taken[:, None] == xp.arange(group))
            found = xp.where(is_place, number[:, None], found)
            taken = taken + within
        return found, taken, block + 1

    state = xp.zeros_like(first), xp.zeros(len(starts), xp.int32), xp.uint64(0)
    return lax().while_loop(is_unfinished, take_block, state)[0]


def filled(
    stream: PhiloxStream, sizes: tuple[int, ...], dtype: DataType, distribution: Distribution
) -> Any:
    """A tensor of numbers of a distribution."""
    count = math.prod(sizes)
    if not count:
        return jnp().zeros(sizes, dtype.numpy_dtype)
    return distribution(stream, count, dtype).reshape(-1)[:count].reshape(sizes)


# Kernels


def _register(op: str, distribution_of: Callable[..., Distribution]) -> None:
    """Register the kernels of an op of a seed, and of a key and a counter; further inputs choose the distribution."""

    @register_xla_kernel(op, compile_time_constants=["shape"], factory=True)
    def make_seeded(*, dtype: DataType) -> Callable[..., Any]:
        def seeded(shape: Any, seed: Any, *bounds: Any) -> Any:
            distribution = distribution_of(*bounds)
            return filled(stream_of_seed(seed), shape_of(shape, dtype), dtype, distribution)

        return seeded

    @register_xla_kernel(f"{op}V2", compile_time_constants=["shape", "alg"], factory=True)
    def make_keyed(*, dtype: DataType) -> Callable[..., Any]:
        def keyed(shape: Any, key: Any, counter: Any, alg: Any, *bounds: Any) -> Any:
            distribution, algorithm = distribution_of(*bounds), key_and_counter(key, counter, alg)
            sizes = shape_of(shape, dtype)
            if 0 not in sizes:  # for no numbers, any algorithm will do
                check_philox(algorithm)
            return filled(PhiloxStream(key[0], *counter[:2]), sizes, dtype, distribution)

        return keyed


_register("StatelessRandomUniform", lambda: uniform)
_register("StatelessRandomNormal", lambda: normal)
_register("StatelessTruncatedNormal", lambda: truncated_normal)
_register("StatelessRandomUniformFullInt", lambda: full_int)
_register("StatelessRandomUniformInt", uniform_int)


@register_xla_kernel("StatelessMultinomial", compile_time_constants=["num_samples"], factory=True)
def stateless_multinomial(*, output_dtype: DataType) -> Callable[..., Any]:
    """Classes by their logits, of a seed."""

    def drawn(logits: Any, num_samples: Any, seed: Any) -> Any:
        sizes = len(logits), samples_of(logits, num_samples, output_dtype)
        return classes(logits, filled(stream_of_seed(seed), sizes, DataType.DT_DOUBLE, uniform))

    return drawn


def classes(logits: Any, numbers: Any) -> Any:
    """The classes at which the sums of probabilities pass uniform numbers, row by row."""
    xp = jnp()
    finite, wide = xp.isfinite(logits), logits.astype(xp.float64)
    largest = xp.where(finite, wide, -xp.inf).max(axis=1, keepdims=True)
    sums = xp.cumsum(xp.where(finite, xp.exp(wide - largest), 0), axis=1)
    return jax().vmap(lambda row, at: xp.searchsorted(row, at, side="right"))(
        sums, numbers * sums[:, -1:]
    )


@register_xla_kernel(
    "StatelessParameterizedTruncatedNormal", compile_time_constants=["shape"], factory=True
)
def stateless_parameterized_truncated_normal(*, dtype: DataType) -> Callable[..., Any]:
    """By the inverse of the distribution function: other numbers than the CPU's, which are drawn till one fits."""

    def drawn(shape: Any, seed: Any, means: Any, stddevs: Any, minvals: Any, maxvals: Any) -> Any:
        sizes = shape_of(shape, dtype)
        batch = jnp().broadcast_shapes(*(one.shape for one in (means, stddevs, minvals, maxvals)))
        samples_per_parameter(sizes, batch)
        numbers = filled(stream_of_seed(seed), sizes, DataType.DT_DOUBLE, uniform)
        parameters = (one.astype("float64") for one in (means, stddevs, minvals, maxvals))
        return between(numbers, *parameters).astype(dtype.numpy_dtype)

    return drawn


def between(uniforms: Any, mean: Any, deviation: Any, low: Any, high: Any) -> Any:
    """Normal numbers between bounds, by uniform ones; mirrored where the bounds are above the mean, to be exact there."""
    xp, special = jnp(), jax("jax.scipy.special")
    sign = xp.where(low > mean, -1.0, 1.0)
    ends = sign * (low - mean) / deviation, sign * (high - mean) / deviation
    least, most = special.ndtr(xp.minimum(*ends)), special.ndtr(xp.maximum(*ends))
    quantile = least + uniforms * (most - least)
    return xp.clip(sign * special.ndtri(quantile) * deviation + mean, low, high)
