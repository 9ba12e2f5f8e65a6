"""Types and colours of images.

Source: TensorFlow python/ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.array.making import saturate_cast
from opkernel.endpoints.image._images import in_float, on_batch
from opkernel.endpoints.linalg.products import tensordot
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    like,
    number_like,
    shape_of,
    static_value,
)
from opkernel.types import DataType, as_dtype


@composed
def convert_image_dtype(
    image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None
) -> Any:
    """Images of another type, scaled: floats are from 0 to 1, integers up to their type's maximum.

    Args:
        image: the images.
        dtype: the type wanted.
        saturate: give the nearest number of the type where one is out of its range.
        name: a name for the scope of nodes in a graph.
    """
    x, wanted = convert(image), as_dtype(dtype)
    given = dtype_of(x)
    if given == wanted:
        return x
    narrowed = saturate_cast if saturate else cast_to
    if given.is_integer and wanted.is_integer:
        if given.max > wanted.max:
            factor = (given.max + 1) // (wanted.max + 1)
            return narrowed(raw_ops.FloorDiv(x=x, y=number_like(x, factor)), wanted)
        factor = (wanted.max + 1) // (given.max + 1)
        wide = narrowed(x, wanted)
        return raw_ops.Mul(x=wide, y=number_like(wide, factor))
    if given.is_floating and wanted.is_floating:
        return cast_to(x, wanted)
    if given.is_integer:
        wide = cast_to(x, wanted)
        return raw_ops.Mul(x=wide, y=number_like(wide, 1.0 / given.max))
    return narrowed(raw_ops.Mul(x=x, y=number_like(x, wanted.max + 0.5)), wanted)


@composed
def adjust_brightness(image: TensorLike, delta: TensorLike) -> Any:
    """`image + delta`; integers as parts of their maximum."""
    return in_float(
        image, lambda x: raw_ops.AddV2(x=x, y=cast_to(like(delta, dtype_of(x)), dtype_of(x))),
        saturate=True,
    )  # fmt: skip


@composed
def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Any:
    """`(x - mean) * contrast_factor + mean`, with the mean of each channel of each image."""

    def adjusted(x: Any) -> Any:
        return raw_ops.AdjustContrastv2(images=x, contrast_factor=contrast_factor)

    return in_float(images, adjusted, saturate=True)


@composed
def adjust_gamma(image: TensorLike, gamma: TensorLike = 1, gain: TensorLike = 1) -> Any:
    """`gain * x ** gamma`, for images from 0 to 1.

    Raises:
        ValueError: `gamma` is negative.
    """
    value = static_value(gamma)
    if value is not None and value < 0:
        raise ValueError(f"gamma is 0 or more, and not {value}")

    def adjusted(x: Any) -> Any:
        power = raw_ops.Pow(x=x, y=like(gamma, dtype_of(x)))
        return raw_ops.Mul(x=like(gain, dtype_of(x)), y=power)

    return in_float(image, adjusted, saturate=True)


@composed
def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Any:
    """RGB images with the hue turned by `delta`, from -1 to 1."""
    return in_float(image, lambda x: raw_ops.AdjustHue(images=x, delta=delta), saturate=False)


@composed
def adjust_saturation(
    image: TensorLike, saturation_factor: TensorLike, name: str | None = None
) -> Any:
    """RGB images with the saturation multiplied by a factor."""

    def adjusted(x: Any) -> Any:
        return raw_ops.AdjustSaturation(images=x, scale=saturation_factor)

    return in_float(image, adjusted, saturate=False)


@composed
def adjust_jpeg_quality(
    image: TensorLike, jpeg_quality: TensorLike, dct_method: str = "", name: str | None = None
) -> Any:
    """An image as it is after it was stored as a JPEG file of a quality, from 0 to 100."""
    x = convert(image)
    bytes_ = convert_image_dtype(x, DataType.DT_UINT8, saturate=True)
    contents = raw_ops.EncodeJpegVariableQuality(images=bytes_, quality=jpeg_quality)
    found = raw_ops.DecodeJpeg(contents=contents, dct_method=dct_method)
    return convert_image_dtype(found, dtype_of(x), saturate=True)


@composed
def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Any:
    """RGB images as images of one channel, their luminance."""
    x = convert(images)
    wide = convert_image_dtype(x, DataType.DT_FLOAT)
    weights = np.array([0.2989, 0.5870, 0.1140], np.float32)
    last = known_rank(x, "rgb_to_grayscale") - 1
    gray = raw_ops.ExpandDims(input=tensordot(wide, weights, [[last], [0]]), axis=-1)
    return convert_image_dtype(gray, dtype_of(x))


@composed
def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Any:
    """Images of one channel as RGB images.

    Raises:
        ValueError: the last axis has another size.
    """
    x = convert(images)
    sizes = shape_of(x)
    if isinstance(sizes, np.ndarray) and (not sizes.size or sizes[-1] != 1):
        raise ValueError(f"grayscale_to_rgb takes images of one channel, not of shape {sizes}")
    times = np.array([1] * (known_rank(x, "grayscale_to_rgb") - 1) + [3], np.int32)
    return raw_ops.Tile(input=x, multiples=times)


_YIQ: list[list[float]] = [
    [0.299, 0.59590059, 0.2115],
    [0.587, -0.27455667, -0.52273617],
    [0.114, -0.32134392, 0.31119955],
]
_FROM_YIQ: list[list[float]] = [
    [1, 1, 1],
    [0.95598634, -0.27201283, -1.10674021],
    [0.6208248, -0.64720424, 1.70423049],
]
_YUV: list[list[float]] = [
    [0.299, -0.14714119, 0.61497538],
    [0.587, -0.28886916, -0.51496512],
    [0.114, 0.43601035, -0.10001026],
]
_FROM_YUV: list[list[float]] = [
    [1, 1, 1],
    [0, -0.394642334, 2.03206185],
    [1.13988303, -0.58062185, 0],
]


def _mixed(images: Any, matrix: list[list[float]]) -> Any:
    x = convert(images)
    weights = np.array(matrix, dtype_of(x).numpy_dtype)
    return tensordot(x, weights, [[known_rank(x, "A change of colours") - 1], [0]])


@composed
def rgb_to_yiq(images: TensorLike) -> Any:
    """RGB images, from 0 to 1, as YIQ images."""
    return _mixed(images, _YIQ)


@composed
def yiq_to_rgb(images: TensorLike) -> Any:
    """YIQ images as RGB images."""
    return _mixed(images, _FROM_YIQ)


@composed
def rgb_to_yuv(images: TensorLike) -> Any:
    """RGB images, from 0 to 1, as YUV images."""
    return _mixed(images, _YUV)


@composed
def yuv_to_rgb(images: TensorLike) -> Any:
    """YUV images as RGB images."""
    return _mixed(images, _FROM_YUV)


@composed
def per_image_standardization(image: TensorLike) -> Any:
    """Each image with the mean 0 and the variance 1, as floating point."""

    def standardized(x: Any) -> Any:
        wide = cast_to(x, DataType.DT_FLOAT) if dtype_of(x).is_integer else x
        axes = np.array([-1, -2, -3], np.int32)
        mean = raw_ops.Mean(input=wide, axis=axes, keep_dims=True)
        away = raw_ops.Sub(x=wide, y=mean)
        spread = raw_ops.Sqrt(
            x=raw_ops.Mean(input=raw_ops.Square(x=away), axis=axes, keep_dims=True)
        )
        count = raw_ops.Prod(input=shape_of(wide)[-3:], axis=np.array([0], np.int32))
        least = raw_ops.Rsqrt(x=cast_to(count, dtype_of(wide)))
        return raw_ops.RealDiv(x=away, y=raw_ops.Maximum(x=spread, y=least))

    return on_batch(image, standardized, "per_image_standardization")
