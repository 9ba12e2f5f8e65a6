"""Updates of tensors at given indices. Updates at indices that are out of bounds are dropped, as in TensorFlow's XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.ops.array.scatter import check_tensor_scatter, checked_depth, scattered_shape
from opkernel.ops.sparse.to_dense import rows_and_shape
from opkernel.types import DataType
from opkernel.xla.jax_numpy import lax
from opkernel.xla.register_kernel import register_xla_kernel

__all__ = ["scattered"]


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


def _checked(combine: str, tensor: Any, indices: Any, updates: Any) -> Any:
    checked_depth(tensor, indices, updates)
    return scattered(combine, tensor, indices, updates)


@register_xla_kernel("ScatterNd", compile_time_constants=["shape"])
def scatter_nd(indices: Any, updates: Any, shape: Any, *, T: DataType, xp: Any) -> Any:
    output = xp.zeros(scattered_shape(indices, updates, shape, T), dtype=updates.dtype)
    combine = "scatter_max" if T is DataType.DT_BOOL else "scatter_add"
    return _checked(combine, output, indices, updates)


def _register(op: str, combine: str, prepared: Callable[[Any, Any], Any]) -> None:
    def tensor_scatter(tensor: Any, indices: Any, updates: Any, *, xp: Any) -> Any:
        check_tensor_scatter(tensor, indices, updates)
        return _checked(combine, tensor, indices, prepared(updates, xp))

    tensor_scatter.__name__ = op
    register_xla_kernel(op)(tensor_scatter)


def _numbers_or(other: float) -> Callable[[Any, Any], Any]:
    """Replaces what is no number, so that it loses."""

    def prepared(updates: Any, xp: Any) -> Any:
        if updates.dtype.kind in "iu":
            return updates
        return xp.where(xp.isnan(updates), xp.asarray(other, dtype=updates.dtype), updates)

    return prepared


_register("TensorScatterUpdate", "scatter", lambda updates, xp: updates)
_register("TensorScatterAdd", "scatter_add", lambda updates, xp: updates)
_register("TensorScatterSub", "scatter_add", lambda updates, xp: -updates)
_register("TensorScatterMax", "scatter_max", _numbers_or(-np.inf))
_register("TensorScatterMin", "scatter_min", _numbers_or(np.inf))


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
