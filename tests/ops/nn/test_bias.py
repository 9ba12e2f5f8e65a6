import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.types import qint8


def f32(value):
    return np.asarray(value, np.float32)


def add(value, bias, **attrs):
    return raw_ops.BiasAdd(value=value, bias=bias, **attrs)


def test_along_the_channels():
    value = np.zeros((2, 3, 3), np.float32)
    bias = f32([1, 2, 3])
    assert add(value, bias)[0].tolist() == [[1, 2, 3]] * 3
    assert add(value, bias, data_format="NCHW")[0].tolist() == [[1] * 3, [2] * 3, [3] * 3]
    assert raw_ops.BiasAddV1(value=value, bias=bias)[0].tolist() == [[1, 2, 3]] * 3


@pytest.mark.parametrize("rank", [2, 3, 5, 7])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_any_rank(rank, data_format):
    value = np.ones((2,) * rank, np.int32)
    total = add(value, np.array([10, 20], np.int32), data_format=data_format)
    axis = 1 if data_format == "NCHW" else -1
    assert np.unique(np.moveaxis(total, axis, 0)[1]).tolist() == [21]


def test_integers_wrap_around():
    assert add(np.array([[250]], np.uint8), np.array([10], np.uint8)).tolist() == [[4]]
    assert raw_ops.BiasAddGrad(out_backprop=np.full((3, 1), 100, np.int8)).tolist() == [44]


@pytest.mark.parametrize(
    ("value", "bias", "data_format", "message"),
    [
        ((3,), (3,), "NHWC", r"at least 2D: \[3\]"),
        ((), (3,), "NCHW", r"at least 2D: \[\]"),
        ((2, 3), (3, 1), "NHWC", r"Biases must be 1D: \[3, 1\]"),
        ((2, 3), (), "NHWC", r"Biases must be 1D: \[\]"),
        ((2, 3), (1,), "NHWC", r"as many biases.*\[1\] vs. \[2, 3\]"),
        ((2, 3, 4), (4,), "NCHW", r"as many biases.*\[4\] vs. \[2, 3, 4\]"),
    ],
)
def test_what_does_not_fit(value, bias, data_format, message):
    with pytest.raises(InvalidArgumentError, match=message):
        add(np.zeros(value, np.float32), np.zeros(bias, np.float32), data_format=data_format)


def test_quantised_types_have_no_kernel():
    with pytest.raises(NotFoundError):
        add(np.zeros((2, 2), qint8.as_numpy_dtype), np.zeros(2, qint8.as_numpy_dtype))


def test_gradient_sums_all_but_the_channels():
    x = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    assert raw_ops.BiasAddGrad(out_backprop=x).tolist() == [60, 66, 72, 78]
    assert raw_ops.BiasAddGrad(out_backprop=x, data_format="NCHW").tolist() == [60, 92, 124]
    empty = np.zeros((0, 3, 2), np.float32)
    assert raw_ops.BiasAddGrad(out_backprop=empty).tolist() == [0, 0]
    assert raw_ops.BiasAddGrad(out_backprop=empty, data_format="NCHW").tolist() == [0, 0, 0]
    with pytest.raises(InvalidArgumentError, match="at least 2D"):
        raw_ops.BiasAddGrad(out_backprop=np.zeros(3, np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("channels", [1, 3, 600])
def test_gradient_of_many_rows(channels, dtype):
    x = np.arange(1, 1 + 9 * 1003 * channels, dtype=dtype).reshape(9, 1003, channels) % 7
    expected = [sum(int(value) for value in x[..., i].ravel()) for i in range(channels)]
    assert raw_ops.BiasAddGrad(out_backprop=x).tolist() == expected


def test_where_narrow_sums_are_rounded():
    half = np.full((3000, 1), 1, np.float16)
    assert raw_ops.BiasAddGrad(out_backprop=half).tolist() == [3000]
    brain = np.full((300, 1), 1, ml_dtypes.bfloat16)
    assert raw_ops.BiasAddGrad(out_backprop=brain).tolist() == [256]
    in_one_image = brain.reshape(1, 1, 300)
    assert raw_ops.BiasAddGrad(out_backprop=in_one_image, data_format="NCHW").tolist() == [300]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(20000, 1), (3, 31, 67, 7), (400, 600), (2, 20000)])
def test_gradients_of_many_positions(shape, dtype):
    x = (np.arange(np.prod(shape)) % 17 - 8).astype(dtype).reshape(shape)  # sums are exact
    found = raw_ops.BiasAddGrad(out_backprop=x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, x.reshape(-1, shape[-1]).astype(np.int64).sum(0))


def test_a_gradient_that_is_not_finite_shows_in_its_channel_alone():
    x = np.ones((4096, 8), np.float32)
    x[100, 2], x[7, 3], x[9, 4], x[4000, 4] = np.nan, np.inf, np.inf, -np.inf
    expected = [4096, 4096, np.nan, np.inf, np.nan, 4096, 4096, 4096]
    np.testing.assert_array_equal(raw_ops.BiasAddGrad(out_backprop=x), expected)
