"""Complex numbers from their parts."""

from __future__ import annotations

from typing import Any

from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel


@register_xla_kernel("Complex")
def make_complex(real: Any, imag: Any) -> Any:
    """As `real + 1j * imag`, which would make NaN of infinities."""
    return lax().complex(*jnp().broadcast_arrays(real, imag))
