"""Products of few rows by constant matrices."""

import numpy as np
import pytest

import opkernel
from opkernel.ops.math import panels
from opkernel.ops.math.matmul import matmul
from opkernel.ops.math.products import product
from opkernel.ops.nn.conv2d import conv2d
from opkernel.types import float32


@pytest.fixture(autouse=True)
def small_kernels(monkeypatch):
    """As on processors for which OpenBLAS has them."""
    monkeypatch.setattr(panels, "has_small_kernels", lambda: True)


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def constant(array):
    """The array as a Const has it."""
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


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
    layout = panels.layout_of_panels(rows, terms, columns)
    assert layout is not None
    splits, width = layout
    assert rows * (terms // splits) * width <= 10**6
    with opkernel.kernel.intra_op_parallelism(threads):
        check(product(a, b, operand=b), a, b)
        kernel = matmul(transpose_a=True, transpose_b=False, T=float32, xp=np)
        check(kernel(a.T.copy(), b), a, b)


def test_parts_are_finished_where_they_are():
    a, b, more = random(49, 512), constant(random(512, 2048, seed=1)), random(49, 2048, seed=2)

    def finish(part, where):
        part += more[where]

    np.testing.assert_array_equal(product(a, b, finish, b), product(a, b, operand=b) + more)


@pytest.mark.parametrize(
    ("rows", "terms", "columns"),
    [(1, 4096, 1024), (65, 512, 512), (49, 512, 1000), (49, 2047, 512), (8, 64, 64)],
)
def test_what_panels_do_not_pay_for_has_none(rows, terms, columns):
    assert panels.layout_of_panels(rows, terms, columns) is None


def test_matrices_that_may_change_have_none():
    matrix = random(512, 1024)
    assert panels.panels_of(matrix, 16) is None
    assert panels.panels_of(constant(matrix).astype(np.float64), 16) is None
    assert panels.panels_of(constant(matrix), 16) is not None


@pytest.mark.parametrize(("window", "stride"), [(1, 1), (1, 2), (5, 1)])
def test_convolutions_of_few_positions(window, stride):
    x = random(1, 7, 7, 128)
    filters = random(window, window, 128, 256, seed=1)
    attrs = {"padding": "SAME", "explicit_paddings": [], "data_format": "NHWC"}
    kernel = conv2d(strides=[1, stride, stride, 1], dilations=[1] * 4, **attrs)
    np.testing.assert_allclose(kernel(x, constant(filters)), kernel(x, filters), atol=1e-3)
