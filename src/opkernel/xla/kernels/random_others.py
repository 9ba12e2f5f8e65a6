"""Random ops beside the plain ones: bits as XLA gives them, numbers between bounds, numbers rounded up or down.

Source: TensorFlow compiler/tf2xla/kernels/rng_bit_generator_op.cc, stateless_random_ops.cc, random_ops_util.cc,
stochastic_cast_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.ops.random.distributions import uniforms_of_words
from opkernel.ops.random.inputs import (
    PHILOX,
    THREEFRY,
    check_algorithm,
    check_philox,
    key_and_counter,
    shape_of,
)
from opkernel.ops.random.rejection import samples_per_parameter
from opkernel.ops.random.stochastic_cast import StochasticRounding
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.kernels.random import filled, stream_of_seed, uniform
from opkernel.xla.philox import PhiloxStream
from opkernel.xla.register_kernel import register_xla_kernel

__all__ = ["between"]


@register_xla_kernel(
    "XlaRngBitGenerator", compile_time_constants=["algorithm", "shape"], factory=True
)
def xla_rng_bit_generator(*, dtype: DataType) -> Callable[..., Any]:
    """Random bits, and the state behind them."""
    if not dtype.is_unsigned:
        raise InvalidArgumentError(f"Random bits are unsigned integers, not {dtype.string}")

    def drawn(algorithm: Any, initial_state: Any, shape: Any) -> tuple[Any, Any]:
        chosen, sizes = check_algorithm(algorithm, 0), shape_of(shape, dtype)
        if chosen == PHILOX and initial_state.shape == (3,):
            return _philox_bits(initial_state, sizes, dtype)
        if chosen not in (PHILOX, THREEFRY) or initial_state.shape != (2,):
            raise InvalidArgumentError(
                f"There is no algorithm {chosen} with a state of the shape {list(initial_state.shape)}"
            )
        kinds = lax().RandomAlgorithm
        kind = kinds.RNG_PHILOX if chosen == PHILOX else kinds.RNG_THREE_FRY
        state, bits = lax().rng_bit_generator(initial_state, sizes, dtype.numpy_dtype, kind)
        return state, bits

    return drawn


def _philox_bits(state: Any, sizes: tuple[int, ...], dtype: DataType) -> tuple[Any, Any]:
    """By a state of a key and a counter of two numbers; narrow types take the lower bits of a word."""
    count, per_block = math.prod(sizes), 2 if dtype.size == 8 else 4
    blocks = -(-count // per_block)
    key, low, high = state
    stream = PhiloxStream(key, low, high)
    after = stream.skipped(jnp().uint64(blocks))
    words = stream.blocks(blocks).reshape(-1)
    words = words.view("uint64") if dtype.size == 8 else words
    bits = words[:count].astype(dtype.numpy_dtype).reshape(sizes)
    return jnp().stack([key, after.low, after.high]), bits


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


@register_xla_kernel("StochasticCastToInt", compile_time_constants=["alg"], factory=True)
def stochastic_cast_to_int(*, Tin: DataType, Tout: DataType) -> Callable[..., Any]:
    """Numbers rounded up as often as they are near the larger integer."""
    rounding = StochasticRounding(Tin, Tout)

    def rounded(input: Any, key: Any, counter: Any, alg: Any) -> Any:
        check_philox(key_and_counter(key, counter, alg))
        # TensorFlow's kernel takes the counter for the key, and the key for the counter
        stream = PhiloxStream(counter[0], jnp().uint64(0), key[0])
        flat = input.reshape(-1)
        inside = rounding.is_rounded(flat, jnp())
        drawn = _drawn(stream, inside, rounding.whole(flat.size), rounding.packet, Tin)
        return rounding.rounded(flat, inside, drawn, jnp()).reshape(input.shape)

    return rounded


def _drawn(stream: PhiloxStream, inside: Any, whole: int, packet: int, dtype: DataType) -> Any:
    """A uniform number for each number: one block for each packet, one for each further fraction."""
    xp, packets = jnp(), whole // packet
    places = packets + xp.cumsum(inside[whole:]) - 1
    rest = uniforms_of_words(stream.blocks_at(places.astype("uint64")), dtype)[:, 0]
    if not packets:
        return rest
    uniforms = uniforms_of_words(stream.blocks(packets), dtype)
    first = xp.tile(uniforms, packet // uniforms.shape[1]).reshape(-1)
    return xp.concatenate([first, rest])
