"""Reductions by segment, counts by value, and the largest elements: SegmentSumV2, Bincount, TopKV2 and their kin.

Ids and values that are out of range are dropped, as in TensorFlow's XLA.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.ops.math.bincount import Bins, dense_bins
from opkernel.ops.math.segment import Reduction, empty_reduction, segments_shape
from opkernel.ops.math.top_k import candidates, check_k
from opkernel.types import DataType
from opkernel.xla.jax_numpy import lax
from opkernel.xla.kernels.scatter_and_stitch import scattered
from opkernel.xla.register_kernel import register_xla_kernel

_COMBINE: dict[Reduction, str] = {
    "Sum": "scatter_add",
    "Prod": "scatter_mul",
    "Max": "scatter_max",
    "Min": "scatter_min",
}


def _register(reduction: Reduction) -> None:
    """Both ops of a reduction: sorted ids need no other program."""

    def segment(data: Any, segment_ids: Any, num_segments: Any, *, T: DataType, xp: Any) -> Any:
        shape = segments_shape(data, segment_ids, num_segments, T)
        output = xp.full(shape, empty_reduction(reduction, T), dtype=data.dtype)
        return scattered(_COMBINE[reduction], output, segment_ids[..., None], data)

    ops = [f"UnsortedSegment{reduction}", f"Segment{reduction}V2"]
    register_xla_kernel(ops, compile_time_constants=["num_segments"])(segment)


for _reduction in _COMBINE:
    _register(_reduction)


@register_xla_kernel("Bincount", compile_time_constants=["size"])
def bincount(arr: Any, size: Any, weights: Any, *, T: DataType, xp: Any) -> Any:
    bins = Bins.of(size, T)
    bins.check_weights(arr, weights)
    return _counts(bins, arr.reshape((1, -1)), weights, xp)[0]


@register_xla_kernel("DenseBincount", compile_time_constants=["size"])
def dense_bincount(
    values: Any, size: Any, weights: Any, *, T: DataType, binary_output: bool, xp: Any
) -> Any:
    bins = dense_bins(values, size, weights, T, binary_output)
    if values.ndim == 2:
        return _counts(bins, values, weights, xp)
    return _counts(bins, values.reshape((1, -1)), weights, xp)[0]


def _counts(bins: Bins, rows: Any, weights: Any, xp: Any) -> Any:
    """The counts of the values of each row."""
    dtype = bins.dtype.numpy_dtype
    row = xp.broadcast_to(xp.arange(len(rows), dtype=rows.dtype)[:, None], rows.shape)
    places = xp.stack([row, rows], axis=-1)
    counts = xp.zeros((len(rows), bins.size), dtype=dtype)
    if bins.binary or weights.size == 0:
        ones = xp.ones(rows.shape, dtype=dtype)
        return scattered("scatter" if bins.binary else "scatter_add", counts, places, ones)
    return scattered("scatter_add", counts, places, weights.reshape(rows.shape))


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
