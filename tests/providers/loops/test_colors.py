"""Loops that adjust colours give what NumPy gives, and leave what the definition leaves."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.providers.loops import loops_run
from opkernel.providers.loops.compiled_loop import Form
from opkernel.types import Array

pytest.importorskip("numba")

FORMS: tuple[Form, ...] = ("numpy", "plain", "compiled")


def colours() -> Array:
    """Many colours: random ones, with equal channels, with numbers that are odd."""
    draw = np.random.default_rng(0)
    pixels = draw.integers(0, 4, (3, 40, 50, 3)).astype(np.float32) / 3
    pixels[1] = draw.random((40, 50, 3))
    odd = np.array([np.nan, np.inf, -np.inf, -1, 1e-40, -0.0, 0, 1e30], np.float32)
    where = draw.random((40, 50, 3)) < 0.3
    pixels[2][where] = draw.choice(odd, where.sum())
    return pixels


AMOUNT = {"AdjustHue": "delta", "AdjustSaturation": "scale", "AdjustContrastv2": "contrast_factor"}


def forms_of(op: str, images: Array, amount: float) -> list[Array]:
    found = []
    for form in FORMS:
        with loops_run(form), np.errstate(all="ignore"):
            kernel = getattr(raw_ops, op)
            found.append(kernel(images=images, **{AMOUNT[op]: np.float32(amount)}))
    return found


@pytest.mark.parametrize("op", ["AdjustHue", "AdjustSaturation"])
@pytest.mark.parametrize("amount", [0.0, 0.3, -0.7, 1.5, np.nan, np.inf])
def test_forms_of_hue_and_saturation(op: str, amount: float) -> None:
    first, *others = forms_of(op, colours(), amount)
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_hue_goes_around() -> None:
    colour = np.array([[[0.8, 0.5, 0.2]]], np.float32)
    for sixths, order in ((2, [1, 2, 0]), (4, [2, 0, 1]), (6, [0, 1, 2])):
        for found in forms_of("AdjustHue", colour, sixths / 6):
            np.testing.assert_allclose(found[..., order], colour, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 30, 40, 1), (2, 30, 40, 3), (5, 7, 2), (2, 3, 4, 5, 17)])
def test_contrast(shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(1).random(shape).astype(np.float32) * 255
    mean = images.mean(axis=(-3, -2), keepdims=True, dtype=np.float64)
    for found in forms_of("AdjustContrastv2", images, 1.7):
        np.testing.assert_allclose(found, (images - mean) * 1.7 + mean, rtol=1e-4, atol=1e-3)
