"""Contrast, hue and saturation of images.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/adjust_*_op.cc.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import register_kernel
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape_with_rank_at_least
from opkernel.opdef.inference_context import ShapeFn
from opkernel.ops.image.color import hsv_to_rgb, rgb_to_hsv
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
    if images.ndim < 3:
        raise InvalidArgumentError(f"input must be at least 3-D, got shape{list(images.shape)}")
    for name, scalar in scalars.items():
        if scalar.ndim:
            raise InvalidArgumentError(f"{name} must be scalar: {list(scalar.shape)}")


def _check_channels(images: Any) -> None:
    if images.shape[-1] != 3:
        raise InvalidArgumentError(
            f"input must have 3 channels but instead has {images.shape[-1]} channels."
        )


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


@register_kernel(ADJUST_CONTRAST, device="CPU", types={"T": _REAL_TYPES})
def adjust_contrast(
    images: Any, contrast_factor: Any, min_value: Any, max_value: Any, *, xp: Any
) -> Any:
    _check_images(
        images, contrast_factor=contrast_factor, min_value=min_value, max_value=max_value
    )
    result = images.astype(np.float32)
    if result.size == 0:
        return result
    return xp.clip(_with_contrast(result, contrast_factor, xp), min_value, max_value)


@register_kernel(ADJUST_CONTRAST_V2, device="CPU", types=_FLOAT)
def adjust_contrast_v2(images: Any, contrast_factor: Any, *, xp: Any) -> Any:
    _check_images(images, contrast_factor=contrast_factor)
    return _with_contrast(images, contrast_factor, xp) if images.size else xp.zeros_like(images)


@register_kernel(ADJUST_SATURATION, device="CPU", types=_FLOAT)
def adjust_saturation(images: Any, scale: Any, *, xp: Any) -> Any:
    _check_images(images, scale=scale)
    _check_channels(images)
    hsv = rgb_to_hsv(images, xp)
    saturation = xp.minimum(xp.maximum(hsv[..., 1] * scale, 0), 1)
    return hsv_to_rgb(xp.stack([hsv[..., 0], saturation, hsv[..., 2]], axis=-1), xp)


def _hue(images: Any, low: Any, high: Any, xp: Any) -> Any:
    """The hue of red, green, blue as a place on a circle of length 6."""
    red, green, blue = images[..., :1], images[..., 1:2], images[..., 2:]
    middle = xp.maximum(xp.minimum(red, green), xp.minimum(xp.maximum(red, green), blue))
    ratio = (middle - low) / (high - low)
    sector = xp.where(
        red < green,
        xp.where(blue < red, 1, xp.where(blue > green, 3, 2)),
        xp.where(blue < green, 0, xp.where(blue > red, 4, 5)),
    ).astype(images.dtype)
    hue = sector + xp.where(sector % 2 == 0, ratio, 1 - ratio)
    return xp.where(high == low, xp.zeros_like(hue), hue)


@register_kernel(ADJUST_HUE, device="CPU", types=_FLOAT)
def adjust_hue(images: Any, delta: Any, *, xp: Any) -> Any:
    """The largest and the smallest of the three stay as they are."""
    _check_images(images, delta=delta)
    _check_channels(images)
    high, low = xp.max(images, axis=-1, keepdims=True), xp.min(images, axis=-1, keepdims=True)
    hue = xp.remainder(_hue(images, low, high, xp) + delta * 6, 6)
    parts = xp.concatenate([xp.abs(hue - 3) - 1, 2 - xp.abs(hue - 2), 2 - xp.abs(hue - 4)], axis=-1)
    return low + xp.clip(parts, 0, 1) * (high - low)
