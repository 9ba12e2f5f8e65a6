"""Ragged tensors from dense ones, and where their rows begin.

Source: TensorFlow python/ops/ragged/row_partition.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.array.layout import repeat
from opkernel.endpoints.ragged.tensor import RaggedTensor
from opkernel.endpoints.tensors import cast_to, convert, known_rank, like
from opkernel.types import DataType


def splits_of_lengths(lengths: Any, dtype: DataType = DataType.DT_INT64) -> Any:
    """Where rows of these lengths begin, and where the last one ends."""
    ends = raw_ops.Cumsum(x=cast_to(lengths, dtype), axis=0)
    return raw_ops.ConcatV2(values=[np.zeros(1, dtype.numpy_dtype), ends], axis=0)


def splits_of_rows(rows: Any, count: Any, dtype: DataType = DataType.DT_INT64) -> Any:
    """Where each of `count` rows begins, for the rows of values in order."""
    ones = raw_ops.OnesLike(x=cast_to(rows, dtype))
    lengths = raw_ops.UnsortedSegmentSum(data=ones, segment_ids=rows, num_segments=count)
    return splits_of_lengths(lengths, dtype)


def rows_of(tensor: RaggedTensor) -> Any:
    """The row of each value. int64."""
    splits = cast_to(tensor.row_splits, DataType.DT_INT64)
    count = raw_ops.Size(input=splits, out_type=DataType.DT_INT64)
    lengths = splits[1:] - splits[:-1]
    numbers = raw_ops.Range(start=np.int64(0), limit=count - np.int64(1), delta=np.int64(1))
    return repeat(numbers, lengths, axis=0)


def even_rows(values: Any, outer: Any, length: Any) -> RaggedTensor:
    """Values as `outer` rows of one length."""
    count = cast_to(outer, DataType.DT_INT64)
    size = cast_to(length, DataType.DT_INT64)
    numbers = raw_ops.Range(start=np.int64(0), limit=count + np.int64(1), delta=np.int64(1))
    return RaggedTensor(values, numbers * size)


def from_tensor(tensor: Any) -> Any:
    """A tensor of rank 2 or more with rows of one length as a ragged tensor, all axes but the last."""
    x = convert(tensor)
    rank = known_rank(x, "A ragged tensor")
    if rank < 2:
        return x
    rows = as_rows(x)
    return rows._replace(values=from_tensor(rows.values))


def as_rows(x: Any) -> RaggedTensor:
    """A tensor with its first two axes as rows."""
    shape = raw_ops.Shape(input=x)
    joined = raw_ops.ConcatV2(values=[np.array([-1], np.int32), shape[2:]], axis=0)
    return even_rows(raw_ops.Reshape(tensor=x, shape=joined), shape[0], shape[1])


def is_ragged(value: Any) -> bool:
    """Whether a value is a ragged tensor."""
    return isinstance(value, tuple) and len(value) == 2 and hasattr(value, "row_splits")


def as_ragged(value: Any) -> Any:
    """A ragged tensor with its parts as arrays or tensors; other values as tensors.

    Functions that another room returned have named tuples of their own.
    """
    if not is_ragged(value):
        return convert(value)
    return RaggedTensor(as_ragged(value.values), like(value.row_splits, DataType.DT_INT64))
