"""Products by small matrices, some rows at a time, against NumPy's on the whole."""

import numpy as np
import pytest

from opkernel.providers.blas import products
from opkernel.providers.blas.products import multiply, multiply_transposed


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    """As on processors for which OpenBLAS has such kernels, but for smaller products."""
    monkeypatch.setattr(products, "has_small_kernels", lambda: True)
    monkeypatch.setattr(products, "LARGEST", 1500)
    monkeypatch.setattr(products, "_LEAST_ADDED", 8)


def whole_numbers(*shape, dtype=np.float32):
    """Small ones: sums of their products are exact in any order."""
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(dtype)


@pytest.fixture
def shapes(monkeypatch):
    """The shapes of the left operands of NumPy's products, as they are computed."""
    seen = []
    matmul = np.matmul

    class Recording:
        def __getattr__(self, name):
            return getattr(np, name)

        @staticmethod
        def matmul(a, b, out):
            seen.append(a.shape)
            return matmul(a, b, out=out)

    monkeypatch.setattr(products, "np", Recording())
    return seen


def test_so_many_rows_as_small_kernels_take(shapes):
    a, b, out = whole_numbers(50, 9), whole_numbers(9, 10), np.empty((50, 10), np.float32)
    multiply(a, b, out)
    assert shapes == [(3, 16, 9), (2, 9)]
    np.testing.assert_array_equal(out, a @ b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.complex64])
@pytest.mark.parametrize(
    ("rows", "terms", "columns"),
    [(64, 5, 9), (65, 5, 9), (400, 3, 2), (400, 3, 1), (400, 0, 3), (0, 3, 3), (3, 40, 40)],
)
def test_multiply(dtype, rows, terms, columns):
    a, b = whole_numbers(rows, terms, dtype=dtype), whole_numbers(terms, columns, dtype=dtype)
    wide = np.zeros((rows, columns + 3), dtype)
    for left in (a, np.asfortranarray(a), whole_numbers(2 * rows, terms, dtype=dtype)[::2]):
        for right in (b, np.asfortranarray(b)):
            out = wide[:, 1 : columns + 1]  # as threads write parts of a result
            multiply(left, right, out)
            np.testing.assert_array_equal(out, left @ right)
    assert not wide[:, 0].any()
    assert not wide[:, columns + 1 :].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize(
    ("rows", "left", "right"),
    [(96, 5, 9), (97, 5, 9), (700, 2, 2), (5, 5, 9), (9, 0, 3), (0, 3, 3)],
)
def test_multiply_transposed(dtype, rows, left, right):
    a, b = whole_numbers(rows, left, dtype=dtype), whole_numbers(rows, right, dtype=dtype)
    out = np.full((left, right), 7, dtype)
    multiply_transposed(a, b, out)
    np.testing.assert_array_equal(out, a.T @ b)


def test_the_sum_over_rows_is_added_up(shapes):
    a, b, out = whole_numbers(70, 5), whole_numbers(70, 9), np.empty((5, 9), np.float32)
    multiply_transposed(a, b, out)
    assert shapes == [(2, 5, 32)]
    np.testing.assert_array_equal(out, a.T @ b)
