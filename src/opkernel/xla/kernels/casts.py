"""Casts of floating-point numbers to integers, with the results of the kernels of the CPU.

XLA itself makes what does not fit the nearest integer, and NaN 0. Processors make it the lowest integer of the width that
they convert to, and keep the bits that the type has. That is what TensorFlow's kernels give, but for types that
its vectors convert in another way than its single numbers.

Quotients and remainders of integers, and the bits set in them.

Compiled code cannot refuse a zero among the divisors: as in XLA, a quotient by zero has all bits set, and a
remainder by zero is the dividend.

Complex numbers from their parts.

Source: TensorFlow compiler/tf2xla/kernels/binary_ops.cc, unary_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.ops.kernel_types import COMPLEX, FLOAT8, FLOATS, INDEX, INTEGERS
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel

_FROM_32_BITS = frozenset(
    {
        *(DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32),
        *(DataType.DT_UINT8, DataType.DT_UINT16),
    }
)


@register_xla_kernel(
    "Cast", types={"SrcT": [*FLOATS, *FLOAT8, *COMPLEX], "DstT": INTEGERS}, factory=True
)
def cast_to_integers(*, SrcT: DataType, DstT: DataType) -> Callable[[Any], Any]:
    target = DstT.numpy_dtype

    def cast(x: Any) -> Any:
        numbers = x.real if SrcT in COMPLEX else x
        if numbers.dtype.itemsize < 4:
            numbers = numbers.astype("float32")
        if DstT in _FROM_32_BITS:
            return _converted(numbers, 32).astype(target)
        if DstT is not DataType.DT_UINT64:
            return _converted(numbers, 64).astype(target)
        half = 2.0**63
        is_large = numbers >= half
        low = _converted(jnp().where(is_large, numbers - half, numbers), 64).astype(target)
        return jnp().where(is_large, low ^ target.type(1 << 63), low)

    return cast


def _converted(x: Any, bits: int) -> Any:
    """Numbers as integers of so many bits: the lowest one where they do not fit, and for NaN."""
    lowest = -(2.0 ** (bits - 1))
    fits = (x > lowest - 1) & (x < -lowest)
    return lax().convert_element_type(jnp().where(fits, x, lowest), f"int{bits}")


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


@register_xla_kernel("Complex")
def make_complex(real: Any, imag: Any) -> Any:
    """As `real + 1j * imag`, which would make NaN of infinities."""
    return lax().complex(*jnp().broadcast_arrays(real, imag))
