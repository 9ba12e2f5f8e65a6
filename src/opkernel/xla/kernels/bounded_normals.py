"""StatelessParameterizedTruncatedNormal: normal numbers between bounds, of a seed.

Source: TensorFlow compiler/tf2xla/kernels/stateless_random_ops.cc, random_ops_util.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.ops.random.inputs import (
    shape_of,
)
from opkernel.ops.random.rejection import samples_per_parameter
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jax, jnp
from opkernel.xla.kernels.random import filled, stream_of_seed, uniform
from opkernel.xla.register_kernel import register_xla_kernel

__all__ = ["between"]


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
