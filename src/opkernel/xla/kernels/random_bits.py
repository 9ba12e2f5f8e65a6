"""XlaRngBitGenerator: random bits as XLA gives them.

Source: TensorFlow compiler/tf2xla/kernels/rng_bit_generator_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.ops.random.inputs import (
    PHILOX,
    THREEFRY,
    check_algorithm,
    shape_of,
)
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.philox import PhiloxStream
from opkernel.xla.register_kernel import register_xla_kernel


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
