"""Contrast, hue and saturation of images.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/adjust_*_op.cc.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape_with_rank_at_least
from opkernel.opdef.shapes.inference_context import ShapeFn
from opkernel.ops.input_checks import require_equal, require_rank_at_least, require_scalar
from opkernel.ops.math.elementwise import flush_subnormals
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_FLOAT = {"T": DataType.DT_FLOAT}


def scalars_shape(c: InferenceContext) -> None:
    """Input 0, images; the other inputs are scalars."""
    for i in range(1, c.num_inputs()):
        c.with_rank(c.input(i), 0)
    c.set_output(0, c.with_rank_at_least(c.input(0), 3))


def _declare(name: str, factor: str, doc: str, shape_fn: ShapeFn) -> OpHandle:
    return register_op(
        name,
        inputs=["images: T", f"{factor}: float"],
        outputs=["output: T"],
        attrs=["T: {half, float} = DT_FLOAT"],
        shape_fn=shape_fn,
        doc=f"{doc}\n\nimages: [..., height, width, channels].",
    )


ADJUST_CONTRAST = register_op(
    "AdjustContrast",
    inputs=["images: T", "contrast_factor: float", "min_value: float", "max_value: float"],
    outputs=["output: float"],
    attrs=["T: {uint8, int8, int16, int32, int64, float, double}"],
    shape_fn=scalars_shape,
    deprecated=(2, "Use AdjustContrastv2 instead"),
    doc="AdjustContrastv2, clipped between min_value and max_value.",
)
ADJUST_CONTRAST_V2 = _declare(
    "AdjustContrastv2",
    "contrast_factor",
    "Multiplies the distance of each pixel from the mean of its channel in its image.",
    scalars_shape,
)
ADJUST_HUE = _declare(
    "AdjustHue",
    "delta",
    "Adds `delta` to the hue of red, green, blue images; 1 is once around the circle.",
    unchanged_shape_with_rank_at_least(3),
)
ADJUST_SATURATION = _declare(
    "AdjustSaturation",
    "scale",
    "Multiplies the saturation of red, green, blue images by `scale`.",
    unchanged_shape_with_rank_at_least(3),
)


def _check_images(images: Any, **scalars: Any) -> None:
    require_rank_at_least(images, 3, "input must be at least 3-D, got shape{}")
    for name, scalar in scalars.items():
        require_scalar(scalar, f"{name} must be scalar: {{}}")


def _check_channels(images: Any) -> None:
    require_equal(images.shape[-1], 3, "input must have 3 channels but instead has {} channels.")


def _with_contrast(images: Any, factor: Any, xp: Any) -> Any:
    mean = xp.mean(xp.mean(images, axis=-2, keepdims=True), axis=-3, keepdims=True)
    return (images - mean) * factor + mean


_REAL_TYPES: Sequence[DataType] = (
    DataType.DT_UINT8,
    DataType.DT_INT8,
    DataType.DT_INT16,
    DataType.DT_INT32,
    DataType.DT_FLOAT,
    DataType.DT_DOUBLE,
)


@register_kernel(ADJUST_CONTRAST, types={"T": _REAL_TYPES})
def adjust_contrast(
    images: Any, contrast_factor: Any, min_value: Any, max_value: Any, *, xp: Any
) -> Any:
    _check_images(images, contrast_factor=contrast_factor, min_value=min_value, max_value=max_value)
    result = images.astype(np.float32)
    if result.size == 0:
        return result
    return xp.clip(_with_contrast(result, contrast_factor, xp), min_value, max_value)


@register_kernel(ADJUST_CONTRAST_V2, types=_FLOAT)
def adjust_contrast_v2(images: Any, contrast_factor: Any, *, xp: Any) -> Any:
    _check_images(images, contrast_factor=contrast_factor)
    return _with_contrast(images, contrast_factor, xp) if images.size else xp.zeros_like(images)


@register_kernel(ADJUST_SATURATION, types=_FLOAT)
def adjust_saturation(images: Any, scale: Any, *, xp: Any) -> Any:
    """A colour with a channel that is no number may lose its hue, and becomes grey."""
    _check_images(images, scale=scale)
    _check_channels(images)
    images = flush_subnormals(images, xp)
    red, green, blue = images[..., :1], images[..., 1:2], images[..., 2:]
    value = _larger(red, _larger(green, blue, xp), xp)
    extent = value - _smaller(red, _smaller(green, blue, xp), xp)
    saturation = xp.where(value > 0, extent / value, xp.zeros_like(value)) * scale
    saturation = xp.where(saturation > 0, xp.minimum(saturation, np.float32(1)), np.float32(0))
    hue = _hue_of_extent(images, value, extent, xp) * 6
    parts = xp.concatenate([xp.abs(hue - 3) - 1, 2 - xp.abs(hue - 2), 2 - xp.abs(hue - 4)], axis=-1)
    parts = xp.where((hue >= 0) & (hue < 6), xp.clip(parts, 0, 1), np.float32(0))
    chroma = saturation * value
    return value - chroma + parts * chroma


# Unlike the maximum and the minimum of arrays, these drop a second argument that is no number.
def _larger(a: Any, b: Any, xp: Any) -> Any:
    return xp.where(a < b, b, a)


def _smaller(a: Any, b: Any, xp: Any) -> Any:
    return xp.where(b < a, b, a)


def _hue_of_extent(images: Any, value: Any, extent: Any, xp: Any) -> Any:
    """The hue between 0 and 1, from the largest channel and the extent of all three."""
    red, green, blue = images[..., :1], images[..., 1:2], images[..., 2:]
    sixth = 1 / (6 * extent)
    hue = xp.where(
        red == value,
        sixth * (green - blue),
        xp.where(green == value, sixth * (blue - red) + 2 / 6, sixth * (red - green) + 4 / 6),
    )
    hue = xp.where(extent <= 0, xp.zeros_like(hue), hue)
    return xp.where(hue < 0, hue + 1, hue)


# The circle of hues in six sectors: which channels are the largest, the middle and the smallest
# there; and which of these red, green and blue are.
_BY_SIZE = np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0], [2, 0, 1], [0, 2, 1]])
_BY_CHANNEL = np.argsort(_BY_SIZE, axis=1)


@register_kernel(ADJUST_HUE, types=_FLOAT)
def adjust_hue(images: Any, delta: Any, *, xp: Any) -> Any:
    """The largest and the smallest channel stay; the third is between them."""
    _check_images(images, delta=delta)
    _check_channels(images)
    sector = _sector(images, xp)
    by_size = xp.take_along_axis(images, xp.asarray(_BY_SIZE)[sector], axis=-1)
    high, middle, low = (by_size[..., i] for i in range(3))
    ratio = _mirrored((middle - low) / (high - low), sector, xp)
    hue = xp.where(high == low, xp.zeros_like(high), sector.astype(images.dtype) + ratio)
    hue = xp.remainder(hue + delta * 6, 6)
    hue = xp.where(hue >= 6, xp.zeros_like(hue), hue)
    sector = xp.where(hue >= 0, xp.floor(hue), 5).astype(sector.dtype)
    ratio = _mirrored(hue - sector.astype(images.dtype), sector, xp)
    by_size = xp.stack([high, low + ratio * (high - low), low], axis=-1)
    return xp.take_along_axis(by_size, xp.asarray(_BY_CHANNEL)[sector], axis=-1)


def _sector(images: Any, xp: Any) -> Any:
    """In which sixth of the circle of hues colours are."""
    red, green, blue = (images[..., i] for i in range(3))
    return xp.where(
        red < green,
        xp.where(blue < red, 1, xp.where(blue > green, 3, 2)),
        xp.where(blue < green, 0, xp.where(blue > red, 4, 5)),
    )


def _mirrored(ratio: Any, sector: Any, xp: Any) -> Any:
    """The middle channel rises in even sectors and falls in odd ones."""
    return xp.where(sector % 2 == 0, ratio, 1 - ratio)
