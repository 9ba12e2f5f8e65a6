"""Mean pools and their gradients; values are TensorFlow's or the definition's."""

import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError, UnimplementedError

NAN, INF = np.nan, np.inf
PAIR = {"ksize": [1, 1, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
TRIPLE = {"ksize": [1, 1, 1, 3, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"}


def line(*values, dtype=np.float32):
    return np.array(values, dtype).reshape(1, 1, -1, 1)


def volume(*values, dtype=np.float32):
    return np.array(values, dtype).reshape(1, 1, 1, -1, 1)


def avg_pool(x, **attrs):
    return raw_ops.AvgPool(value=x, **{**PAIR, **attrs})


def avg_pool_grad(sizes, gradient, **attrs):
    sizes = np.array(sizes, np.int32)
    return raw_ops.AvgPoolGrad(orig_input_shape=sizes, grad=gradient, **{**PAIR, **attrs})


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({}, [3, 1, 0]),
        ({"padding": "SAME"}, [3, 1, 0, 3]),
        ({"strides": [1, 1, 2, 1]}, [3, 0]),
        ({"ksize": [1, 1, 3, 1], "padding": "SAME"}, [3, 1, 5 / 3, 0]),
        ({"ksize": [1, 1, 1, 1], "strides": [1, 1, 3, 1], "padding": "SAME"}, [1, 3]),
    ],
)
def test_padding_does_not_count(attrs, expected):
    found = avg_pool(line(1, 5, -3, 3), **attrs).ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_rows_and_columns():
    x = np.arange(9, dtype=np.float64).reshape(1, 3, 3, 1)
    found = avg_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    assert found[0, :, :, 0].tolist() == [[2, 3.5], [6.5, 8]]


def test_nan_and_infinities():
    found = avg_pool(line(NAN, 1, 1, -INF, 2, INF, -INF)).ravel()
    np.testing.assert_array_equal(found, [NAN, 1, -INF, -INF, INF, NAN])


@pytest.mark.parametrize(("dtype", "mean"), [(np.float16, 1), (ml_dtypes.bfloat16, 1)])
def test_narrow_types_stop_counting_where_they_stop_adding(dtype, mean):
    found = avg_pool(line(*[1] * 4096, dtype=dtype), ksize=[1, 1, 4096, 1])
    assert found.dtype == dtype
    assert found.item() == mean


@pytest.mark.parametrize(
    ("shape", "attrs", "error", "message"),
    [
        ((1, 2, 4, 4), {"data_format": "NCHW"}, InvalidArgumentError, "only supports NHWC"),
        ((2, 4, 1), {}, InvalidArgumentError, "must be 4-dimensional"),
        ((1, 4, 4, 1), {"ksize": [1, 0, 1, 1]}, InvalidArgumentError, "must be positive"),
        ((1, 4, 4, 1), {"ksize": [1, 2**63 - 1, 1, 1]}, InvalidArgumentError, "int32"),
        ((1, 4, 4, 2), {"ksize": [1, 1, 1, 2]}, UnimplementedError, "Non-spatial pooling"),
        ((1, 4, 4, 1), {"strides": [2, 1, 1, 1]}, UnimplementedError, "batch dimension"),
    ],
)
def test_refusals(shape, attrs, error, message):
    with pytest.raises(error, match=message):
        avg_pool(np.ones(shape), **attrs)


def test_volumes():
    found = raw_ops.AvgPool3D(input=volume(1, 2, 6), **TRIPLE)
    np.testing.assert_allclose(found.ravel(), [1.5, 3, 4])
    with pytest.raises(NotFoundError, match="AvgPool3D"):
        raw_ops.AvgPool3D(input=volume(1, 2, 6, dtype=np.float16), **TRIPLE)
    with pytest.raises(UnimplementedError, match="depth dimension"):
        raw_ops.AvgPool3D(input=volume(1, 2, 6), **{**TRIPLE, "ksize": [1, 1, 1, 1, 3]})


# Gradients


@pytest.mark.parametrize(
    ("size", "gradient", "attrs", "expected"),
    [
        (4, [2, 20, 200], {}, [1, 11, 110, 100]),
        (4, [2, 20, 200, 5], {"padding": "SAME"}, [1, 11, 110, 105]),
        (4, [2, 20], {"strides": [1, 1, 2, 1]}, [1, 1, 10, 10]),
        # TensorFlow shares the gradient of this first window out to 4 elements though it sees 3.
        (4, [12, 0, 0, 0], {"ksize": [1, 1, 5, 1], "padding": "SAME"}, [3, 3, 3, 3]),
        # The gradient may have fewer windows than there are.
        (4, [2], {}, [1, 1, 0, 0]),
    ],
)
def test_gradient(size, gradient, attrs, expected):
    found = avg_pool_grad([1, 1, size, 1], line(*gradient), **attrs)
    np.testing.assert_allclose(found.ravel(), expected)


def test_gradient_with_another_batch_fills_the_beginning():
    found = avg_pool_grad([2, 1, 2, 1], line(2))
    assert found.ravel().tolist() == [1, 1, 0, 0]
    with pytest.raises(InvalidArgumentError, match="Output only has 2 elements"):
        avg_pool_grad([1, 1, 2, 1], np.ones((2, 1, 1, 1), np.float32))


@pytest.mark.parametrize(
    ("sizes", "gradient", "attrs", "error", "message"),
    [
        ([1, 1, 2], (1, 1, 1, 1), {}, InvalidArgumentError, "must have 4 elements"),
        ([1, 1, 2, 1], (1, 1, 1), {}, InvalidArgumentError, "must be 4-dimensional"),
        ([1, 1, -2, 1], (1, 1, 1, 1), {}, InvalidArgumentError, "must be >= 0"),
        ([1, 1, 2, 1], (1, 1, 4, 1), {}, InvalidArgumentError, "less than or equal to input size"),
        ([1, 1, 2, 1], (1, 1, 1, 1), {"ksize": [1, 1, 1, 2]}, UnimplementedError, "Non-spatial"),
    ],
)
def test_refusals_of_the_gradient(sizes, gradient, attrs, error, message):
    with pytest.raises(error, match=message):
        avg_pool_grad(sizes, np.ones(gradient, np.float32), **attrs)


def test_gradient_of_volumes():
    sizes = np.array([1, 1, 1, 3, 1], np.int32)
    found = raw_ops.AvgPool3DGrad(orig_input_shape=sizes, grad=volume(2, 30, 200), **TRIPLE)
    assert found.ravel().tolist() == [11, 111, 110]
    with pytest.raises(InvalidArgumentError, match="first and last dimension"):
        raw_ops.AvgPool3DGrad(
            orig_input_shape=sizes, grad=np.ones((2, 1, 1, 3, 1), np.float32), **TRIPLE
        )
