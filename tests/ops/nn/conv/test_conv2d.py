"""Conv2D and its gradients; values are TensorFlow's or the definition's."""

import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError, UnimplementedError

ATTRS = {"strides": [1, 1, 1, 1], "padding": "VALID"}
NAN, INF = np.nan, np.inf


def counting(*shape, dtype=np.float32):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def conv2d(x, filters, **attrs):
    return raw_ops.Conv2D(input=x, filter=filters, **{**ATTRS, **attrs})


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({}, [[0 * 0 + 1 * 1 + 3 * 2 + 4 * 3, 25], [37, 43]]),
        ({"padding": "SAME"}, [[19, 25, 10], [37, 43, 16], [7, 8, 0]]),
        ({"padding": "SAME", "strides": [1, 2, 2, 1]}, [[19, 10], [7, 0]]),
        ({"padding": "SAME", "strides": [1, 3, 1, 1]}, [[19, 25, 10]]),
        ({"dilations": [1, 2, 2, 1]}, [[0 * 0 + 2 * 1 + 6 * 2 + 8 * 3]]),
        ({"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 0, 2, 0, 0]}, None),
    ],
)
def test_windows(attrs, expected):
    found = conv2d(counting(1, 3, 3, 1), counting(2, 2, 1, 1), **attrs)[0, :, :, 0]
    if expected is None:
        assert found.shape == (3, 4)
        assert found[0].tolist() == [3, 8, 4, 0]
        assert found[2].tolist() == [37, 43, 16, 0]
    else:
        assert found.tolist() == expected


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int32]
)
def test_channels(dtype):
    x = np.array([[[[1, 2], [3, 4]]]], dtype)
    filters = np.array([[[[1, 0, 2], [0, 1, 1]]]], dtype)
    found = conv2d(x, filters)
    assert found.dtype == dtype
    assert found.tolist() == [[[[1, 2, 4], [3, 4, 10]]]]


def test_int32_wraps_around():
    x = np.full((1, 1, 1, 1), 2**16, np.int32)
    assert conv2d(x, np.full((1, 1, 1, 1), 2**15, np.int32)).item() == -(2**31)


def test_half_is_summed_in_float():
    x = np.full((1, 1, 1, 4096), 1, np.float16)
    assert conv2d(x, np.ones((1, 1, 4096, 1), np.float16)).item() == 4096


def test_groups():
    x = np.array([1, 2, 3, 4], np.float32).reshape(1, 1, 1, 4)
    filters = np.array([[1, 10, 100, 1000], [0, 0, 0, 1]], np.float32).reshape(1, 1, 2, 4)
    assert conv2d(x, filters).ravel().tolist() == [1, 10, 300, 3000 + 4]
    one_channel_each = np.array([1, 10, 100, 1000], np.float32).reshape(1, 1, 1, 4)
    assert conv2d(x, one_channel_each).ravel().tolist() == [1, 20, 300, 4000]
    with pytest.raises(InvalidArgumentError, match="evenly divisible by number of groups"):
        conv2d(x, np.ones((1, 1, 2, 3), np.float32))


def test_zero_times_infinity_in_the_padding():
    x = np.ones((1, 1, 4, 1), np.float32)
    filters = np.array([1, INF], np.float32).reshape(1, 2, 1, 1)
    np.testing.assert_array_equal(conv2d(x, filters, padding="SAME").ravel(), [INF, INF, INF, NAN])


@pytest.mark.parametrize(
    ("x", "filters", "attrs", "shape"),
    [
        ((0, 3, 3, 1), (2, 2, 1, 4), {}, (0, 2, 2, 4)),
        ((1, 2, 2, 1), (3, 3, 1, 4), {}, (1, 0, 0, 4)),
        ((1, 3, 3, 1), (2, 2, 1, 0), {}, (1, 2, 2, 0)),
        ((0, 5, 5, 4), (0, 3, 4, 2), {"padding": "SAME"}, (0, 5, 5, 2)),
        ((0, 2, 5, 5), (3, 3, 2, 4), {"data_format": "NCHW"}, (0, 4, 3, 3)),
    ],
)
def test_empty(x, filters, attrs, shape):
    found = conv2d(np.ones(x, np.float32), np.ones(filters, np.float32), **attrs)
    assert found.shape == shape


def test_only_padding_gives_zeros():
    padding = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 1, 1, 1, 0, 0]}
    found = conv2d(np.ones((1, 0, 0, 2), np.float32), np.ones((2, 2, 2, 3), np.float32), **padding)
    assert found.tolist() == np.zeros((1, 1, 1, 3)).tolist()


IMAGE, FILTER = (1, 4, 4, 2), (3, 3, 2, 4)


@pytest.mark.parametrize(
    ("x", "filters", "attrs", "error", "message"),
    [
        (
            (1, 2, 4, 4),
            FILTER,
            {"data_format": "NCHW"},
            UnimplementedError,
            "only supports the NHWC",
        ),
        ((4, 4, 2), FILTER, {}, InvalidArgumentError, r"convolution input must be 4-dimensional"),
        (IMAGE, (3, 2, 4), {}, InvalidArgumentError, r"convolution filter must be 4-dimensional"),
        (IMAGE, (3, 3, 3, 4), {}, InvalidArgumentError, "2 vs 3"),
        (IMAGE, (3, 3, 0, 4), {}, InvalidArgumentError, "2 vs 0"),
        (IMAGE, (0, 3, 2, 4), {}, InvalidArgumentError, "must not have zero elements"),
        (IMAGE, (7, 3, 2, 4), {}, InvalidArgumentError, "would be negative: -2"),
        (IMAGE, FILTER, {"strides": [1, 1, 1]}, InvalidArgumentError, "must specify 4 dimensions"),
        (IMAGE, FILTER, {"strides": [1, 0, 1, 1]}, InvalidArgumentError, "larger than 0"),
        (IMAGE, FILTER, {"strides": [1, 1, 1, 2]}, UnimplementedError, "batch and depth"),
        (IMAGE, FILTER, {"strides": [1, 2**31, 1, 1]}, InvalidArgumentError, "int32"),
        (IMAGE, FILTER, {"dilations": [2, 1, 1, 1]}, UnimplementedError, "batch and depth"),
        (IMAGE, FILTER, {"dilations": [1, 1, 0, 1]}, InvalidArgumentError, "larger than 0"),
        (IMAGE, FILTER, {"explicit_paddings": [1]}, InvalidArgumentError, "must be empty"),
        (IMAGE, FILTER, {"padding": "EXPLICIT"}, InvalidArgumentError, "must contain 8 values"),
    ],
)
def test_refusals(x, filters, attrs, error, message):
    with pytest.raises(error, match=message):
        conv2d(np.ones(x), np.ones(filters), **attrs)


# Gradients


def by_input(sizes, filters, gradient, **attrs):
    return raw_ops.Conv2DBackpropInput(
        input_sizes=np.array(sizes, np.int32),
        filter=filters,
        out_backprop=gradient,
        **{**ATTRS, **attrs},
    )


def by_filter(x, sizes, gradient, **attrs):
    return raw_ops.Conv2DBackpropFilter(
        input=x,
        filter_sizes=np.array(sizes, np.int32),
        out_backprop=gradient,
        **{**ATTRS, **attrs},
    )


def test_gradient_by_input():
    filters = np.array([[1, 2], [3, 4]], np.float32).reshape(2, 2, 1, 1)
    gradient = np.array([[1, 10], [100, 1000]], np.float32).reshape(1, 2, 2, 1)
    expected = [[1, 12, 20], [103, 1234, 2040], [300, 3400, 4000]]
    assert by_input([1, 3, 3, 1], filters, gradient)[0, :, :, 0].tolist() == expected
    assert by_input([3, 3], filters, gradient)[0, :, :, 0].tolist() == expected
    stepping = by_input([1, 3, 3, 1], filters, gradient, strides=[1, 2, 2, 1], padding="SAME")
    assert stepping[0, :, :, 0].tolist() == [[1, 2, 10], [3, 4, 30], [100, 200, 1000]]


def test_gradient_by_input_multiplies_no_padding():
    filters = counting(3, 3, 1, 1) + 1
    filters[0, 1] = INF
    found = by_input([1, 3, 3, 1], filters, np.ones((1, 3, 3, 1), np.float32), padding="SAME")
    assert found.reshape(3, 3).tolist() == [[INF] * 3, [INF] * 3, [24, 39, 28]]


def test_gradient_by_filter():
    x = counting(1, 3, 3, 1)
    gradient = np.array([[1, 10], [100, 1000]], np.float32).reshape(1, 2, 2, 1)
    found = by_filter(x, [2, 2, 1, 1], gradient)[:, :, 0, 0]
    assert found.tolist() == [[4310, 5421], [7643, 8754]]
    twice = by_filter(np.concatenate([x, x]), [2, 2, 1, 1], np.concatenate([gradient, gradient]))
    assert twice[:, :, 0, 0].tolist() == [[8620, 10842], [15286, 17508]]


def test_gradients_in_half_round_each_sum():
    # 2048 + 1 is 2048 in half; the sum in float would be 2052.
    x = np.array([2048, 1, 1, 1, 1], np.float16).repeat(2).reshape(1, 1, 5, 2)
    ones = np.ones((1, 1, 5, 1), np.float16)
    assert by_filter(x, [1, 1, 2, 1], ones).ravel().tolist() == [2048, 2048]


def test_gradients_of_nothing_are_zero():
    empty = np.ones((0, 2, 2, 1), np.float32)
    assert not by_filter(np.ones((0, 3, 3, 1), np.float32), [2, 2, 1, 1], empty).any()
    no_depth = by_input([1, 3, 3, 1], np.ones((2, 2, 1, 0), np.float32), np.ones((1, 2, 2, 0), "f"))
    assert no_depth.tolist() == np.zeros((1, 3, 3, 1)).tolist()


GRADIENT = (1, 2, 2, 4)


@pytest.mark.parametrize(
    ("sizes", "gradient", "attrs", "error", "message"),
    [
        (
            [1, 2, 4, 4],
            GRADIENT,
            {"data_format": "NCHW"},
            InvalidArgumentError,
            "only supports NHWC",
        ),
        ([[1, 4, 4, 2]], GRADIENT, {}, InvalidArgumentError, "must be 1-dim"),
        ([1, 4, 4], GRADIENT, {}, InvalidArgumentError, "4 values or 2 values, but got: 3"),
        ([1, -4, 4, 2], GRADIENT, {}, InvalidArgumentError, "must be >= 0"),
        (
            [1, 4, 4, 4],
            GRADIENT,
            {},
            InvalidArgumentError,
            "grouped convolutions are not supported",
        ),
        ([1, 4, 4, 2], (1, 2, 3, 4), {}, InvalidArgumentError, "doesn't match computed"),
        ([2, 4, 4, 2], GRADIENT, {}, InvalidArgumentError, "doesn't match computed"),
        ([1, 4, 4, 2], (2, 2, 4), {}, InvalidArgumentError, "must be 4-dimensional"),
        (
            [1, 4, 4, 2],
            GRADIENT,
            {"dilations": [1, 2, 2, 1]},
            InvalidArgumentError,
            "dilation rates",
        ),
        ([1, 4, 4, 2], GRADIENT, {"strides": [2, 1, 1, 1]}, UnimplementedError, "batch and depth"),
    ],
)
def test_refusals_of_the_gradient_by_input(sizes, gradient, attrs, error, message):
    with pytest.raises(error, match=message):
        by_input(sizes, np.ones(FILTER), np.ones(gradient), **attrs)


def test_gradients_with_other_labels_and_without_kernels():
    x = np.ones((1, 2, 2, 1), np.float32)
    with pytest.raises(NotFoundError, match="Conv2DBackpropInputV2"):
        raw_ops.Conv2DBackpropInputV2(input=x, filter=x, out_backprop=x, **ATTRS)
