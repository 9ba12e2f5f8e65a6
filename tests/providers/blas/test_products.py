"""Matrix products that are cut into parts, against NumPy's on the whole."""

import numpy as np
import pytest

from opkernel.errors import ResourceExhaustedError
from opkernel.kernel import allocation_limit, cut, intra_op_parallelism
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.providers.blas import products
from opkernel.providers.blas.products import batch_product, product


def numbers(*shape):
    return np.random.default_rng(0).integers(-9, 10, shape).astype(np.float32)


@pytest.fixture(autouse=True)
def cut_small_products(monkeypatch):
    monkeypatch.setattr(products, "SMALL_PRODUCT", 0)
    monkeypatch.setattr(products, "_TINY_WITH_VECTOR", 0)
    monkeypatch.setattr(products, "_SMALL", 0)
    with intra_op_parallelism(3):
        yield


def test_cut():
    assert cut(10, 3) == [slice(0, 4), slice(4, 8), slice(8, 10)]
    assert cut(10, 3, 8) == [slice(0, 8), slice(8, 10)]
    assert cut(2, 5) == [slice(0, 1), slice(1, 2)]
    assert cut(0, 2) == []


@pytest.mark.parametrize("shape", [(1, 1, 1), (200, 3, 7), (7, 3, 200), (130, 0, 5), (1, 9, 300)])
def test_product(shape):
    rows, terms, columns = shape
    a, b = numbers(rows, terms), numbers(terms, columns)
    np.testing.assert_array_equal(product(a, b), a @ b)
    turned = product(np.asfortranarray(a), np.asfortranarray(b))
    np.testing.assert_array_equal(turned, a @ b)


@pytest.mark.parametrize("shape", [(200, 3, 70), (70, 3, 200)])
def test_parts_are_finished_where_they_are(shape):
    rows, terms, columns = shape
    a, b, more = numbers(rows, terms), numbers(terms, columns), numbers(rows, columns)
    found = product(a, b, Epilogue(None, more[0], more))
    np.testing.assert_array_equal(found, a @ b + more[0] + more)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((4, 5, 6), (4, 6, 7)),
        ((4, 5, 6), (6, 7)),
        ((5, 6), (4, 6, 7)),
        ((1, 8, 5, 6), (3, 1, 6, 7)),
        ((1, 1, 5, 6), (6, 7)),
        ((9, 1, 1, 6), (9, 1, 6, 1)),
    ],
)
def test_batches(x, y):
    a, b = numbers(*x), numbers(*y)
    np.testing.assert_array_equal(batch_product(a, b), a @ b)
    a = np.ascontiguousarray(a.mT).mT  # the same values, turned in memory
    np.testing.assert_array_equal(batch_product(a, b), a @ b)


def test_the_result_is_within_the_allocation_limit():
    with allocation_limit(1000), pytest.raises(ResourceExhaustedError):
        product(numbers(100, 1), numbers(1, 100))
