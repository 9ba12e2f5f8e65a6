"""Special functions: values against the C library's and exact ones, limits and poles."""

import math
from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops

f32 = partial(np.array, dtype=np.float32)
f64 = partial(np.array, dtype=np.float64)

NAN, INF = np.nan, np.inf
X = np.linspace(-6, 6, 1001)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 6e-7), (np.float64, 2e-15)])
def test_error_function(dtype, rtol):
    x = X.astype(dtype)
    expected = [math.erf(v) for v in x]
    np.testing.assert_allclose(raw_ops.Erf(x=x), expected, rtol=rtol)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 5e-6), (np.float64, 1e-13)])
def test_complementary_error_function_is_exact_in_its_tail(dtype, rtol):
    x = np.linspace(-6, 9, 1001).astype(dtype)
    expected = [math.erfc(v) for v in x]
    np.testing.assert_allclose(raw_ops.Erfc(x=x), expected, rtol=rtol)


def test_error_functions_saturate():
    x = f32([-INF, -1e30, 1e30, INF, NAN, 0])
    np.testing.assert_array_equal(raw_ops.Erf(x=x), f32([-1, -1, 1, 1, NAN, 0]))
    np.testing.assert_allclose(raw_ops.Erfc(x=x), f32([2, 2, 0, 0, NAN, 1]), rtol=3e-7)
    # TensorFlow's kernel for double is not defined where the square overflows
    assert np.isnan(raw_ops.Erf(x=f64([INF, -INF, 1e300]))).all()


def test_inverse_error_function():
    y = np.concatenate([np.linspace(-0.999, 0.999, 301), [1 - 1e-12]])
    x = raw_ops.Erfinv(x=y)
    np.testing.assert_allclose([math.erf(v) for v in x], y, rtol=1e-14, atol=1e-15)
    tiny = raw_ops.Erfinv(x=f32([1e-3, 1e-6, 1e-20]))  # TensorFlow's numbers
    np.testing.assert_allclose(tiny, [0.00088626851, 8.4517183e-07, 0], rtol=1e-6)
    edge = raw_ops.Erfinv(x=f32([1, -1, 1.1, 0, NAN]))
    np.testing.assert_array_equal(edge, f32([INF, -INF, NAN, 0, NAN]))


def test_normal_quantiles():
    p = f64([0.5, 0.975, 1e-10, 0, 1, -0.1])
    expected = [0, 1.959963984540054, -6.361340902404056, -INF, INF, NAN]
    np.testing.assert_allclose(raw_ops.Ndtri(x=p), expected, rtol=1e-13, atol=1e-15)


def test_logarithm_of_gamma():
    x = np.concatenate([np.linspace(-30.3, 30.4, 500), [1e-5, 1e5, 1e300]])
    expected = [math.lgamma(v) for v in x]
    np.testing.assert_allclose(raw_ops.Lgamma(x=x), expected, rtol=1e-13, atol=1e-13)
    poles = raw_ops.Lgamma(x=f32([0, -1, -2, -INF, INF]))
    assert np.isposinf(poles).all()


def test_digamma():
    gamma = 0.5772156649015329
    x = f64([1, 0.5, 10, -0.5, 1e300])
    expected = [
        -gamma,
        -gamma - 2 * math.log(2),
        2.251752589066721,
        0.03648997397857652,
        690.775527898,
    ]
    np.testing.assert_allclose(raw_ops.Digamma(x=x), expected, rtol=1e-11)
    assert np.isnan(raw_ops.Digamma(x=f32([0, -1, -3, -INF]))).all()


def test_zeta():
    x = f64([2, 4, 2, 3, 2])
    q = f64([1, 1, 0.5, 2, -0.5])
    third = 1.2020569031595942 - 1
    expected = [math.pi**2 / 6, math.pi**4 / 90, math.pi**2 / 2, third, math.pi**2 / 2 + 4]
    np.testing.assert_allclose(raw_ops.Zeta(x=x, q=q), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("x", "q", "expected"),
    [(1, 3, INF), (0.5, 3, NAN), (2, -2, INF), (3, -2, NAN), (2.5, -0.5, NAN), (INF, 2, 0)],
)
def test_poles_of_zeta(x, q, expected):
    np.testing.assert_array_equal(raw_ops.Zeta(x=np.float64(x), q=np.float64(q)), expected)


def test_polygamma():
    a, x = f64([1, 2, 0, 1.5, -1]), f64([1, 1, 1, 1, 1])
    expected = [math.pi**2 / 6, -2 * 1.2020569031595942, -0.5772156649015329, NAN, NAN]
    np.testing.assert_allclose(raw_ops.Polygamma(a=a, x=x), expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_incomplete_gamma_functions(dtype):
    x = np.array([0.01, 0.5, 1, 3, 40], dtype)
    rtol = 1e-12 if dtype == np.float64 else 1e-6
    one = dtype(1)
    np.testing.assert_allclose(raw_ops.Igamma(a=one, x=x), -np.expm1(-x), rtol=rtol)
    np.testing.assert_allclose(raw_ops.Igammac(a=one, x=x), np.exp(-x), rtol=rtol)
    half = raw_ops.Igamma(a=dtype(0.5), x=x)
    np.testing.assert_allclose(half, [math.erf(math.sqrt(v)) for v in x], rtol=rtol)
    limits = raw_ops.Igamma(
        a=np.array([2, 2, -1, 2, -1], dtype), x=np.array([0, INF, 1, -1, 0], dtype)
    )
    np.testing.assert_array_equal(limits, np.array([0, 1, NAN, NAN, 0], dtype))


@pytest.mark.parametrize("op", ["Igamma", "Igammac", "IgammaGradA", "RandomGammaGrad"])
def test_an_element_depends_on_no_other(op: str) -> None:
    """Series of some elements take many terms: the others stop where they would alone."""
    a, x = np.meshgrid([0.1, 0.9, 3.0, 40.0, 900.0], [0.01, 0.8, 3.5, 45.0, 950.0])
    names = ("alpha", "sample") if op == "RandomGammaGrad" else ("a", "x")

    def compute(*values):
        return getattr(raw_ops, op)(**dict(zip(names, values, strict=True)))

    alone = [compute(*one) for one in zip(a.reshape(25, 1), x.reshape(25, 1), strict=True)]
    assert np.array_equal(compute(a.reshape(25), x.reshape(25)), np.concatenate(alone))
