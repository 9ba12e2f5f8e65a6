"""Colours, and gradients: between red, green, blue and hue, saturation, value.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/colorspace_op.h.
"""

from typing import Any

import opkernel.gradients as g
from opkernel.errors import FailedPreconditionError
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.ops.input_checks import require_rank_at_least
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.math.elementwise import flush_subnormals
from opkernel.ops.registration import register_kernel


def colorspace_shape(c: InferenceContext) -> None:
    """Input 0, its last dimension 3: the same dimension, where it is known."""
    images = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, c.replace_dim(images, -1, c.with_value(c.dim(images, -1), 3)))


def _declare(name: str, doc: str, traits: str = "") -> OpHandle:
    return register_op(
        name,
        inputs=["images: T"],
        outputs=["output: T"],
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


# Unlike the maximum and the minimum of arrays, these drop a first argument that is no number.
def _larger(a: Any, b: Any, xp: Any) -> Any:
    return xp.where(a > b, a, b)


def _smaller(a: Any, b: Any, xp: Any) -> Any:
    return xp.where(a < b, a, b)


@register_kernel(RGB_TO_HSV, types={"T": FLOATS})
def rgb_to_hsv(images: Any, *, xp: Any) -> Any:
    """Each step is rounded to the type of the images, here and in HSVToRGB."""
    _check(images)
    images = flush_subnormals(images, xp)
    number = images.dtype.type
    red, green, blue = (images[..., i] for i in range(3))
    value = _larger(_larger(red, green, xp), blue, xp)
    extent = value - _smaller(_smaller(red, green, xp), blue, xp)
    zero = xp.zeros_like(value)
    saturation = xp.where(value > zero, extent / value, zero)
    sixth = number(1) / extent * number(1 / 6)
    hue = xp.where(
        red == value,
        sixth * (green - blue),
        xp.where(
            green == value,
            sixth * (blue - red) + number(2 / 6),
            sixth * (red - green) + number(4 / 6),
        ),
    )
    hue = xp.where(extent > zero, hue, zero)
    hue = xp.where(hue < zero, hue + number(1), hue)
    return xp.stack([hue, saturation, value], axis=-1)


@register_kernel(HSV_TO_RGB, types={"T": FLOATS})
def hsv_to_rgb(images: Any, *, xp: Any) -> Any:
    _check(images)
    zero, one, two, three, four, six = (images.dtype.type(i) for i in (0, 1, 2, 3, 4, 6))
    hue, saturation, value = images[..., 0] * six, images[..., 1], images[..., 2]
    parts = (xp.abs(hue - three) - one, two - xp.abs(hue - two), two - xp.abs(hue - four))
    rest = one - saturation
    return xp.stack(
        [(rest + saturation * xp.minimum(xp.maximum(p, zero), one)) * value for p in parts],
        axis=-1,
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
