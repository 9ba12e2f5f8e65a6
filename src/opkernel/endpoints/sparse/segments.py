"""Sums and means of segments of chosen rows.

Source: TensorFlow python/ops/math_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel import raw_ops
from opkernel.endpoints.tensors import TensorLike, composed, convert


def _segments(
    ops: tuple[Callable[..., Any], Callable[..., Any]], num_segments: Any, **inputs: Any
) -> Any:
    if num_segments is None:
        return ops[0](**inputs)
    return ops[1](num_segments=num_segments, **inputs)


@composed
def segment_sum(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: TensorLike | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Any:
    """The sums of the rows of `data` at `indices`, by segment.

    Args:
        data: a tensor.
        indices: the rows that take part.
        segment_ids: the segment of each, in order.
        num_segments: how many segments there are; one more than the last if None.
        name: a name for the scope of nodes in a graph.
        sparse_gradient: give a sparse gradient.
    """
    ops = raw_ops.SparseSegmentSum, raw_ops.SparseSegmentSumWithNumSegments
    inputs = {"data": convert(data), "indices": indices, "segment_ids": segment_ids}
    return _segments(ops, num_segments, **inputs, sparse_gradient=sparse_gradient)


@composed
def segment_mean(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: TensorLike | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Any:
    """The means of the rows of `data` at `indices`, by segment; see segment_sum."""
    ops = raw_ops.SparseSegmentMean, raw_ops.SparseSegmentMeanWithNumSegments
    inputs = {"data": convert(data), "indices": indices, "segment_ids": segment_ids}
    return _segments(ops, num_segments, **inputs, sparse_gradient=sparse_gradient)


@composed
def segment_sqrt_n(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: TensorLike | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Any:
    """The sums by segment, divided by the root of how many rows each has; see segment_sum."""
    ops = raw_ops.SparseSegmentSqrtN, raw_ops.SparseSegmentSqrtNWithNumSegments
    inputs = {"data": convert(data), "indices": indices, "segment_ids": segment_ids}
    return _segments(ops, num_segments, **inputs, sparse_gradient=sparse_gradient)
