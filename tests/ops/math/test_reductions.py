from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import bfloat16

f32 = partial(np.array, dtype=np.float32)
f16 = partial(np.array, dtype=np.float16)
i32 = partial(np.array, dtype=np.int32)
NAN, INF = np.nan, np.inf
LOWEST = np.finfo(np.float32).min


def reduce(op, x, axes, **attrs):
    return getattr(raw_ops, op)(input=x, axis=i32(axes), **attrs)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Sum", [10, 26]),
        ("Prod", [24, 1680]),
        ("Mean", [2.5, 6.5]),
        ("Max", [4, 8]),
        ("Min", [1, 5]),
        ("EuclideanNorm", [30**0.5, 174**0.5]),
    ],
)
def test_over_one_axis(op, expected):
    x = f32([[1, 2, 3, 4], [5, 6, 8, 7]])
    np.testing.assert_allclose(reduce(op, x, 1), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("axes", "keep_dims", "shape"),
    [
        ([], False, (2, 3, 4)),
        ([1], True, (2, 1, 4)),
        ([-1, 0], False, (3,)),
        ([[0], [2]], True, (1, 3, 1)),
        ([0, 1, 2], False, ()),
    ],
)
def test_axes_and_keep_dims(axes, keep_dims, shape):
    x = np.ones((2, 3, 4), np.float32)
    axes = np.array(axes, np.int64)
    for op in ("Sum", "Mean", "Max"):
        result = getattr(raw_ops, op)(input=x, axis=axes, keep_dims=keep_dims)
        assert np.shape(result) == shape
        assert result.dtype == np.float32
    assert raw_ops.Any(input=x > 0, axis=axes, keep_dims=keep_dims).shape == shape


@pytest.mark.parametrize(
    ("op", "float_value", "int_value"),
    [
        ("Sum", 0, 0),
        ("Prod", 1, 1),
        ("Mean", NAN, 0),
        ("Max", -INF, -128),
        ("Min", INF, 127),
        ("EuclideanNorm", 0, 0),
    ],
)
def test_reductions_of_nothing(op, float_value, int_value):
    np.testing.assert_array_equal(
        reduce(op, np.zeros((0, 2), np.float32), 0), f32([float_value] * 2)
    )
    assert reduce(op, np.zeros((0, 2), np.int8), 0).tolist() == [int_value] * 2


def test_complex_mean_of_nothing_is_zero():
    assert reduce("Mean", np.zeros((0, 1), np.complex64), 0).tolist() == [0]


def test_logical_folds():
    x = np.array([[True, False], [True, True]])
    assert reduce("All", x, 1).tolist() == [False, True]
    assert reduce("Any", x, []).tolist() == x.tolist()
    assert reduce("All", np.zeros((0, 1), bool), 0).tolist() == [True]
    assert reduce("Any", np.zeros((0, 1), bool), 0).tolist() == [False]


def test_integers_wrap_around_and_keep_their_type():
    result = reduce("Sum", np.full(4, 200, np.uint8), 0)
    assert result == 32
    assert result.dtype == np.uint8
    assert reduce("Prod", i32([2**16, 2**16, 3]), 0) == 0
    assert reduce("EuclideanNorm", np.full(4, 100, np.int8), 0) == 8  # the root of 4 * 10000 % 256


def test_integer_mean_truncates_and_does_not_wrap():
    assert reduce("Mean", i32([-7, 0]), 0) == -3
    assert reduce("Mean", i32([7, 0]), 0) == 3
    assert reduce("Mean", i32([2**30] * 4), 0) == 2**30
    assert reduce("Mean", np.full(300, 2, np.uint8), 0) == 2
    assert reduce("Mean", np.full(4, 2**62, np.int64), 0) == 0  # 64 bits do wrap


def test_extrema_propagate_nan():
    x = f32([[1, NAN, 3], [1, 2, -INF]])
    np.testing.assert_array_equal(reduce("Max", x, 1), f32([NAN, 2]))
    np.testing.assert_array_equal(reduce("Min", x, 1), f32([NAN, -INF]))


def test_narrow_floats_accumulate_in_float():
    assert reduce("Sum", np.ones((5000, 3), np.float16), 0).tolist() == [5000] * 3
    ones = np.ones((1000, 2), bfloat16.numpy_dtype)
    assert reduce("Sum", ones, 0).astype(int).tolist() == [1000, 1000]
    assert reduce("Mean", f16([60000, 60000]), 0) == INF  # the sum is rounded to half
    assert reduce("EuclideanNorm", f16([300, 1]), 0) == INF  # as is each square


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([2], r"Invalid reduction dimension \(2 for input with 2 dimension\(s\)"),
        ([-3], r"Invalid reduction dimension \(-3 for input with 2 dimension\(s\)"),
        ([0, -2], "Axes contains duplicate dimension: 0"),
    ],
)
@pytest.mark.parametrize("op", ["Sum", "Mean", "Max"])
def test_wrong_axes(op, axes, message):
    with pytest.raises(InvalidArgumentError, match=message):
        reduce(op, np.ones((2, 3), np.float32), axes)


def test_input_is_left_alone_and_result_is_new_memory():
    x = np.ones((2, 3), np.float32)
    x.setflags(write=False)
    for op in ("Sum", "Max", "Mean", "Prod"):
        assert not np.shares_memory(reduce(op, x, []), x)


@given(
    shape=st.lists(st.sampled_from([1, 2, 5]), min_size=1, max_size=3),
    data=st.data(),
    keep_dims=st.booleans(),
)
def test_large_sums_agree_with_double(shape, data, keep_dims):
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1)))
    x = np.linspace(-1, 2, 4096 * int(np.prod(shape)), dtype=np.float32).reshape(*shape, 4096)
    result = reduce("Sum", x, sorted(axes), keep_dims=keep_dims)
    wanted = x.sum(axis=tuple(axes), dtype=np.float64, keepdims=keep_dims)
    np.testing.assert_allclose(result, wanted, rtol=2e-4, atol=1e-2)


def test_l2_loss():
    assert raw_ops.L2Loss(t=f32([[1, 2], [3, 4]])) == 15
    assert raw_ops.L2Loss(t=np.ones(4096, np.float16)) == 2048
    assert raw_ops.L2Loss(t=f32([])) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64])
def test_a_sum_over_no_axes_keeps_the_sign_of_zero(dtype):
    found = reduce("Sum", np.array([-0.0, 1.5], dtype), [])
    assert found.dtype == dtype
    assert np.signbit(found.real).tolist() == [True, False]
