"""Loops that resize images give what NumPy gives."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.providers.loops import loops_run
from opkernel.providers.loops.compiled_loop import Form
from opkernel.types import Array

pytest.importorskip("numba")

FORMS: tuple[Form, ...] = ("numpy", "plain", "compiled")
SIZES = [(3, 4), (14, 9), (7, 30), (1, 1)]
SHAPES = [(2, 7, 9, 3), (1, 8, 6, 1), (1, 4, 4, 20), (0, 3, 3, 2)]


def forms_of(op: str, **arguments: Any) -> list[Array]:
    found = []
    for form in FORMS:
        with loops_run(form):
            found.append(getattr(raw_ops, op)(**arguments))
    return found


def images(shape: tuple[int, ...], dtype: str) -> Array:
    drawn: Array = (np.random.default_rng(0).standard_normal(shape) * 50).astype(dtype)
    return drawn


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_bilinear(dtype: str, shape: tuple[int, ...], size: tuple[int, int]) -> None:
    x = images(shape, dtype)
    for attrs in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        first, *others = forms_of("ResizeBilinear", images=x, size=size, **attrs)
        for other in others:
            np.testing.assert_array_equal(other, first, strict=True)
        if x.dtype.kind == "f":
            grads = images(first.shape, "float32")
            by_image = forms_of("ResizeBilinearGrad", grads=grads, original_image=x, **attrs)
            for found in by_image:
                assert found.dtype == x.dtype
                # A gradient is the adjoint of the resizing, which is linear.
                assert (found * x).sum() == pytest.approx((grads * first).sum(), rel=1e-3, abs=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_bicubic(dtype: str, shape: tuple[int, ...], size: tuple[int, int]) -> None:
    x = images(shape, dtype)
    for attrs in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        first, *others = forms_of("ResizeBicubic", images=x, size=size, **attrs)
        for other in others:
            np.testing.assert_array_equal(other, first, strict=True)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_area(dtype: str, shape: tuple[int, ...], size: tuple[int, int]) -> None:
    x = images(shape, dtype)
    first, *others = forms_of("ResizeArea", images=x, size=size)
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-5, atol=1e-4)
    if size == (1, 1):
        np.testing.assert_allclose(first[:, 0, 0], x.mean(axis=(1, 2)), rtol=1e-4, atol=1e-4)
