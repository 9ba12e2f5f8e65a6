from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import allocation_limit
from opkernel.types import int64

i32 = partial(np.array, dtype=np.int32)
i64 = partial(np.array, dtype=np.int64)
f32 = partial(np.array, dtype=np.float32)
NONE = f32([])


def test_bincount_leaves_out_what_is_too_large():
    values = i32([0, 2, 2, 7])
    assert raw_ops.Bincount(arr=values, size=3, weights=i32([])).tolist() == [1, 0, 2]
    weights = f32([1, 2, 0.5, 9])
    assert raw_ops.Bincount(arr=values, size=3, weights=weights).tolist() == [1, 0, 2.5]


def test_dense_bincount_by_rows():
    values = i64([[0, 1, 1], [2, 2, 5]])
    args = {"input": values, "size": np.int64(3)}
    assert raw_ops.DenseBincount(**args, weights=NONE).tolist() == [[1, 2, 0], [0, 0, 2]]
    weights = f32([[1, 2, 3], [4, 5, 6]])
    assert raw_ops.DenseBincount(**args, weights=weights).tolist() == [[1, 5, 0], [0, 0, 9]]
    binary = raw_ops.DenseBincount(**args, weights=weights, binary_output=True)
    assert binary.tolist() == [[1, 1, 0], [0, 0, 1]]
    assert raw_ops.DenseBincount(input=values[0], size=np.int64(2), weights=NONE).tolist() == [1, 2]


def test_ragged_bincount_with_empty_rows():
    args = {"values": i32([1, 1, 0]), "size": np.int32(2), "weights": NONE}
    counts = raw_ops.RaggedBincount(splits=i64([0, 0, 2, 2, 3]), **args)
    assert counts.tolist() == [[0, 0], [0, 2], [0, 0], [1, 0]]
    for splits, message in [([1, 3], "start with 0, not with 1"), ([0, 2], "got 2 instead of 3")]:
        with pytest.raises(InvalidArgumentError, match=message):
            raw_ops.RaggedBincount(splits=i64(splits), **args)


def test_sparse_bincount():
    args = {"values": i32([1, 1, 0]), "size": np.int32(2), "weights": NONE}
    vector = raw_ops.SparseBincount(indices=i64([[0], [3], [4]]), dense_shape=i64([5]), **args)
    assert vector.tolist() == [1, 2]
    places = i64([[0, 1], [2, 0], [2, 1]])
    matrix = raw_ops.SparseBincount(indices=places, dense_shape=i64([3, 2]), **args)
    assert matrix.tolist() == [[0, 1], [0, 0], [1, 1]]
    with pytest.raises(InvalidArgumentError, match=r"indices\[1, :\] = \[2, 0\] is out of bounds"):
        raw_ops.SparseBincount(indices=places, dense_shape=i64([2, 2]), **args)


@pytest.mark.parametrize(
    ("values", "size", "weights", "message"),
    [
        ([1, -1], 3, [], "must be non-negative"),
        ([1], -2, [], r"size \(-2\) must be non-negative"),
        ([1], [3], [], "Shape must be rank 0 but is rank 1"),
        ([1, 2], 3, [1], "weights"),
        ([[[1]]], 3, [], "Shape must be at most rank 2 but is rank 3"),
    ],
)
def test_errors(values, size, weights, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.DenseBincount(input=i32(values), size=i32(size), weights=f32(weights))


def test_size_is_limited():
    with allocation_limit(1 << 20), pytest.raises(ResourceExhaustedError):
        raw_ops.Bincount(arr=i32([1]), size=2**30, weights=NONE)


def test_histogram():
    values = f32([-1, 0, 0.9, 2, 4.9, 5, 15, np.inf, -np.inf])
    args = {"value_range": f32([0, 5]), "nbins": 5}
    result = raw_ops.HistogramFixedWidth(values=values, **args)
    assert result.tolist() == [4, 0, 1, 0, 4]
    assert result.dtype == np.int32
    assert raw_ops.HistogramFixedWidth(values=values, **args, dtype=int64).dtype == np.int64
    with pytest.raises(InvalidArgumentError, match="must not contain NaN"):
        raw_ops.HistogramFixedWidth(values=f32([np.nan]), **args)
    with pytest.raises(InvalidArgumentError, match=r"but got '\[5, 0\]'"):
        raw_ops.HistogramFixedWidth(values=values, value_range=f32([5, 0]), nbins=5)
