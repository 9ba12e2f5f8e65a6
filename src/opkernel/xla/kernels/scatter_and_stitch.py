"""Updates of tensors at given indices. Updates at indices that are out of bounds are dropped, as in TensorFlow's XLA.

Rows of tensors put together and taken apart: DynamicStitch, DynamicPartition, InvertPermutation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.ops.array.scatter import check_tensor_scatter, checked_depth, scattered_shape
from opkernel.ops.array.split_and_stitch import dynamic_partition, merged_shape
from opkernel.ops.sparse.with_dense import rows_and_shape
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel

__all__ = ["CHANGES", "Change", "scattered"]


def scattered(combine: str, tensor: Any, indices: Any, updates: Any) -> Any:
    """A tensor combined with updates at index vectors.

    Args:
        combine: The function of `jax.lax`: `scatter`, `scatter_add` and so on.
        tensor: The tensor.
        indices: [outer..., depth]; what is out of bounds counts for nothing.
        updates: [outer..., rest...], for each index vector the slice of the tensor that it names.
    """
    if 0 in (*tensor.shape, *updates.shape):
        return tensor
    outer, depth = indices.ndim - 1, indices.shape[-1]
    numbers = lax().ScatterDimensionNumbers(
        update_window_dims=tuple(range(outer, updates.ndim)),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
    )
    return getattr(lax(), combine)(tensor, indices, updates, numbers, mode="drop")


@register_xla_kernel("ScatterNd", compile_time_constants=["shape"])
def scatter_nd(indices: Any, updates: Any, shape: Any, *, T: DataType, xp: Any) -> Any:
    output = xp.zeros(scattered_shape(indices, updates, shape, T), dtype=updates.dtype)
    checked_depth(output, indices, updates)
    return CHANGES["Add"](output, indices, updates)


Change = Callable[[Any, Any, Any], Any]
"""A tensor combined with updates at index vectors."""


def _numbers_or(updates: Any, other: float) -> Any:
    """Updates without what is no number, so that it loses."""
    if updates.dtype.kind in "iu":
        return updates
    return jnp().where(jnp().isnan(updates), jnp().asarray(other, dtype=updates.dtype), updates)


def _add(tensor: Any, indices: Any, updates: Any) -> Any:
    combine = "scatter_max" if tensor.dtype == np.bool_ else "scatter_add"
    return scattered(combine, tensor, indices, updates)


def _divide(tensor: Any, indices: Any, updates: Any) -> Any:
    """By the product of the updates of a place, integers towards 0."""
    divisors = scattered("scatter_mul", jnp().ones_like(tensor), indices, updates)
    return lax().div(tensor, divisors)


CHANGES: dict[str, Change] = {
    "Add": _add,
    "Div": _divide,
    "Max": lambda x, at, by: scattered("scatter_max", x, at, _numbers_or(by, -np.inf)),
    "Min": lambda x, at, by: scattered("scatter_min", x, at, _numbers_or(by, np.inf)),
    "Mul": lambda x, at, by: scattered("scatter_mul", x, at, by),
    "Sub": lambda x, at, by: scattered("scatter_add", x, at, -by),
    "Update": lambda x, at, by: scattered("scatter", x, at, by),
}
"""What the scatter ops do, by the ends of their names."""


def _register(op: str, change: Change) -> None:
    def tensor_scatter(tensor: Any, indices: Any, updates: Any) -> Any:
        check_tensor_scatter(tensor, indices, updates)
        checked_depth(tensor, indices, updates)
        return change(tensor, indices, updates)

    tensor_scatter.__name__ = op
    register_xla_kernel(op)(tensor_scatter)


for _name in ("Update", "Add", "Sub", "Max", "Min"):
    _register(f"TensorScatter{_name}", CHANGES[_name])


@register_xla_kernel("SparseToDense", compile_time_constants=["output_shape"])
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any,
    *,
    T: DataType,
    xp: Any,
) -> Any:
    rows, shape = rows_and_shape(sparse_indices, output_shape, sparse_values, default_value, T)
    values = xp.broadcast_to(sparse_values, (len(rows),))
    return scattered("scatter", xp.full(shape, default_value), rows, values)


# How many rows go where must be known.
register_xla_kernel("DynamicPartition", compile_time_constants=["partitions"])(dynamic_partition)


@register_xla_kernel(["DynamicStitch", "ParallelDynamicStitch"], compile_time_constants=["indices"])
def dynamic_stitch(indices: list[Any], data: list[Any], *, T: DataType, xp: Any) -> Any:
    """Rows that no index names are zeros."""
    shape = merged_shape(indices, data, T)
    rows = [
        part.reshape((places.size, *shape[1:])) for places, part in zip(indices, data, strict=True)
    ]
    places = np.concatenate([each.reshape(-1) for each in indices])
    source = np.full(shape[0], len(places))
    source[places] = np.arange(len(places))  # the last of several counts
    zero = xp.zeros((1, *shape[1:]), dtype=data[0].dtype)
    return xp.concatenate([*rows, zero])[source]


@register_xla_kernel("InvertPermutation")
def invert_permutation(x: Any, *, xp: Any) -> Any:
    if x.ndim != 1:
        raise InvalidArgumentError("invert_permutation expects a 1D vector.")
    places = xp.arange(len(x), dtype=x.dtype)
    return xp.zeros_like(x).at[x].set(places, mode="drop")
