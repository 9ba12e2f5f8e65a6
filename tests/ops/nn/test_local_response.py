import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError

NAN, INF = np.nan, np.inf
X = np.array([1, 2, 3, 4, 5, 6, -3], np.float32).reshape(1, 1, 1, 7)


def lrn(x, **attrs):
    return raw_ops.LRN(input=x, **attrs)


def lrn_grad(dy, x, y, **attrs):
    return raw_ops.LRNGrad(input_grads=dy, input_image=x, output_image=y, **attrs)


def test_damps_by_the_neighbours():
    squares = X.ravel() ** 2
    sums = [squares[max(i - 1, 0) : i + 2].sum() for i in range(7)]
    expected = X.ravel() * (0.5 + 0.25 * np.array(sums)) ** -0.75
    result = lrn(X, depth_radius=1, bias=0.5, alpha=0.25, beta=0.75)
    np.testing.assert_allclose(result.ravel(), expected, rtol=1e-5)
    everything = lrn(X, depth_radius=1000, bias=0.0)
    np.testing.assert_allclose(everything, X / np.sqrt(squares.sum()), rtol=1e-5)


def test_one_infinity_spoils_its_place():
    x = X.copy()
    x[..., 2] = INF
    result = lrn(np.concatenate([x, X]), depth_radius=1)
    assert np.isnan(result[0, 0, 0, [0, 2, 4]]).all()
    assert np.isfinite(result[1]).all()


def test_half_overflows_at_its_own_limit():
    x = np.array([300, 1, 2, 3], np.float16).reshape(1, 1, 1, 4)
    expected = [0, 0, NAN, NAN]
    np.testing.assert_array_equal(lrn(x, depth_radius=1, alpha=0.01).ravel(), expected)


def test_gradient_is_the_slope():
    generator = np.random.default_rng(3)
    x, dy = generator.normal(size=(2, 1, 2, 2, 5)).astype(np.float32)
    attrs = {"depth_radius": 1, "bias": 1.5, "alpha": 0.5, "beta": 0.6}
    result = lrn_grad(dy, x, lrn(x, **attrs), **attrs)
    step = np.float32(1e-2)
    for place in [(0, 0, 0, 0), (0, 1, 1, 2), (0, 0, 1, 4)]:
        rise = [(lrn(x + s * delta(place, x), **attrs) * dy).sum() for s in (step, -step)]
        assert result[place] == pytest.approx((rise[0] - rise[1]) / (2 * step), abs=2e-3)


def delta(place, x):
    one = np.zeros_like(x)
    one[place] = 1
    return one


def test_what_does_not_fit():
    for radius in (-1, 2**31):
        with pytest.raises(InvalidArgumentError, match="depth_radius"):
            lrn(X, depth_radius=radius)
    with pytest.raises(InvalidArgumentError, match="must be 4-dimensional"):
        lrn(X[0])
    with pytest.raises(InvalidArgumentError, match="inputs must be 4-dimensional"):
        lrn_grad(X[0], X, X)
    with pytest.raises(InvalidArgumentError, match="should have the same shape"):
        lrn_grad(X, X, X[..., 1:])
    with pytest.raises(NotFoundError):
        lrn(X.astype("bfloat16"))


def test_empty():
    for shape in ((0, 1, 1, 3), (1, 2, 2, 0)):
        x = np.zeros(shape, np.float32)
        assert lrn(x).shape == lrn_grad(x, x, x, bias=0.0).shape == shape


@pytest.mark.parametrize(
    ("bias", "expected"),
    [(1.0, [NAN, 1, -1.5, NAN, NAN, NAN, 0]), (0.0, [NAN, 1, -1.5, NAN, NAN, NAN, NAN])],
)
def test_the_power_of_nothing_is_a_logarithm(bias, expected):
    x = np.array([1e30, 1, -1.5, 1e20, np.inf, NAN, 0], np.float32).reshape(1, 7, 1, 1)
    result = raw_ops.LRN(input=x, depth_radius=2, bias=bias, alpha=0.5, beta=0.0)
    np.testing.assert_array_equal(result.ravel(), np.float32(expected))
