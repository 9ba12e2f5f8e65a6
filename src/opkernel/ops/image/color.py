"""Colours of images: contrast, hue and saturation adjusted; RGBToHSV, HSVToRGB and their gradients.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/colorspace_op.h, adjust_*_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import FailedPreconditionError
from opkernel.kernel import KernelRegistry, cut, shard
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape_with_rank_at_least
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.opdef.shapes.inference_context import ShapeFn
from opkernel.ops.input_checks import require_equal, require_rank_at_least, require_scalar
from opkernel.ops.math.elementwise import flush_subnormals
from opkernel.ops.registration import FLOATS, WIDE_FLOATS, register_kernel
from opkernel.types import Array, DataType


def colorspace_shape(c: InferenceContext) -> None:
    """Input 0, its last dimension 3: the same dimension, where it is known."""
    images = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, c.replace_dim(images, -1, c.with_value(c.dim(images, -1), 3)))


def _declare(name: str, doc: str, traits: str = "") -> OpHandle:
    return register_op(
        f"{name}(images: T) -> output: T",
        attrs=["T: {half, bfloat16, float, double} = DT_FLOAT"],
        shape_fn=colorspace_shape,
        traits=traits,
        doc=doc,
    )


RGB_TO_HSV = _declare(
    "RGBToHSV",
    "Hue, saturation and value, between 0 and 1, of colours whose last dimension is red, green, blue.",
    traits="clustering=slow",
)
HSV_TO_RGB = _declare(
    "HSVToRGB",
    "Red, green and blue of colours whose last dimension is hue, saturation, value, between 0 and 1.",
)


@register_kernel(RGB_TO_HSV, types={"T": FLOATS})
def rgb_to_hsv(images: Any, *, xp: Any) -> Any:
    """Each step is rounded to the type of the images, here and in HSVToRGB."""
    _check(images)
    images = flush_subnormals(images, xp)
    number = images.dtype.type
    red, green, blue = (images[..., i] for i in range(3))
    value = larger(blue, larger(green, red, xp), xp)
    extent = value - smaller(blue, smaller(green, red, xp), xp)
    zero = xp.zeros_like(value)
    saturation = xp.where(value > zero, extent / value, zero)
    sixth = number(1) / extent * number(1 / 6)
    hue = xp.where(extent > zero, _place_of_hue(images, value, sixth, xp), zero)
    hue = xp.where(hue < zero, hue + number(1), hue)
    return xp.stack([hue, saturation, value], axis=-1)


def _place_of_hue(images: Any, value: Any, sixth: Any, xp: Any) -> Any:
    """The hue between -1/6 and 5/6, from the largest channel and the size of a sixth."""
    red, green, blue = (images[..., i] for i in range(3))
    second, third = images.dtype.type(2 / 6), images.dtype.type(4 / 6)
    return xp.where(
        red == value,
        sixth * (green - blue),
        xp.where(green == value, sixth * (blue - red) + second, sixth * (red - green) + third),
    )


@register_kernel(HSV_TO_RGB, types={"T": FLOATS})
def hsv_to_rgb(images: Any, *, xp: Any) -> Any:
    _check(images)
    zero, one, two, three, four, six = (images.dtype.type(i) for i in (0, 1, 2, 3, 4, 6))
    hue, saturation, value = images[..., 0] * six, images[..., 1], images[..., 2]
    parts = (xp.abs(hue - three) - one, two - xp.abs(hue - two), two - xp.abs(hue - four))
    rest = one - saturation
    return xp.stack(
        [(rest + saturation * xp.minimum(xp.maximum(p, zero), one)) * value for p in parts], axis=-1
    )


def _check(images: Any) -> None:
    require_rank_at_least(images, 1, "input must be at least 1D[]")
    if images.shape[-1] != 3:
        raise FailedPreconditionError(
            f"input must have 3 channels but input only has {images.shape[-1]} channels."
        )


@g.register_gradient("RGBToHSV", not_derivative="it holds for values between 0 and 1")
def rgb_to_hsv_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The gradient of a pixel whose largest and smallest colours keep their places.

    Hue is then the difference of the colours beside the largest one by 6 (largest - smallest), and a
    constant; saturation is (largest - smallest) / largest.
    """
    colours = g.nodes.Unpack(op.inputs[0], num=3, axis=-1)
    for_hue, for_saturation, for_value = g.nodes.Unpack(grad, num=3, axis=-1)
    largest, smallest = _largest_and_smallest(*colours)
    top, bottom = _chosen(largest, colours), _chosen(smallest, colours)
    beside = [g.nodes.Sub(colours[i - 2], colours[i - 1]) for i in range(3)]
    difference, spread = _chosen(largest, beside), g.nodes.Sub(top, bottom)
    hue_scale = g.nodes.Mul(_where_positive(top), g.nodes.DivNoNan(for_hue, g.nodes.Square(spread)))
    found = []
    for i, colour in enumerate(colours):
        of_difference = g.nodes.Mul(g.nodes.Sub(largest[i - 1], largest[i - 2]), spread)
        of_spread = g.nodes.Mul(difference, g.nodes.Sub(largest[i], smallest[i]))
        by_hue = g.nodes.Mul(g.nodes.Sub(of_difference, of_spread), g.nodes.Div(hue_scale, 6))
        by_top = g.nodes.DivNoNan(g.nodes.Mul(largest[i], bottom), g.nodes.Square(top))
        of_saturation = g.nodes.Sub(by_top, g.nodes.DivNoNan(smallest[i], top))
        of_saturation = g.nodes.Mul(_where_positive(colour), of_saturation)
        by_saturation = g.nodes.Mul(for_saturation, of_saturation)
        by_value = g.nodes.Mul(for_value, largest[i])
        found.append(g.nodes.AddN([by_hue, by_saturation, by_value]))
    return g.nodes.Pack(found, axis=-1)


def _largest_and_smallest(red: Any, green: Any, blue: Any) -> tuple[list[Any], list[Any]]:
    """1 for the colour that is the largest, or the smallest, 0 for the others.

    Of equal ones the first counts as the larger.
    """

    def both(first: Any, second: Any) -> Any:
        return g.nodes.Cast(g.nodes.LogicalAnd(first, second), DstT=red.dtype)

    red_to_green = g.nodes.GreaterEqual(red, green)
    red_to_blue = g.nodes.GreaterEqual(red, blue)
    green_to_blue = g.nodes.GreaterEqual(green, blue)
    green_to_red, blue_to_red, blue_to_green = (
        g.nodes.LogicalNot(x) for x in (red_to_green, red_to_blue, green_to_blue)
    )
    largest = [
        both(red_to_green, red_to_blue),
        both(green_to_red, green_to_blue),
        both(blue_to_red, blue_to_green),
    ]
    smallest = [
        both(green_to_red, blue_to_red),
        both(red_to_green, blue_to_green),
        both(red_to_blue, green_to_blue),
    ]
    return largest, smallest


def _chosen(which: list[Any], values: Any) -> Any:
    return g.nodes.AddN([g.nodes.Mul(*pair) for pair in zip(which, values, strict=True)])


def _where_positive(x: Any) -> Any:
    return g.nodes.Cast(g.nodes.Greater(x, 0), DstT=x.dtype)


_FLOAT = {"T": DataType.DT_FLOAT}


def _declare_adjustment(name: str, factor: str, doc: str, shape_fn: ShapeFn) -> OpHandle:
    return register_op(
        f"{name}(images: T, {factor}: float) -> output: T",
        attrs=["T: {half, float} = DT_FLOAT"],
        shape_fn=shape_fn,
        doc=f"{doc}\n\nimages: [..., height, width, channels].",
    )


def _scalars_shape(c: InferenceContext) -> None:
    """Input 0, images; the other inputs are scalars."""
    check_scalars(c, *range(1, c.num_inputs()))
    c.set_output(0, c.with_rank_at_least(c.input(0), 3))


ADJUST_CONTRAST = register_op(
    "AdjustContrast(images: T, contrast_factor: float, min_value: float, max_value: float) -> output: float",
    attrs=["T: {uint8, int8, int16, int32, int64, float, double}"],
    shape_fn=_scalars_shape,
    deprecated=(2, "Use AdjustContrastv2 instead"),
    doc="AdjustContrastv2, clipped between min_value and max_value.",
)
ADJUST_CONTRAST_V2 = _declare_adjustment(
    "AdjustContrastv2",
    "contrast_factor",
    "Multiplies the distance of each pixel from the mean of its channel in its image.",
    _scalars_shape,
)
ADJUST_HUE = _declare_adjustment(
    "AdjustHue",
    "delta",
    "Adds `delta` to the hue of red, green, blue images; 1 is once around the circle.",
    unchanged_shape_with_rank_at_least(3),
)
ADJUST_SATURATION = _declare_adjustment(
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


_TYPES = (DataType.DT_UINT8, DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32, *WIDE_FLOATS)


@register_kernel(ADJUST_CONTRAST, types={"T": _TYPES})
def adjust_contrast(
    images: Any, contrast_factor: Any, min_value: Any, max_value: Any, *, xp: Any
) -> Any:
    _check_images(images, contrast_factor=contrast_factor, min_value=min_value, max_value=max_value)
    result = images.astype(np.float32)
    if result.size == 0:
        return result
    return xp.clip(_with_contrast(result, contrast_factor, xp), min_value, max_value)


Adjust = Callable[[Any, Any, Any], Any]
"""A function as `adjust_contrast_of`."""


def adjust_contrast_of(images: Array, factor: Any, out: Array) -> None:
    """Fill `out` with images [images, height, width, channels] of another contrast; `factor` is a float32."""
    count, height, width, channels = images.shape
    if channels == 1:
        out[...] = _with_contrast(images, factor, np)
        return
    columns = np.moveaxis(images, 2, 0).copy()  # lest the innermost loop be over a few channels
    mean = columns.mean(axis=0).mean(axis=1, keepdims=True)
    means = np.tile(mean, width)
    lines = out.reshape(count, height, width * channels)
    np.subtract(images.reshape(lines.shape), means, out=lines)
    lines *= factor
    lines += means


def adjust_saturation_of(pixels: Array, scale: Any, out: Array) -> None:
    """Fill `out` with pixels [pixels, 3] of another saturation; `scale` is a float32."""
    out[...] = _with_saturation(pixels, scale, np)


def adjust_hue_of(pixels: Array, delta: Any, out: Array) -> None:
    """Fill `out` with pixels [pixels, 3] of another hue; `delta` is a float32."""
    out[...] = _with_hue(pixels, delta, np)


_AT_ONCE = 1 << 16
"""About so many pixels are adjusted together: they stay in the processor's cache."""


def _in_parts(adjust: Adjust, x: Array, amount: Any) -> Array:
    """Images or pixels adjusted, some at a time."""
    out = np.empty_like(x)
    parts = cut(len(x), max(x.size // (3 * _AT_ONCE), 1))
    shard(lambda some: adjust(x[some], np.float32(amount), out[some]), parts)
    return out


def register_adjustments(
    contrast: Adjust, saturation: Adjust, hue: Adjust, registry: KernelRegistry | None = None
) -> None:
    """Register the kernels of AdjustContrastv2, AdjustSaturation and AdjustHue with functions that adjust images."""

    def adjust_contrast_v2(images: Any, contrast_factor: Any, *, xp: Any) -> Any:
        _check_images(images, contrast_factor=contrast_factor)
        if not images.size:
            return xp.zeros_like(images)
        if xp is not np:
            return _with_contrast(images, contrast_factor, xp)
        shape = images.shape
        whole = np.ascontiguousarray(images).reshape(-1, *shape[-3:])
        return _in_parts(contrast, whole, contrast_factor).reshape(shape)

    def of_pixels(images: Any, amount: Any, adjust: Adjust, compute: Any, xp: Any) -> Any:
        _check_channels(images)
        if xp is not np:
            return compute(images, amount, xp)
        pixels = np.ascontiguousarray(images).reshape(-1, 3)
        return _in_parts(adjust, pixels, amount).reshape(images.shape)

    def adjust_saturation(images: Any, scale: Any, *, xp: Any) -> Any:
        _check_images(images, scale=scale)
        return of_pixels(images, scale, saturation, _with_saturation, xp)

    def adjust_hue(images: Any, delta: Any, *, xp: Any) -> Any:
        _check_images(images, delta=delta)
        return of_pixels(images, delta, hue, _with_hue, xp)

    register_kernel(ADJUST_CONTRAST_V2, types=_FLOAT, registry=registry)(adjust_contrast_v2)
    register_kernel(ADJUST_SATURATION, types=_FLOAT, registry=registry)(adjust_saturation)
    register_kernel(ADJUST_HUE, types=_FLOAT, registry=registry)(adjust_hue)


register_adjustments(adjust_contrast_of, adjust_saturation_of, adjust_hue_of)


def _with_saturation(images: Any, scale: Any, xp: Any) -> Any:
    """A colour with a channel that is no number may lose its hue, and becomes grey."""
    images = flush_subnormals(images, xp)
    red, green, blue = images[..., :1], images[..., 1:2], images[..., 2:]
    value = larger(red, larger(green, blue, xp), xp)
    extent = value - smaller(red, smaller(green, blue, xp), xp)
    saturation = xp.where(value > 0, extent / value, xp.zeros_like(value)) * scale
    saturation = xp.where(saturation > 0, xp.minimum(saturation, np.float32(1)), np.float32(0))
    hue = _hue_of_extent(images, value, extent, xp) * 6
    parts = xp.concatenate([xp.abs(hue - 3) - 1, 2 - xp.abs(hue - 2), 2 - xp.abs(hue - 4)], axis=-1)
    parts = xp.where((hue >= 0) & (hue < 6), xp.clip(parts, 0, 1), np.float32(0))
    chroma = saturation * value
    return value - chroma + parts * chroma


def larger(a: Any, b: Any, xp: Any) -> Any:
    """The larger of two numbers; the first where one is no number."""
    return xp.where(a < b, b, a)


def smaller(a: Any, b: Any, xp: Any) -> Any:
    """The smaller of two numbers; the first where one is no number."""
    return xp.where(b < a, b, a)


def _hue_of_extent(images: Any, value: Any, extent: Any, xp: Any) -> Any:
    """The hue between 0 and 1, from the largest channel and the extent of all three."""
    hue = _place_of_hue(images, value[..., 0], 1 / (6 * extent[..., 0]), xp)[..., None]
    hue = xp.where(extent <= 0, xp.zeros_like(hue), hue)
    return xp.where(hue < 0, hue + 1, hue)


# The circle of hues in six sectors: which channels are the largest, the middle and the smallest
# there; and which of these red, green and blue are.
_BY_SIZE = np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0], [2, 0, 1], [0, 2, 1]])
_BY_CHANNEL = np.argsort(_BY_SIZE, axis=1)


def _with_hue(images: Any, delta: Any, xp: Any) -> Any:
    """The largest and the smallest channel stay; the third is between them."""
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
