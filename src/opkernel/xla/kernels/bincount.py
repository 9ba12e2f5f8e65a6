"""Counts of integers, by value. Values that are negative are left out: compiled code cannot refuse them.

Source: TensorFlow compiler/tf2xla/kernels/bincount_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.register_kernel import register_xla_kernel


def _counts(values: Any, size: Any, weights: Any, dtype: DataType, binary: bool) -> Any:
    """The counts [rows, size] of values [rows, values]."""
    if size.ndim or size < 0:
        raise InvalidArgumentError(f"size must be a scalar that is not negative, got {size}")
    if weights.size not in (0, values.size) and not binary:
        raise InvalidArgumentError("Input indices and weights must have the same size.")
    bins = int(size)
    counts = jnp().zeros(check_allocation((len(values), bins), dtype), dtype.numpy_dtype)
    if not bins:
        return counts
    places = jnp().where(values < 0, bins, values)
    place = (np.arange(len(values))[:, np.newaxis], places)
    if binary:
        return counts.at[place].set(1, mode="drop")
    added = weights.reshape(values.shape) if weights.size and values.size else 1
    return counts.at[place].add(added, mode="drop")


@register_xla_kernel("Bincount", compile_time_constants=["size"])
def bincount(arr: Any, size: Any, weights: Any, *, T: DataType) -> Any:
    return _counts(arr.reshape(1, -1), size, weights, T, binary=False)[0]


@register_xla_kernel("DenseBincount", compile_time_constants=["size"])
def dense_bincount(input: Any, size: Any, weights: Any, *, T: DataType, binary_output: bool) -> Any:
    if input.ndim > 2:
        raise InvalidArgumentError(f"Shape must be at most rank 2 but is rank {input.ndim}")
    if weights.size and weights.shape != input.shape:
        raise InvalidArgumentError(
            "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it "
            f"acts as all weights equal to 1. Received {list(weights.shape)}"
        )
    values = input if input.ndim == 2 else input.reshape(1, -1)
    counts = _counts(values, size, weights, T, binary_output)
    return counts if input.ndim == 2 else counts[0]
