"""ScaleAndTranslate, which resamples images, and its gradient.

The kernel of one's choice tells how much a pixel at some distance
contributes to a new one.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/scale_and_translate_op.cc, sampling_kernels.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.ops.image.resize import (
    AT_ONCE,
    output_size,
    remembered,
    resize_shape,
    two_of,
)
from opkernel.ops.image.resize_grad import original_image_shape
from opkernel.ops.input_checks import require_rank
from opkernel.ops.registration import REAL_NUMBERS, register_kernel
from opkernel.types import Array, DataType


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
    "box": SamplingKernel(1, lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0))),
    "triangle": SamplingKernel(1, lambda x: np.where(x < 1, 1 - x, 0)),
    "keyscubic": SamplingKernel(2, _keys_cubic),
    "mitchellcubic": SamplingKernel(2, _mitchell_cubic),
}
"""By the name that the attr `kernel_type` gives."""


_OF_TAP = 48
"""The bytes that a pixel of a span takes while its weight is found."""
_SMALLEST_TOTAL = 1000 * np.finfo(np.float32).tiny
_ATTRS = ("kernel_type: string = 'lanczos3'", "antialias: bool = true")
_DOC = """
    scale: By how much height and width grow.
    translation: Where the first row and column go, in pixels of the new image.
    kernel_type: lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic, mitchellcubic.
    antialias: Widen the kernel where the image shrinks.
    """

SCALE_AND_TRANSLATE = register_op(
    "ScaleAndTranslate(images: T, size: int32, scale: float, translation: float) -> resized_images: float",
    attrs=["T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}", *_ATTRS],
    shape_fn=resize_shape,
    doc=f"""Resample images; pixels from outside the image are 0.

    images: [batch, height, width, channels].
    size: The new height and width.{_DOC}""",
)
SCALE_AND_TRANSLATE_GRAD = register_op(
    "ScaleAndTranslateGrad(grads: T, original_image: T, scale: float, translation: float) -> output: T",
    attrs=["T: {float}", *_ATTRS],
    shape_fn=original_image_shape,
    doc=f"""The gradient of ScaleAndTranslate by its images, of `original_image`'s size.
    {_DOC}""",
)


class _Taps(NamedTuple):
    """Which old pixels each new pixel is made of, along one dimension; ordered by new pixel."""

    old: Array
    new: Array
    weights: Array

    def by_old(self) -> _Taps:
        """Without those of weight 0, ordered by old pixel, which is now the new one."""
        order = np.argsort(self.old, kind="stable")
        order = order[self.weights[order] != 0]
        return _Taps(self.new[order], self.old[order], self.weights[order])


@remembered
def _taps(
    size: int, output: int, scale: float, translation: float, kernel: SamplingKernel, widen: bool
) -> _Taps:
    """All spans of old pixels are of one length, up to the edge; weights fill their beginning.

    Positions are computed in float, as in the original: their rounding decides on the edge.
    """
    step = np.float32(1) / np.float32(scale)
    stretch = np.maximum(step, np.float32(1)) if widen else np.float32(1)
    reach = np.float32(kernel.radius) * stretch
    pixels = np.arange(output, dtype=np.float32) + np.float32(0.5)
    position = pixels * step + -step * np.float32(translation)
    is_inside = (position >= 0) & (position <= size)
    half = np.float32(0.5)
    first, last = (
        np.clip(np.where(is_inside, edge, 0), 0, size - 1).astype(np.intp)
        for edge in (np.ceil(position - reach - half), np.floor(position + reach - half))
    )
    last[~is_inside] = -1  # no pixel is as far to the front: all weights are 0
    span = int(min(2 * np.ceil(reach) + 1, size))
    with making_bytes("the weights of pixels", output * span * _OF_TAP):
        old = first[:, np.newaxis] + np.arange(span)
        return _weighted(kernel, old, last, position, stretch, size)


def _weighted(
    kernel: SamplingKernel, old: Array, last: Array, position: Array, stretch: Any, size: int
) -> _Taps:
    """The taps of pixels at these positions, each from a row of old pixels up to its last one."""
    output, half = len(position), np.float32(0.5)
    distance = old.astype(np.float32) + half - position[:, np.newaxis]
    weights = kernel.weights(np.abs(distance * (np.float32(1) / stretch))).astype(np.float32)
    weights[old > last[:, np.newaxis]] = 0
    total = weights.sum(axis=1, keepdims=True)
    is_safe = np.abs(total) >= _SMALLEST_TOTAL
    weights = np.where(is_safe, weights * (1 / np.where(is_safe, total, 1)), np.float32(0))
    new = np.broadcast_to(np.arange(output)[:, np.newaxis], old.shape)
    exists = old < size
    return _Taps(old[exists], new[exists], weights[exists])


def _resample(images: Array, taps: _Taps, size: int, axis: int) -> Array:
    """Images of another size along an axis; 0 where no pixel contributes."""
    shape = (*images.shape[:axis], size, *images.shape[axis + 1 :])
    result = np.zeros(check_allocation(shape, DataType.DT_FLOAT), np.float32)
    starts = np.flatnonzero(np.diff(taps.new, prepend=-1))
    ends = np.append(starts, taps.new.size)
    of_pixel = (images.size // images.shape[axis]) * -(-taps.new.size // max(len(starts), 1))
    step = max(AT_ONCE // max(of_pixel, 1), 1)
    for at in in_time(range(0, len(starts), step), SLOW, "resizing images"):
        some = starts[at : at + step]
        whole = slice(some[0], ends[min(at + step, len(starts))])
        parts = np.take(images, taps.old[whole], axis=axis)
        parts *= taps.weights[whole].reshape(-1, *(1,) * (3 - axis))
        place: tuple[Any, ...] = (*[slice(None)] * axis, taps.new[some])
        result[place] = np.add.reduceat(parts, some - whole.start, axis)
    return result


def _factors(scale: Any, translation: Any) -> list[tuple[float, float]]:
    """Scale and translation of the height, and of the width."""
    scales = [float(factor) for factor in two_of("t", scale)]
    if not all(factor > 0 for factor in scales):
        raise InvalidArgumentError("Scale must be greater than zero.")
    return list(zip(scales, map(float, two_of("t", translation)), strict=True))


def _sampling_kernel(kernel_type: str) -> SamplingKernel:
    if kernel_type not in SAMPLING_KERNELS:
        raise InvalidArgumentError(f"Unrecognized kernel type: {kernel_type}")
    return SAMPLING_KERNELS[kernel_type]


@register_kernel(
    SCALE_AND_TRANSLATE,
    types={"T": REAL_NUMBERS},
    host_memory=["size", "scale", "translation"],
    factory=True,
)
def scale_and_translate(*, kernel_type: str, antialias: bool) -> Callable[..., Any]:
    sampling = _sampling_kernel(kernel_type)

    def kernel(images: Any, size: Any, scale: Any, translation: Any) -> Any:
        sizes = output_size(images, size, DataType.DT_FLOAT)
        result = images.astype(np.float32)
        for axis, output, factors in zip((1, 2), sizes, _factors(scale, translation), strict=True):
            taps = _taps(images.shape[axis], output, *factors, sampling, antialias)
            result = _resample(result, taps, output, axis)
        return result

    return kernel


@register_kernel(
    SCALE_AND_TRANSLATE_GRAD,
    types={"T": DataType.DT_FLOAT},
    host_memory=["scale", "translation"],
    factory=True,
)
def scale_and_translate_grad(*, kernel_type: str, antialias: bool) -> Callable[..., Any]:
    sampling = _sampling_kernel(kernel_type)

    def kernel(grads: Any, original_image: Any, scale: Any, translation: Any) -> Any:
        require_rank(grads, 4, "input_grad must be 4-dimensional{}")
        require_rank(original_image, 4, "original_image must be 4-dimensional{}")
        if 0 in (*grads.shape[1:3], *original_image.shape[1:3]):
            raise InvalidArgumentError("image dimensions must be positive")
        result = grads
        for axis, factors in zip((1, 2), _factors(scale, translation), strict=True):
            size = original_image.shape[axis]
            taps = _taps(size, grads.shape[axis], *factors, sampling, antialias)
            result = _resample(result, taps.by_old(), size, axis)
        return result

    return kernel


@g.register_gradient("ScaleAndTranslate")
def scale_and_translate_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    images, _, scale, translation = op.inputs
    attrs = g.attrs_of(op, "kernel_type", "antialias")
    for_images = g.nodes.ScaleAndTranslateGrad(grad, images, scale, translation, **attrs)
    return for_images, None, None, None
