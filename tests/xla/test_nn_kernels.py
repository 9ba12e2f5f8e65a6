"""Convolutions, poolings and box selection as XLA computes them beyond what the CPU's kernels do.

Expected values are sums that NumPy forms element by element, and laws.
"""

import itertools

import numpy as np
import pytest
from tests.xla.recorded import compiled

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.types import DataType

pytestmark = pytest.mark.jax

FLOAT = DataType.DT_DOUBLE


def numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def convolution(x, filters, stride, gap, groups=1):
    """`x` [batch, rows, columns, in] with `filters` [rows, columns, in / groups, out], without padding."""
    rows, columns, depth, out = filters.shape
    height = (x.shape[1] - (rows - 1) * gap - 1) // stride + 1
    width = (x.shape[2] - (columns - 1) * gap - 1) // stride + 1
    result = np.zeros((len(x), height, width, out))
    for i, j, k in itertools.product(range(height), range(width), range(out)):
        first = k // (out // groups) * depth
        at = (i * stride, j * stride)
        seen = x[
            :,
            at[0] : at[0] + (rows - 1) * gap + 1 : gap,
            at[1] : at[1] + (columns - 1) * gap + 1 : gap,
            first : first + depth,
        ]
        result[:, i, j, k] = (seen * filters[..., k]).sum(axis=(1, 2, 3))
    return result


def conv_attrs(stride=1, gap=1, padding="VALID", data_format="NHWC", **more):
    def along(size):
        return [1, size, size, 1] if data_format == "NHWC" else [1, 1, size, size]

    return {
        "T": FLOAT,
        "strides": along(stride),
        "dilations": along(gap),
        "padding": padding,
        "data_format": data_format,
        **more,
    }


def channels_first(x):
    return np.moveaxis(x, -1, 1)


@pytest.mark.parametrize(("stride", "gap", "groups"), [(1, 1, 1), (2, 1, 2), (1, 2, 2), (2, 3, 1)])
def test_convolutions_in_both_layouts(stride, gap, groups):
    x, filters = numbers(2, 9, 8, 4), numbers(3, 2, 4 // groups, 6)
    expected = convolution(x, filters, stride, gap, groups)
    (found,) = compiled("Conv2D", [x, filters], conv_attrs(stride, gap))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    attrs = conv_attrs(stride, gap, data_format="NCHW")
    (found,) = compiled("Conv2D", [channels_first(x), filters], attrs)
    np.testing.assert_allclose(found, channels_first(expected), atol=1e-12)


@pytest.mark.parametrize("size", [3, 9])  # a window that is summed up, and one that is not
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_depthwise_convolutions_with_gaps(size, data_format):
    x, filters = numbers(2, 19, 20, 3), numbers(size, size, 3, 2)
    expected = convolution(x, filters.reshape(size, size, 1, 6), 1, 2, groups=3)
    arrange = channels_first if data_format == "NCHW" else np.asarray
    attrs = conv_attrs(1, 2, data_format=data_format)
    (found,) = compiled("DepthwiseConv2dNative", [arrange(x), filters], attrs)
    np.testing.assert_allclose(found, arrange(expected), atol=1e-12)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("stride", "gap", "padding"), [(1, 1, "SAME"), (2, 1, "EXPLICIT"), (1, 2, "VALID")]
)
def test_gradients_are_adjoint(depthwise, data_format, stride, gap, padding):
    """With `y` the convolution, `<g, y>` is `<by_input(g), x>` and `<by_filter(g), filters>`."""
    op = "DepthwiseConv2dNative" if depthwise else "Conv2D"
    arrange = channels_first if data_format == "NCHW" else np.asarray
    x, filters = arrange(numbers(2, 7, 8, 4)), numbers(3, 2, 4 if depthwise else 2, 2)
    around = [0, 0, 1, 2, 0, 1, 0, 0] if data_format == "NHWC" else [0, 0, 0, 0, 1, 2, 0, 1]
    explicit = around if padding == "EXPLICIT" else []
    attrs = conv_attrs(stride, gap, padding, data_format, explicit_paddings=explicit)
    (y,) = compiled(op, [x, filters], attrs)
    g = numbers(*y.shape)
    sizes = [np.array(one.shape, np.int32) for one in (x, filters)]
    (by_input,) = compiled(f"{op}BackpropInput", [sizes[0], filters, g], attrs)
    (by_filter,) = compiled(f"{op}BackpropFilter", [x, sizes[1], g], attrs)
    np.testing.assert_allclose((by_input * x).sum(), (g * y).sum(), rtol=1e-9)
    np.testing.assert_allclose((by_filter * filters).sum(), (g * y).sum(), rtol=1e-9)


def pool_attrs(data_format="NHWC"):
    size = [1, 2, 2, 1] if data_format == "NHWC" else [1, 1, 2, 2]
    return {
        "T": FLOAT,
        "ksize": size,
        "strides": size,
        "padding": "VALID",
        "data_format": data_format,
    }


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_pools_in_both_layouts(data_format):
    arrange = channels_first if data_format == "NCHW" else np.asarray
    x = numbers(2, 4, 6, 3)
    blocks = x.reshape(2, 2, 2, 3, 2, 3)
    attrs = pool_attrs(data_format)
    (means,) = compiled("AvgPool", [arrange(x)], attrs)
    np.testing.assert_allclose(means, arrange(blocks.mean(axis=(2, 4))), atol=1e-12)
    largest = blocks.max(axis=(2, 4), keepdims=True)
    y = largest.reshape(2, 2, 3, 3)
    (found,) = compiled("MaxPool", [arrange(x)], attrs)
    np.testing.assert_array_equal(found, arrange(y))
    g = numbers(2, 2, 3, 3)
    (found,) = compiled("MaxPoolGrad", [arrange(x), arrange(y), arrange(g)], attrs)
    expected = np.where(blocks == largest, g.reshape(largest.shape), 0).reshape(x.shape)
    np.testing.assert_array_equal(found, arrange(expected))


def test_a_pool_of_large_windows_is_a_small_program():
    """The gradient of a window of 64 x 64 goes to the one largest element."""
    x = numbers(1, 64, 64, 2)
    attrs = {**pool_attrs(), "ksize": [1, 64, 64, 1], "strides": [1, 64, 64, 1]}
    y = x.max(axis=(1, 2), keepdims=True)
    (found,) = compiled("MaxPoolGrad", [x, y, np.full(y.shape, 3.0)], attrs)
    np.testing.assert_array_equal(found, np.where(x == y, 3.0, 0.0))


BOXES = np.array([[0, 0, 1, 1], [0, 0, 1, 1.1], [2, 2, 3, 3], [0, 0, 1, 1]], np.float32)
SCORES = np.array([0.5, 0.9, 0.3, 0.1], np.float32)
LIMITS = [np.int32(3), np.float32(0.5), np.float32(0.0)]
TYPES = {"T": DataType.DT_FLOAT, "T_threshold": DataType.DT_FLOAT}


def test_boxes_are_selected_and_padded():
    attrs = {**TYPES, "pad_to_max_output_size": True}
    indices, count = compiled("NonMaxSuppressionV4", [BOXES, SCORES, *LIMITS], attrs)
    assert indices.tolist() == [1, 2, 0]
    assert count == 2


def test_a_selection_of_unknown_size_is_refused():
    with pytest.raises(UnimplementedError, match="pad_to_max_output_size"):
        compiled("NonMaxSuppressionV3", [BOXES, SCORES, *LIMITS], TYPES)
    with pytest.raises(UnimplementedError, match="fixed number"):
        compiled("NonMaxSuppressionV4", [BOXES, SCORES, *LIMITS], TYPES)


def test_shapes_that_do_not_fit_are_refused():
    sizes = np.array([2, 7, 8, 4], np.int32)
    filters, gradient = numbers(3, 2, 4, 2), numbers(2, 5, 7, 3)
    with pytest.raises(InvalidArgumentError, match="out_backprop"):
        compiled("Conv2DBackpropInput", [sizes, filters, gradient], conv_attrs())


@pytest.mark.parametrize(
    ("fused", "activation"),
    [("Relu", lambda x: np.maximum(x, 0)), ("Elu", lambda x: np.where(x < 0, np.expm1(x), x))],
)
def test_a_product_with_what_is_fused_with_it(fused, activation):
    a, b, bias = (one.astype(np.float32) for one in (numbers(3, 4), numbers(5, 4), numbers(5)))
    attrs = {
        "T": DataType.DT_FLOAT,
        "transpose_b": True,
        "num_args": 1,
        "fused_ops": ["BiasAdd", fused],
    }
    (found,) = compiled("_FusedMatMul", [a, b, [bias]], attrs)
    np.testing.assert_allclose(found, activation(a @ b.T + bias), rtol=1e-5, atol=1e-6)


def test_values_outside_the_bins_are_left_out():
    values = np.array([[0, 1, 1], [-1, 2, 5]], np.int32)
    attrs = {"T": DataType.DT_INT64, "Tidx": DataType.DT_INT32}
    inputs = [values, np.int32(3), np.zeros(0, np.int64)]
    assert compiled("DenseBincount", inputs, attrs)[0].tolist() == [[1, 2, 0], [0, 0, 1]]
