import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError


def f32(value):
    return np.asarray(value, np.float32)


NAN, INF = np.nan, np.inf
NOTHING = np.zeros(0, np.float32)
X = np.arange(12, dtype=np.float32).reshape(1, 2, 3, 2)
STATISTICS = {
    "scale": f32([2, 3]),
    "offset": f32([10, 20]),
    "mean": f32([1, -1]),
    "variance": f32([4, 9]),
}


def norm(x=X, version="V3", **given):
    return getattr(raw_ops, f"FusedBatchNorm{version}")(x=x, **{**STATISTICS, **given})


def grad(version="V3", data_format="NHWC", **given):
    arguments = {
        "y_backprop": X,
        "x": X * X,
        "scale": STATISTICS["scale"],
        "reserve_space_1": f32([1, 2]),
        "reserve_space_2": f32([4, 9]),
        **given,
    }
    if version == "V3":
        arguments["reserve_space_3"] = NOTHING
    op = getattr(raw_ops, f"FusedBatchNormGrad{version}")
    return op(**arguments, data_format=data_format)


@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_inference(version):
    result = norm(version=version, is_training=False, epsilon=0.0)
    np.testing.assert_allclose(result.y, (X - [1, -1]) / [2, 3] * [2, 3] + [10, 20], rtol=1e-6)
    assert result.batch_mean.tolist() == [1, -1]
    assert result.batch_variance.tolist() == [4, 9]
    if version == "V3":
        assert np.shape(result.reserve_space_3) == ()


@pytest.mark.parametrize("mean", [1.0, 1000.0])
def test_inference_keeps_the_digits_of_large_means(mean):
    x = np.float32(mean) + np.linspace(-2, 2, 64, dtype=np.float32).reshape(1, 4, 8, 2)
    given = {"mean": np.full(2, mean, np.float32), "variance": np.ones(2, np.float32)}
    y = norm(x, is_training=False, epsilon=0.0, **given).y
    expected = (x - np.float32(mean)) * STATISTICS["scale"] + STATISTICS["offset"]
    np.testing.assert_allclose(y, expected, rtol=2e-6)


def test_inference_without_variance():
    x = f32([0, 1, 2]).reshape(1, 1, 3, 1)
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    given = {"scale": one, "offset": zero, "mean": one, "variance": zero}
    y = norm(x, is_training=False, epsilon=0.0, **given).y
    np.testing.assert_array_equal(y.ravel(), [-INF, NAN, INF])


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW", "NDHWC", "NCDHW"])
def test_training_brings_channels_to_mean_and_variance(data_format):
    generator = np.random.default_rng(1)
    rank = 5 if "D" in data_format else 4
    x = generator.normal(3, 2, (3, 2, 4, 5, 2)[-rank:]).astype(np.float32)
    x = np.moveaxis(x, -1, 1) if data_format.startswith("NC") else x
    result = norm(x, data_format=data_format, mean=NOTHING, variance=NOTHING, epsilon=0.0)
    axis = 1 if data_format.startswith("NC") else rank - 1
    others = tuple(i for i in range(rank) if i != axis)
    np.testing.assert_allclose(result.y.mean(axis=others), [10, 20], rtol=1e-5)
    np.testing.assert_allclose(result.y.std(axis=others), [2, 3], rtol=1e-5)
    np.testing.assert_allclose(result.batch_mean, x.mean(axis=others), rtol=1e-6)
    np.testing.assert_allclose(result.batch_variance, x.var(axis=others, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(result.reserve_space_1, x.mean(axis=others), rtol=1e-6)
    np.testing.assert_allclose(result.reserve_space_2, x.var(axis=others), rtol=1e-5)


def test_averages_with_the_given_statistics():
    result = norm(exponential_avg_factor=0.25)
    np.testing.assert_allclose(result.batch_mean, [2, 0.75], rtol=1e-6)
    np.testing.assert_allclose(result.batch_variance, [0.75 * 4 + 3.5, 0.75 * 9 + 3.5], rtol=1e-6)
    np.testing.assert_allclose(result.reserve_space_1, [5, 6], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_batches_have_float_statistics(dtype):
    result = norm(X.astype(dtype), mean=NOTHING, variance=NOTHING)
    assert result.y.dtype == dtype
    assert result.batch_mean.dtype == np.float32
    np.testing.assert_allclose(result.batch_variance, [14, 14], rtol=1e-5)


@pytest.mark.parametrize("is_training", [False, True])
def test_empty_batches(is_training):
    result = norm(X[:0], is_training=is_training)
    assert result.y.shape == (0, 2, 3, 2)
    np.testing.assert_array_equal(result.batch_mean, [NAN, NAN])
    np.testing.assert_array_equal(result.batch_variance, [NAN, NAN])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": X[0]}, r"input must be 4 or 5-dimensional\[2, 3, 2\]"),
        ({"scale": np.ones((2, 1), np.float32)}, "scale must be 1-dimensional"),
        ({"scale": np.ones(3, np.float32)}, "scale must have the same number.* 3 and 2"),
        ({"offset": np.ones(1, np.float32)}, "offset must have the same number.* 1 and 2"),
        ({"mean": NOTHING, "is_training": False}, "is_training=false, mean must have.* 0 and 2"),
        (
            {"variance": NOTHING, "exponential_avg_factor": 0.5},
            "exponential_avg_factor != 1, variance must have the same number.* 0 and 2",
        ),
    ],
)
def test_what_does_not_fit(given, message):
    with pytest.raises(InvalidArgumentError, match=message):
        norm(**given)


def test_given_statistics_are_not_looked_at_in_training():
    assert norm(mean=np.ones(7, np.float32), variance=NOTHING).batch_mean.tolist() == [5, 6]


def loss(x, scale, offset, weights, epsilon=0.01):
    """A loss whose gradient by the normalised tensor is `weights`, in float64."""
    mean, variance = x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))
    return (((x - mean) / np.sqrt(variance + epsilon) * scale + offset) * weights).sum()


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_gradient_of_training_is_the_slope(data_format):
    generator = np.random.default_rng(2)
    x, dy = generator.normal(size=(2, 2, 3, 3, 2))
    scale, offset = np.array([1.5, -2]), np.array([0.5, 1])
    wanted = np.empty_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        rise = loss(x + step, scale, offset, dy) - loss(x - step, scale, offset, dy)
        wanted[place] = rise / 2e-6
    first = data_format == "NCHW"
    images = [np.moveaxis(t, -1, 1) if first else t for t in (dy, x, wanted)]
    result = grad(
        "V2",
        data_format,
        y_backprop=images[0].astype(np.float32),
        x=images[1].astype(np.float32),
        scale=scale.astype(np.float32),
        reserve_space_1=x.mean(axis=(0, 1, 2)).astype(np.float32),
        reserve_space_2=x.var(axis=(0, 1, 2)).astype(np.float32),
        epsilon=0.01,
    )
    np.testing.assert_allclose(result.x_backprop, images[2], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(result.offset_backprop, dy.sum(axis=(0, 1, 2)), rtol=1e-4)


@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_gradient_of_inference(version):
    result = grad(version, is_training=False, epsilon=0.0)
    np.testing.assert_allclose(result.x_backprop, X * [1, 1], rtol=1e-6)
    expected = (X * (X * X - [1, 2])).sum(axis=(0, 1, 2)) / [2, 3]
    np.testing.assert_allclose(result.scale_backprop, expected, rtol=1e-6)
    assert result.offset_backprop.tolist() == [30, 36]
    assert [unused.shape for unused in result[3:]] == [(0,), (0,)]


def test_gradient_of_an_empty_batch():
    result = grad(y_backprop=X[:0], x=X[:0])
    assert result.scale_backprop.tolist() == result.offset_backprop.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": X[..., :1]}, "x and y_backprop must have same shape"),
        ({"scale": np.ones(3, np.float32)}, "scale must have the same number"),
        ({"reserve_space_1": np.ones((1, 2), np.float32)}, "reserve_space_1 must be 1-dim"),
        ({"reserve_space_2": np.ones(3, np.float32)}, "reserve_space_2 must have.* 3 and 2"),
    ],
)
def test_gradients_that_do_not_fit(given, message):
    with pytest.raises(InvalidArgumentError, match=message):
        grad(**given)


def test_gradient_of_inference_needs_channels_last():
    x = np.moveaxis(X, -1, 1).astype(np.float16)
    with pytest.raises(InvalidArgumentError, match="only supports NHWC"):
        grad(y_backprop=x, x=x, data_format="NCHW", is_training=False)
