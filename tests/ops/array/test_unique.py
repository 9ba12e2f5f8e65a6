import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import int64

NAN = np.nan


@given(st.lists(st.integers(-3, 3)))
def test_unique(values):
    x = np.array(values, np.int16)
    y, idx, count = raw_ops.UniqueWithCounts(x=x, out_idx=int64)
    assert y.tolist() == list(dict.fromkeys(values))
    np.testing.assert_array_equal(y[idx], x)
    assert count.tolist() == [values.count(value) for value in y]
    assert (y.dtype, idx.dtype, count.dtype) == (np.int16, np.int64, np.int64)


def test_strings_and_bools():
    y, idx = raw_ops.Unique(x=np.array([b"b", b"a", b"b", b"a\0"], object))
    assert (y.tolist(), idx.tolist()) == ([b"b", b"a", b"a\0"], [0, 1, 0, 2])
    assert raw_ops.Unique(x=[True, False, True]).y.tolist() == [True, False]


def test_nan_equals_nothing_and_zero_minus_zero():
    y, idx = raw_ops.Unique(x=np.array([NAN, 1, NAN, 0.0, -0.0]))
    np.testing.assert_array_equal(y, [NAN, 1, NAN, 0])
    assert idx.tolist() == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_told_apart_by_their_bits(dtype):
    _, idx = raw_ops.Unique(x=np.array([NAN, 1, NAN, 0.0, -0.0, 1], dtype))
    assert idx.tolist() == [0, 1, 2, 3, 4, 1]


def test_slices_along_an_axis():
    x = np.array([[1, 2, 1], [3, 4, 3], [1, 2, 1]])
    y, idx, count = raw_ops.UniqueWithCountsV2(x=x, axis=[0])
    assert y.tolist() == [[1, 2, 1], [3, 4, 3]]
    assert (idx.tolist(), count.tolist()) == ([0, 1, 0], [2, 1])
    y, idx = raw_ops.UniqueV2(x=x, axis=[-1])
    assert (y.tolist(), idx.tolist()) == ([[1, 2], [3, 4], [1, 2]], [0, 1, 0])
    y, _ = raw_ops.UniqueV2(x=np.array([[NAN], [NAN], [0.0], [-0.0]]), axis=[0])
    np.testing.assert_array_equal(y, [[NAN], [NAN], [0]])


@pytest.mark.parametrize(("shape", "expected"), [((2, 0), (1, 0)), ((0, 2), (0, 2)), ((0,), (0,))])
def test_slices_without_elements_are_equal(shape, expected):
    assert raw_ops.UniqueV2(x=np.zeros(shape), axis=[0]).y.shape == expected


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ([2], r"axis has to be between \[0, 2\)"),
        ([0, 1], "axis does not support input tensors larger than 1 elements"),
        (0, "axis expects a 1D vector"),
        (np.zeros(0, np.int64), "unique expects a 1D vector"),
    ],
)
def test_unique_refuses(axis, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.UniqueV2(x=np.zeros((2, 2)), axis=axis)


def test_list_diff_keeps_order_and_repetitions():
    out, idx = raw_ops.ListDiff(x=[1, 2, 1, 3], y=[2, 5])
    assert (out.tolist(), idx.tolist()) == ([1, 1, 3], [0, 2, 3])
    out, idx = raw_ops.ListDiff(x=np.array([NAN, 1, -0.0]), y=np.array([NAN, 0.0]))
    np.testing.assert_array_equal(out, [NAN, 1])
    with pytest.raises(InvalidArgumentError, match="y should be a 1D vector"):
        raw_ops.ListDiff(x=[1], y=[[1]])
