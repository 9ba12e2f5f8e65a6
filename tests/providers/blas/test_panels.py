"""Products of few rows by matrices that stay."""

import numpy as np
import pytest

import opkernel
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.providers.blas import products
from opkernel.providers.blas.products import product
from opkernel.state.lasting_values import note_lasting
from opkernel.types import float32


@pytest.fixture(autouse=True)
def small_kernels(monkeypatch):
    """As on processors for which OpenBLAS has them."""
    monkeypatch.setattr(products, "has_small_kernels", lambda: True)


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def constant(array):
    """The array, known to be constant."""
    note_lasting(array)
    return array


def check(found, a, b):
    expected = a.astype(np.float64) @ b
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(a).max() * len(b) ** 0.5 * 8)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("rows", "terms", "columns"),
    [(2, 1280, 960), (49, 160, 960), (49, 2048, 512), (64, 768, 1056)],
)
def test_products_by_panels(rows, terms, columns, threads):
    a, b = random(rows, terms), constant(random(terms, columns, seed=1))
    layout = products.layout_of_panels(rows, terms, columns)
    assert layout is not None
    splits, width = layout
    assert rows * (terms // splits) * width <= 10**6
    with opkernel.kernel.intra_op_parallelism(threads):
        check(product(a, b), a, b)
        check(opkernel.kernel_function("MatMul", T=float32, transpose_a=True)(a.T.copy(), b), a, b)


def test_parts_are_finished_where_they_are():
    a, b, more = random(49, 512), constant(random(512, 2048, seed=1)), random(49, 2048, seed=2)

    found = product(a, b, Epilogue(None, more[0], more))
    np.testing.assert_array_equal(found, product(a, b) + more[0] + more)


@pytest.mark.parametrize(
    ("rows", "terms", "columns"),
    [(1, 4096, 1024), (65, 512, 512), (49, 512, 1000), (49, 2047, 512), (8, 64, 64)],
)
def test_what_panels_do_not_pay_for_has_none(rows, terms, columns):
    assert products.layout_of_panels(rows, terms, columns) is None


def test_matrices_that_may_change_have_none():
    matrix = random(512, 1024)
    assert products.panels_of(matrix, 16) is None
    assert products.panels_of(constant(matrix.astype(np.float64)), 16) is None
    assert products.panels_of(constant(matrix), 16) is not None


@pytest.mark.parametrize(("window", "stride"), [(1, 1), (1, 2), (5, 1)])
def test_convolutions_of_few_positions(window, stride):
    x = random(1, 7, 7, 128)
    filters = random(window, window, 128, 256, seed=1)
    attrs = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    kernel = opkernel.kernel_function("Conv2D", T=float32, **attrs)
    plain = kernel(x, filters)
    np.testing.assert_allclose(kernel(x, constant(filters)), plain, atol=1e-3)
