from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

f32 = partial(np.array, dtype=np.float32)
c64 = partial(np.array, dtype=np.complex64)
c128 = partial(np.array, dtype=np.complex128)
i8 = partial(np.array, dtype=np.int8)
i32 = partial(np.array, dtype=np.int32)

NAN, INF = np.nan, np.inf


def test_integer_powers():
    result = raw_ops.Pow(x=i8([2, -2, 0, 3]), y=i8([7, 3, 0, 5]))
    assert result.dtype == np.int8
    assert result.tolist() == [-128, -8, 1, -13]


def test_integers_have_no_negative_powers():
    with pytest.raises(InvalidArgumentError, match="negative integer powers"):
        raw_ops.Pow(x=i32([1]), y=i32([-1]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_cubes(dtype):
    x = np.array([-2, -0.5, -0.0, 1.5, INF, -INF, NAN], dtype)
    result = raw_ops.Pow(x=x, y=dtype(3))
    assert result.dtype == dtype
    expected = [-8, -0.125, -0.0, 3.375, INF, -INF, NAN]
    np.testing.assert_array_equal(result, np.array(expected, dtype), strict=True)
    assert np.signbit(result[2])
    assert raw_ops.Pow(x=dtype(-2), y=np.array([3, 2], dtype)).tolist() == [-8, 4]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        (0.5, [INF, 0.0, 0.0, INF, NAN, 2, NAN]),
        (2, [INF, 0.0, 0.0, INF, 1, 16, NAN]),
        (-1, [-0.0, -INF, INF, 0.0, -1, 0.25, NAN]),
        (-0.5, [0.0, INF, INF, 0.0, NAN, 0.5, NAN]),
        (0, [1] * 7),
    ],
)
def test_scalar_exponents_are_no_other_functions(dtype, exponent, expected):
    """The root of -inf is NaN and that of -0 has a sign, but not their power of 0.5."""
    x = np.array([-INF, -0.0, 0.0, INF, -1, 4, NAN], dtype)
    for y in (dtype(exponent), np.full(7, exponent, dtype)):
        result = raw_ops.Pow(x=x, y=y)
        np.testing.assert_array_equal(result, np.array(expected, dtype), strict=True)
        assert np.signbit(result[:4]).tolist() == np.signbit(expected[:4]).tolist()


def test_powers_of_complex_zero():
    result = raw_ops.Pow(x=c64([0, 0]), y=c64([0, 2]))
    assert np.isnan(result[0])
    assert result[1] == 0


def test_products_with_logarithms_are_zero_where_the_factor_is():
    x, y = f32([0, 0, 0, 2]), f32([0, NAN, INF, np.e])
    np.testing.assert_allclose(raw_ops.Xlogy(x=x, y=y), [0, 0, 0, 2], rtol=1e-6)
    np.testing.assert_allclose(
        raw_ops.Xlog1py(x=x, y=f32([-1, NAN, INF, np.e - 1])), [0, 0, 0, 2], rtol=1e-6
    )


def test_sigmoid_saturates():
    x = f32([-INF, -100, 0, 100, INF, NAN])
    np.testing.assert_allclose(raw_ops.Sigmoid(x=x), [0, 0, 0.5, 1, 1, NAN], atol=1e-43)


def test_rsqrt():
    np.testing.assert_allclose(
        raw_ops.Rsqrt(x=f32([4, 0, -0.0, -1, INF])), [0.5, INF, -INF, NAN, 0]
    )


def test_complex_log1p_is_exact_near_zero():
    result = raw_ops.Log1p(x=c128([1e-12 + 0j, 1e-20j]))
    np.testing.assert_allclose(result, [1e-12 - 5e-25, 1e-20j], rtol=1e-12)
