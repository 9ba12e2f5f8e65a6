"""Resampling kernels: how much a pixel at some distance contributes to a new one.

Source: TensorFlow core/kernels/image/sampling_kernels.h.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

__all__ = ["SAMPLING_KERNELS", "SamplingKernel"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class SamplingKernel:
    """A function of the distance, which is never negative; it is 0 beyond the radius."""

    radius: float
    weights: Callable[[Array], Array]


def _lanczos(x: Array, radius: float) -> Array:
    angle = np.pi * np.maximum(x, 1e-3)
    weights = radius * np.sin(angle) * np.sin(angle / radius) / angle**2
    return np.where(x > radius, 0, np.where(x <= 1e-3, 1, weights))


def _gaussian(x: Array, radius: float) -> Array:
    """Its standard deviation is a third of the radius."""
    return np.where(x >= radius, 0, np.exp(-4.5 * (x / radius) ** 2))


def _box(x: Array) -> Array:
    return np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0))


def _triangle(x: Array) -> Array:
    return np.where(x < 1, 1 - x, 0)


def _keys_cubic(x: Array) -> Array:
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


def _mitchell_cubic(x: Array) -> Array:
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


SAMPLING_KERNELS = {
    **{f"lanczos{r}": SamplingKernel(r, partial(_lanczos, radius=r)) for r in (1, 3, 5)},
    "gaussian": SamplingKernel(1.5, partial(_gaussian, radius=1.5)),
    "box": SamplingKernel(1, _box),
    "triangle": SamplingKernel(1, _triangle),
    "keyscubic": SamplingKernel(2, _keys_cubic),
    "mitchellcubic": SamplingKernel(2, _mitchell_cubic),
}
"""By the name that the attr `kernel_type` gives."""
