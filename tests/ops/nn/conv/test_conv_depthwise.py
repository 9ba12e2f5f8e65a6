"""DepthwiseConv2dNative and its gradients; values are TensorFlow's or the definition's."""

import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError

ATTRS = {"strides": [1, 1, 1, 1], "padding": "VALID"}
NAN, INF = np.nan, np.inf


def depthwise(x, filters, **attrs):
    return raw_ops.DepthwiseConv2dNative(input=x, filter=filters, **{**ATTRS, **attrs})


def by_input(sizes, filters, gradient, **attrs):
    return raw_ops.DepthwiseConv2dNativeBackpropInput(
        input_sizes=np.array(sizes, np.int32),
        filter=filters,
        out_backprop=gradient,
        **{**ATTRS, **attrs},
    )


def by_filter(x, sizes, gradient, **attrs):
    return raw_ops.DepthwiseConv2dNativeBackpropFilter(
        input=x,
        filter_sizes=np.array(sizes, np.int32),
        out_backprop=gradient,
        **{**ATTRS, **attrs},
    )


def line(*columns, dtype=np.float32):
    """One row of pixels, each a list of its channels."""
    return np.array(columns, dtype).reshape(1, 1, len(columns), -1)


def test_each_channel_has_its_own_filters():
    x = line([1, 2], [3, 4])
    filters = np.array([[1, 10], [100, 1000]], np.float32).reshape(1, 1, 2, 2)
    assert depthwise(x, filters).tolist() == [[[[1, 10, 200, 2000], [3, 30, 400, 4000]]]]


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({}, [21, 32, 43, 54]),
        ({"padding": "SAME"}, [21, 32, 43, 54, 5]),
        ({"padding": "SAME", "strides": [1, 2, 2, 1]}, [21, 43, 5]),
        ({"padding": "SAME", "strides": [1, 3, 3, 1]}, [21, 54]),
        (
            {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 0, 0, 2, 1, 0, 0]},
            [0, 10, 21, 32, 43, 54, 5],
        ),
    ],
)
def test_windows(attrs, expected):
    filters = np.array([1, 10], np.float32).reshape(1, 2, 1, 1)
    assert depthwise(line([1], [2], [3], [4], [5]), filters, **attrs).ravel().tolist() == expected


@pytest.mark.parametrize(("dtype", "total"), [(np.float16, 2048), (ml_dtypes.bfloat16, 256)])
def test_narrow_types_round_each_sum(dtype, total):
    x = np.ones((1, 64, 64, 1), dtype)
    found = depthwise(x, np.ones((64, 64, 1, 1), dtype))
    assert found.dtype == dtype
    assert found.item() == total


@pytest.mark.parametrize(
    ("x", "filters", "shape"),
    [
        ((0, 3, 3, 2), (2, 2, 2, 3), (0, 2, 2, 6)),
        ((1, 3, 3, 2), (2, 2, 2, 0), (1, 2, 2, 0)),
        ((1, 3, 3, 0), (2, 2, 0, 3), (1, 2, 2, 0)),
        ((1, 2, 2, 2), (3, 2, 2, 3), (1, 0, 1, 6)),
        ((1, 3, 3, 2), (0, 2, 2, 3), (1, 4, 2, 6)),
    ],
)
def test_empty(x, filters, shape):
    found = depthwise(np.ones(x, np.float32), np.ones(filters, np.float32))
    assert found.shape == shape
    assert not found.any()


IMAGE, FILTER = (1, 4, 4, 2), (2, 2, 2, 3)


@pytest.mark.parametrize(
    ("x", "filters", "attrs", "error", "message"),
    [
        (
            (1, 2, 4, 4),
            FILTER,
            {"data_format": "NCHW"},
            UnimplementedError,
            "only supported for NHWC",
        ),
        (IMAGE, FILTER, {"dilations": [1, 2, 2, 1]}, UnimplementedError, "dilations"),
        (IMAGE, FILTER, {"strides": [1, 1, 2, 1]}, InvalidArgumentError, "equal length strides"),
        (IMAGE, FILTER, {"strides": [2, 1, 1, 1]}, InvalidArgumentError, "batch and depth"),
        (IMAGE, (2, 2, 3, 3), {}, InvalidArgumentError, "the same depth: 2 vs 3"),
        (IMAGE, (2, 2, 3), {}, InvalidArgumentError, "filter must be 4-dimensional"),
        ((4, 4, 2), FILTER, {}, InvalidArgumentError, "input must be 4-dimensional"),
    ],
)
def test_refusals(x, filters, attrs, error, message):
    with pytest.raises(error, match=message):
        depthwise(np.ones(x), np.ones(filters), **attrs)


def test_gradient_by_input():
    filters = np.array([[1, 2], [10, 20]], np.float32).reshape(1, 2, 1, 2)
    gradient = line([1, 3], [5, 7])
    assert by_input([1, 1, 3, 1], filters, gradient).ravel().tolist() == [7, 70 + 19, 190]
    stepping = by_input([1, 1, 4, 1], filters, gradient, strides=[1, 2, 2, 1])
    assert stepping.ravel().tolist() == [7, 70, 19, 190]


def test_gradient_by_input_multiplies_zeros_around_the_gradient():
    filters = np.array([1, INF], np.float32).reshape(1, 2, 1, 1)
    found = by_input([1, 1, 4, 1], filters, np.ones((1, 1, 4, 1), np.float32), padding="SAME")
    np.testing.assert_array_equal(found.ravel(), [NAN, INF, INF, INF])


def test_gradient_by_filter():
    found = by_filter(line([1], [2], [3]), [1, 2, 1, 2], line([1, 3], [5, 7]))
    assert found.reshape(2, 2).tolist() == [[1 + 10, 3 + 14], [2 + 15, 6 + 21]]


def test_gradients_leave_dilations_out_of_account():
    filters = np.array([1, 10], np.float32).reshape(1, 2, 1, 1)
    found = by_input([1, 1, 3, 1], filters, line([1], [2]), dilations=[1, 2, 2, 1])
    assert found.ravel().tolist() == [1, 12, 20]


def test_gradients_of_empty_tensors():
    nothing = np.ones((0, 2, 2, 6), np.float32)
    assert by_input([0, 3, 3, 2], np.ones(FILTER, np.float32), nothing).shape == (0, 3, 3, 2)
    assert not by_filter(np.ones((0, 3, 3, 2), np.float32), FILTER, nothing).any()
    without_depth = np.ones((1, 2, 2, 0), np.float32)
    found = by_input([1, 3, 3, 2], np.ones((2, 2, 2, 0), np.float32), without_depth)
    assert found.tolist() == np.zeros((1, 3, 3, 2)).tolist()


@pytest.mark.parametrize(
    ("sizes", "gradient", "attrs", "error", "message"),
    [
        ([3, 3], (1, 2, 2, 6), {}, InvalidArgumentError, "input must be 4-dimensional"),
        ([[1, 3, 3, 2]], (1, 2, 2, 6), {}, InvalidArgumentError, "must be 1-dim"),
        ([1, -3, 3, 2], (1, 2, 2, 6), {}, InvalidArgumentError, "must be >= 0"),
        ([1, 3, 3, 2], (1, 2, 2, 5), {}, InvalidArgumentError, r"\[1, 2, 2, 6\]"),
        ([1, 3, 3, 3], (1, 2, 2, 6), {}, InvalidArgumentError, "the same in_depth"),
        ([1, 2, 3, 3], (1, 6, 2, 2), {"data_format": "NCHW"}, UnimplementedError, "NHWC"),
    ],
)
def test_refusals_of_the_gradient_by_input(sizes, gradient, attrs, error, message):
    with pytest.raises(error, match=message):
        by_input(sizes, np.ones(FILTER), np.ones(gradient), **attrs)
