"""Casts of floating-point numbers to integers, with the results of the kernels of the CPU.

XLA itself makes what does not fit the nearest integer, and NaN 0. Processors make it the lowest integer of the width that
they convert to, and keep the bits that the type has. That is what TensorFlow's kernels give, but for types that
its vectors convert in another way than its single numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.ops.kernel_types import COMPLEX, FLOAT8, FLOATS, INTEGERS
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
