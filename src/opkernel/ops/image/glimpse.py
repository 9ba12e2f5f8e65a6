"""ExtractGlimpse, ExtractGlimpseV2: windows of images, which may reach beyond them.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/attention_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.image.resize import sized_image_shape
from opkernel.ops.input_checks import require_equal, require_rank
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

_NOISES = ("uniform", "gaussian", "zero")
_INPUTS = ["input: float", "size: int32", "offsets: float"]
_ATTRS = ["centered: bool = true", "normalized: bool = true", "uniform_noise: bool = true"]
_F = np.float32
_FAR = 2**62


def _extract_glimpse_shape(c: InferenceContext) -> None:
    """Images, a size and offsets [batch, 2] -> images of that size."""
    images, offsets = c.with_rank(c.input(0), 4), c.with_rank(c.input(2), 2)
    batch = c.merge(c.dim(images, 0), c.dim(offsets, 0))
    c.with_value(c.dim(offsets, 1), 2)
    if c.get_attr("uniform_noise") and c.get_attr("noise") not in ("", "uniform"):
        raise InvalidArgumentError("The uniform_noise should not be True when noise is not uniform")
    sized_image_shape(c, batch, 1, c.dim(images, 3))


EXTRACT_GLIMPSE = register_op(
    "ExtractGlimpse",
    inputs=_INPUTS,
    outputs=["glimpse: float"],
    attrs=[*_ATTRS, "noise: string = 'uniform'"],
    shape_fn=_extract_glimpse_shape,
    doc="The window of `size` of each image, `offsets` from its middle; noise stands beyond the image.",
)
EXTRACT_GLIMPSE_V2 = register_op(
    "ExtractGlimpseV2",
    inputs=_INPUTS,
    outputs=["glimpse: float"],
    attrs=[*_ATTRS, "noise: string = 'uniform'"],
    shape_fn=_extract_glimpse_shape,
    doc="ExtractGlimpse whose offsets, unless centered and normalized, are those of the first pixel.",
)


def _noise(uniform_noise: bool, noise: str) -> str:
    if uniform_noise and noise not in ("", "uniform"):
        raise InvalidArgumentError(
            "The uniform_noise and noise could not be specified at the same time"
        )
    found = noise or ("uniform" if uniform_noise else "gaussian")
    if found not in _NOISES:
        raise InvalidArgumentError(
            f"The noise could only be uniform, gaussian, or zero, got {noise}"
        )
    return found


@register_kernel(EXTRACT_GLIMPSE, factory=True)
def extract_glimpse(
    *, centered: bool, normalized: bool, uniform_noise: bool, noise: str
) -> Callable[[Any, Any, Any], Any]:
    return _kernel(centered, normalized, _noise(uniform_noise, noise), first_version=True)


@register_kernel(EXTRACT_GLIMPSE_V2, factory=True)
def extract_glimpse_v2(
    *, centered: bool, normalized: bool, uniform_noise: bool, noise: str
) -> Callable[[Any, Any, Any], Any]:
    return _kernel(centered, normalized, _noise(uniform_noise, noise), first_version=False)


def _kernel(
    centered: bool, normalized: bool, noise: str, first_version: bool
) -> Callable[[Any, Any, Any], Any]:
    def extract(images: Any, size: Any, offsets: Any) -> Any:
        _check(images, size, offsets)
        height, width = size.tolist()
        shape = (len(images), height, width, images.shape[3])
        output = np.zeros(check_allocation(shape, DataType.DT_FLOAT), np.float32)
        if not output.size:
            return output
        tops, lefts = (
            _begins(
                offsets[:, axis], images.shape[1 + axis], part, centered, normalized, first_version
            )
            for axis, part in enumerate((height, width))
        )
        for image, glimpse, top, left in zip(images, output, tops, lefts, strict=True):
            _take(image, glimpse, top, left, noise)
        return output

    return extract


def _check(images: Any, size: Any, offsets: Any) -> None:
    require_rank(images, 4, "input must be 4-dimensional{}")
    require_equal(size.shape, (2,), "input must be a vector of size 2 (height, width){}")
    require_rank(offsets, 2, "input must be a matrix{}")
    if len(offsets) != len(images):
        raise InvalidArgumentError(f"first dimension should be batch{TensorShape(offsets.shape)}")
    if offsets.shape[1] != 2:
        raise InvalidArgumentError(
            f"second dimension should be of size 2 (y,x){TensorShape(offsets.shape)}"
        )


def _begins(
    offsets: Any, size: int, part: int, centered: bool, normalized: bool, first_version: bool
) -> list[int]:
    """Where the windows begin along one dimension."""
    at = offsets * _F(size) if normalized else offsets
    if first_version or (centered and normalized):
        if centered:
            at = at / _F(2) + _F(size) / _F(2)
        at = at - _F(part) / _F(2)
    elif centered:
        at = at + _F(size) / _F(2)
    return [int(value) if abs(value) < _FAR else -_FAR for value in at]


def _take(image: Any, glimpse: Any, top: int, left: int, noise: str) -> None:
    """Copy what the image has of the window; noise fills the rest."""
    height, width = glimpse.shape[:2]
    first_row, first_column = max(0, -top), max(0, -left)
    part = image[max(0, top) : max(0, top + height), max(0, left) : max(0, left + width)]
    if part.shape != glimpse.shape and noise != "zero":
        glimpse[...] = _NOISE_OF[noise](image, glimpse.shape)
    if part.size:
        rows = slice(first_row, first_row + part.shape[0])
        glimpse[rows, first_column : first_column + part.shape[1]] = part


def _uniform(image: Any, shape: tuple[int, ...]) -> Any:
    return np.random.default_rng().uniform(0, 1, shape)


def _gaussian(image: Any, shape: tuple[int, ...]) -> Any:
    """Noise with the mean and the deviation of the image."""
    mean, deviation = (float(image.mean()), float(image.std())) if image.size else (0.0, 0.0)
    return np.random.default_rng().normal(mean, deviation, shape)


_NOISE_OF = {"uniform": _uniform, "gaussian": _gaussian}
