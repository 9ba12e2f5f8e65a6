"""Gradients of the largest elements: each goes back to where it came from."""

from typing import Any

import opkernel.gradients as g
from opkernel.types import DataType

_INT64 = DataType.DT_INT64


@g.register_gradient("TopK")
def top_k_gradient(op: g.Operation, grad: g.Tensor, _: Any) -> g.Gradients:
    return scattered(op, grad)


@g.register_gradient("TopKV2")
def top_k_v2_gradient(op: g.Operation, grad: g.Tensor, _: Any) -> g.Gradients:
    return scattered(op, grad), None


def scattered(op: g.Operation, grad: g.Tensor) -> Any:
    """The gradients of the elements of each row, at their places in it."""
    x = op.inputs[0]
    indices = g.nodes.Cast(op.outputs[1], DstT=_INT64)
    size, width = g.nodes.Size(x, out_type=_INT64), _last_size(x)
    starts = g.nodes.Range(g.zeros_like(size), size, width)
    rows = g.nodes.Reshape(indices, g.nodes.Pack([-1, _last_size(indices)]))
    places = g.nodes.Reshape(g.nodes.AddV2(rows, g.nodes.ExpandDims(starts, -1)), [-1, 1])
    flat = g.nodes.ScatterNd(places, g.nodes.Reshape(grad, [-1]), g.nodes.Reshape(size, [1]))
    return g.nodes.Reshape(flat, g.shape_of(x))


def _last_size(tensor: g.Tensor) -> Any:
    shape = g.nodes.Shape(tensor, out_type=_INT64)
    return g.nodes.StridedSlice(shape, [-1], [0], [1], shrink_axis_mask=1)


@g.register_gradient("NthElement")
def nth_element_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Equal elements share the gradient."""
    x = op.inputs[0]
    result, spread = (g.nodes.ExpandDims(tensor, -1) for tensor in (op.outputs[0], grad))
    chosen = g.nodes.Cast(g.nodes.Equal(result, x), DstT=grad.dtype)
    number = g.nodes.ExpandDims(g.nodes.Sum(chosen, -1), -1)
    return g.nodes.Mul(g.nodes.RealDiv(chosen, number), spread), None
