"""Images and volumes whose channels come first: what has which order if their channels come last.

Source: TensorFlow core/grappler/optimizers/generic_layout_optimizer_transposer.cc.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class ChannelOrder(NamedTuple):
    """A layout with the channels first.

    Attributes:
        last: the same layout with the channels last.
        to_last: where each dimension of that layout is in this one.
        to_first: where each dimension of this layout is in that one.
    """

    last: str
    to_last: tuple[int, ...]
    to_first: tuple[int, ...]


CHANNELS_FIRST: Mapping[str, ChannelOrder] = {
    "NCHW": ChannelOrder("NHWC", (0, 2, 3, 1), (0, 3, 1, 2)),
    "NCDHW": ChannelOrder("NDHWC", (0, 2, 3, 4, 1), (0, 4, 1, 2, 3)),
}

PER_DIMENSION = ("strides", "ksize", "dilations")
"""Attrs with one number for each dimension; `explicit_paddings` has two."""


def channels_last_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attrs with which an op does to channels-last tensors what it does with these to channels-first ones.

    Lists that do not have one number for each dimension stay as they are.
    """
    order = CHANNELS_FIRST[attrs["data_format"]]
    turned = {**attrs, "data_format": order.last}
    for name in PER_DIMENSION:
        if len(attrs.get(name, ())) == len(order.to_last):
            turned[name] = in_order(attrs[name], order.to_last)
    paddings = attrs.get("explicit_paddings", ())
    if len(paddings) == 2 * len(order.to_last):
        pairs = in_order(list(zip(paddings[::2], paddings[1::2], strict=True)), order.to_last)
        turned["explicit_paddings"] = [size for pair in pairs for size in pair]
    return turned


def in_order(values: Sequence[Any], order: Sequence[int]) -> list[Any]:
    """The values at these places, such as `to_last`."""
    return [values[place] for place in order]
