"""Reductions by segment, and counts by value. Ids and values that are out of range are dropped, as in TensorFlow's XLA."""

from __future__ import annotations

from typing import Any

from opkernel.ops.math.bincount import Bins, dense_bins
from opkernel.ops.math.segment import Reduction, empty_reduction, segments_shape
from opkernel.types import DataType
from opkernel.xla.kernels.scatter import scattered
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
