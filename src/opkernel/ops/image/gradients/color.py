"""The gradient of RGBToHSV."""

from typing import Any

import opkernel.gradients as g


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
