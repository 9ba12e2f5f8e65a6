"""Constants, shapes and orders of axes, as outputs of OpenVINO's nodes.

OpenVINO computes convolutions and poolings with the channels first. The axes are turned before and after each of these.
What comes between two of them works on what is not turned back yet, so that the turns meet, and cancel each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.engines.openvino.library import openvino, opset
from opkernel.ops.nn.windows import Windows

Shapes = list[tuple[int, ...]]
"""The shapes of the outputs of an operation."""


def constant(array: np.ndarray[Any, Any]) -> Any:
    """A constant over the memory of an array, which the caller keeps alive: in order, and never written to."""
    ov = openvino()
    element, shape = ov.Type(array.dtype), list(array.shape)
    held = (array.reshape(-1), shape, element) if array.size else (element, shape)
    tensor = ov.Tensor(*held)
    return openvino("openvino.op").Constant(tensor, shared_memory=True).output(0)


def ints(values: Sequence[int]) -> Any:
    """A vector of integers: axes, sizes."""
    ov = openvino()
    return openvino("openvino.op").Constant(ov.Type.i64, ov.Shape([len(values)]), list(values))


def scalar(value: float) -> Any:
    """A number in float32."""
    ov = openvino()
    return openvino("openvino.op").Constant(ov.Type.f32, ov.Shape([]), [value])


def as_output(made: Any) -> Any:
    """The output of a node that has one; an output itself."""
    return made if isinstance(made, openvino().Output) else made.output(0)


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an output, all of whose sizes are known."""
    return tuple(x.shape)


def reshaped(x: Any, shape: Sequence[int]) -> Any:
    """The same elements in another shape."""
    if shape_of(x) == tuple(shape):
        return x
    return opset().reshape(x, ints(shape), False).output(0)


def permuted(x: Any, perm: Sequence[int]) -> Any:
    """The axes in another order; two orders in a row are one."""
    x, before = unpermuted(x)
    perm = [before[axis] for axis in perm]
    if perm == list(range(len(perm))):
        return x
    return opset().transpose(x, ints(perm)).output(0)


def unpermuted(x: Any) -> tuple[Any, list[int]]:
    """What an output is a permutation of, and the order of its axes."""
    node = x.get_node()
    if node.get_type_name() != "Transpose":
        return x, list(range(len(shape_of(x))))
    return node.input_value(0), node.input_value(1).get_node().data.tolist()


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
