"""Layouts: OpenVINO computes convolutions and poolings with the channels first.

The axes are turned before and after each of these. What comes between two of them works on what is not turned back yet, so
that the turns meet, and cancel each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.engines.openvino.tensors import as_output, permuted, reshaped, shape_of, unpermuted
from opkernel.ops.nn.geometry import Windows


def channels_first(x: Any, windows: Windows) -> Any:
    """An input in the layout of the windows, turned so that the channels come after the batch."""
    rank = len(shape_of(x))
    return permuted(x, (0, rank - 1, *range(1, rank - 1))) if windows.channels_last else x


def in_layout(x: Any, windows: Windows) -> Any:
    """What has its channels first, turned to the layout of the windows."""
    rank = len(shape_of(x))
    return permuted(x, (0, *range(2, rank), 1)) if windows.channels_last else x


def common_order(inputs: Sequence[Any]) -> list[int] | None:
    """The order that all inputs are turned to; None where they differ, or none is turned."""
    orders = [unpermuted(one)[1] for one in inputs]
    is_turned = orders[0] != sorted(orders[0])
    return orders[0] if is_turned and all(one == orders[0] for one in orders) else None


def hoist_transposes(build: Callable[..., Any]) -> Callable[..., Any]:
    """An element-wise builder that computes before the axes are turned, where it can.

    All inputs are turned alike, but for constants, vectors and scalars.
    """

    @functools.wraps(build)
    def build_before(*inputs: Any, **attrs: Any) -> Any:
        rank = max(len(shape_of(one)) for one in inputs)
        large = [one for one in inputs if not _is_light(one)]
        order = common_order(large) if large else None
        if order is None or len(order) != rank:
            return as_output(build(*inputs, **attrs))
        back = [order.index(axis) for axis in range(rank)]
        made = build(*(permuted(_of_rank(one, rank), back) for one in inputs), **attrs)
        return permuted(as_output(made), order)

    return build_before


def _is_light(x: Any) -> bool:
    """Whether to turn an input costs nothing at run time."""
    return len(shape_of(x)) < 2 or x.get_node().get_type_name() == "Constant"


def _of_rank(x: Any, rank: int) -> Any:
    """An input with leading axes, as broadcasting adds them."""
    shape = shape_of(x)
    return reshaped(x, (*[1] * (rank - len(shape)), *shape))
