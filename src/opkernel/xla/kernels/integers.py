"""Quotients and remainders of integers, and the bits set in them.

Compiled code cannot refuse a zero among the divisors: as in XLA, a quotient by zero has all bits set, and a
remainder by zero is the dividend.

Source: TensorFlow compiler/tf2xla/kernels/binary_ops.cc, unary_ops.cc.
"""

from __future__ import annotations

from typing import Any

from opkernel.ops.kernel_types import INDEX, INTEGERS
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel


@register_xla_kernel(["Div", "TruncateDiv"], types={"T": INTEGERS})
def truncate_div(x: Any, y: Any) -> Any:
    """The quotient, rounded towards 0."""
    return lax().div(*jnp().broadcast_arrays(x, y))


@register_xla_kernel(["Mod", "TruncateMod"], types={"T": INDEX})
def truncate_mod(x: Any, y: Any) -> Any:
    """The remainder, which has the sign of `x`."""
    return lax().rem(*jnp().broadcast_arrays(x, y))


@register_xla_kernel("FloorDiv", types={"T": INTEGERS})
def floor_div(x: Any, y: Any) -> Any:
    """The quotient, rounded down."""
    quotient = truncate_div(x, y)
    return jnp().where(_is_beyond(truncate_mod(x, y), y), quotient - 1, quotient)


@register_xla_kernel("FloorMod", types={"T": INTEGERS})
def floor_mod(x: Any, y: Any) -> Any:
    """The remainder, which has the sign of `y`."""
    remainder = truncate_mod(x, y)
    return jnp().where(_is_beyond(remainder, y), remainder + y, remainder)


def _is_beyond(remainder: Any, divisor: Any) -> Any:
    """Whether a quotient rounded towards 0 is not that rounded down."""
    return (remainder != 0) & ((remainder < 0) != (divisor < 0))


@register_xla_kernel("PopulationCount", types={"T": INTEGERS})
def population_count(x: Any) -> Any:
    """The number of bits set."""
    return lax().population_count(x)
