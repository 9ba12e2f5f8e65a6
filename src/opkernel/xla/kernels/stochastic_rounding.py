"""StochasticCastToInt: numbers rounded up as often as they are near the larger integer.

Source: TensorFlow compiler/tf2xla/kernels/stochastic_cast_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.ops.random.distributions import uniforms_of_words
from opkernel.ops.random.inputs import (
    check_philox,
    key_and_counter,
)
from opkernel.ops.random.stochastic_cast import StochasticRounding
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.philox import PhiloxStream
from opkernel.xla.register_kernel import register_xla_kernel


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
