"""Constants, shapes and orders of axes, as outputs of OpenVINO's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.engines.openvino.library import openvino, opset


def constant(array: np.ndarray[Any, Any]) -> Any:
    """A constant over the memory of an array, which the caller keeps alive: in order, and never written to."""
    ov = openvino()
    element, shape = ov.Type(array.dtype), list(array.shape)
    tensor = (
        ov.Tensor(array.reshape(-1), shape, element) if array.size else ov.Tensor(element, shape)
    )
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
