"""The largest elements: TopKV2, ApproxTopK."""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.ops.math.top_k import candidates, check_k
from opkernel.types import DataType
from opkernel.xla.jax_numpy import lax
from opkernel.xla.register_kernel import register_xla_kernel


@register_xla_kernel("TopKV2", compile_time_constants=["k"])
def top_k_v2(x: Any, k: Any, *, index_type: DataType, xp: Any) -> tuple[Any, Any]:
    """Largest first, whether that was asked for or not."""
    if k.ndim != 0:
        raise InvalidArgumentError(f"k must be scalar, got shape {list(k.shape)}")
    values, indices = _top_k(x, int(k), xp)
    return values, indices.astype(index_type.numpy_dtype)


@register_xla_kernel("ApproxTopK")
def approx_top_k(
    x: Any,
    *,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
    xp: Any,
) -> tuple[Any, Any]:
    """Exact, as on the CPU; where nothing is aggregated, with as many elements as the op declares."""
    rows = xp.moveaxis(x, reduction_dimension, -1)
    if not aggregate_to_topk:
        size = rows.shape[-1]
        k = candidates(size, k, recall_target, reduction_input_size_override, rows.ndim)
    values, indices = _top_k(rows if is_max_k else -rows, k, xp)
    values = values if is_max_k else -values
    return tuple(xp.moveaxis(each, -1, reduction_dimension) for each in (values, indices))


def _top_k(x: Any, k: int, xp: Any) -> tuple[Any, Any]:
    """The largest elements of each row, largest first; NaN counts as the least."""
    check_k(k, x.shape)
    ordered = x
    if x.dtype.kind not in "iu":
        ordered = xp.where(xp.isnan(x), xp.asarray(-np.inf, dtype=x.dtype), x)
    _, indices = lax().top_k(ordered, k)
    return xp.take_along_axis(x, indices, axis=-1), indices
