"""Means of segments, the largest elements approximately, and tables of right and wrong predictions.

Source: TensorFlow python/ops/math_ops.py, nn_ops.py, confusion_matrix.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    pair,
    static_rank,
)
from opkernel.types import DataType, as_dtype


def _segment_sizes(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    """How many elements each segment has, at least 1, in a shape that divides sums of `data`."""
    ids_shape = raw_ops.Shape(input=segment_ids)
    ones = raw_ops.Fill(dims=ids_shape, value=np.array(1, dtype_of(data).numpy_dtype))
    counts = raw_ops.UnsortedSegmentSum(
        data=ones, segment_ids=segment_ids, num_segments=num_segments
    )
    more = raw_ops.Sub(x=raw_ops.Rank(input=data), y=raw_ops.Rank(input=segment_ids))
    length = raw_ops.Shape(input=counts)
    units = raw_ops.Fill(dims=raw_ops.Reshape(tensor=more, shape=np.array([1], np.int32)), value=1)
    shape = raw_ops.ConcatV2(values=[length, units], axis=0)
    least = np.array(1, dtype_of(data).numpy_dtype)
    return raw_ops.Maximum(x=raw_ops.Reshape(tensor=counts, shape=shape), y=least)


@composed
def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Any:
    """The mean of the rows with each segment id; 0 for ids that no row has."""
    x, ids = convert(data), convert(segment_ids)
    total = raw_ops.UnsortedSegmentSum(data=x, segment_ids=ids, num_segments=num_segments)
    return raw_ops.RealDiv(x=total, y=_segment_sizes(x, ids, num_segments))


@composed
def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Any:
    """The sum of the rows with each segment id, divided by the root of how many they are."""
    x, ids = convert(data), convert(segment_ids)
    total = raw_ops.UnsortedSegmentSum(data=x, segment_ids=ids, num_segments=num_segments)
    return raw_ops.RealDiv(x=total, y=raw_ops.Sqrt(x=_segment_sizes(x, ids, num_segments)))


@composed
def approx_max_k(
    operand: TensorLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> Any:
    """The `k` largest elements along an axis, approximately, and their indices."""
    return raw_ops.ApproxTopK(
        input=operand,
        k=k,
        reduction_dimension=reduction_dimension,
        recall_target=recall_target,
        is_max_k=True,
        reduction_input_size_override=reduction_input_size_override,
        aggregate_to_topk=aggregate_to_topk,
    )


@composed
def approx_min_k(
    operand: TensorLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> Any:
    """The `k` smallest elements along an axis, approximately, and their indices."""
    return raw_ops.ApproxTopK(
        input=operand,
        k=k,
        reduction_dimension=reduction_dimension,
        recall_target=recall_target,
        is_max_k=False,
        reduction_input_size_override=reduction_input_size_override,
        aggregate_to_topk=aggregate_to_topk,
    )


@composed
def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: TensorLike | None = None,
    weights: TensorLike | None = None,
    dtype: DTypeLike = DataType.DT_INT32,
    name: str | None = None,
) -> Any:
    """A matrix that counts, for each label (row), how often each class (column) was predicted.

    Args:
        labels: the right class of each example: a vector of integers from 0 on.
        predictions: the predicted class of each example.
        num_classes: how many classes there are; one more than the largest number if None.
        weights: a number for each example, which is counted instead of 1.
        dtype: the type of the counts.
        name: a name for the scope of nodes in a graph.

    Raises:
        InvalidArgumentError: a class is negative, or not less than `num_classes`.
    """
    x, y = pair(labels, predictions)
    x, y = _same_rank(x, y)
    x, y = cast_to(x, DataType.DT_INT64), cast_to(y, DataType.DT_INT64)
    if num_classes is None:
        axis = np.array([0], np.int32)
        highest = raw_ops.Maximum(
            x=raw_ops.Max(input=x, axis=axis), y=raw_ops.Max(input=y, axis=axis)
        )
        size = raw_ops.AddV2(x=highest, y=np.int64(1))
    else:
        size = cast_to(convert(num_classes), DataType.DT_INT64)
    shape = raw_ops.Pack(values=[size, size])
    indices = raw_ops.Pack(values=[x, y], axis=1)
    wanted = as_dtype(dtype)
    one = np.array(1, wanted.numpy_dtype)
    counted = (
        raw_ops.Fill(dims=raw_ops.Shape(input=y), value=one)
        if weights is None
        else cast_to(weights, wanted)
    )
    return raw_ops.ScatterNd(indices=indices, updates=counted, shape=shape)


def _same_rank(labels: Any, predictions: Any) -> tuple[Any, Any]:
    """Both without the last axis of size 1 that one has more than the other."""
    difference = (static_rank(predictions) or 0) - (static_rank(labels) or 0)
    if difference == 1:
        predictions = raw_ops.Squeeze(input=predictions, axis=[-1])
    elif difference == -1:
        labels = raw_ops.Squeeze(input=labels, axis=[-1])
    return labels, predictions
