"""Gradients of ops that put tensors together."""

from collections.abc import Sequence
from typing import Any

import opkernel.gradients as g
from opkernel.types import DataType


@g.register_gradient("Pack")
def pack_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Unpack(grad, num=op.get_attr("N"), **g.attrs_of(op, "axis"))


@g.register_gradient("Concat")
def concat_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    axis, *values = op.inputs
    return [None, *_parts(values, axis, grad)]


@g.register_gradient("ConcatV2")
def concat_v2_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    *values, axis = op.inputs
    return [*_parts(values, axis, grad), None]


def _parts(values: Sequence[g.Tensor], axis: g.Tensor, grad: g.Gradient) -> Sequence[Any]:
    """The part of the gradient that belongs to each of the values."""
    if len(values) == 1:
        return [grad]
    shapes = [g.shape_of(value) for value in values]
    along = _from_front(axis, values[0])
    if isinstance(grad, g.IndexedSlices) and isinstance(along, int):
        return _parts_of_rows(shapes, along, grad) if along else _ranges_of_rows(shapes, grad)
    offsets = g.nodes.ConcatOffset(along, shapes)
    return [g.nodes.Slice(grad, *part) for part in zip(offsets, shapes, strict=True)]


def _from_front(axis: g.Tensor, value: g.Tensor) -> Any:
    """The axis counted from the front: an int if it is known, else a tensor of int32."""
    rank, known = value.shape.rank, g.constant_value(axis)
    if rank is not None and known is not None:
        return int(known) % max(rank, 1)
    rank = g.nodes.Rank(value)
    return g.nodes.FloorMod(g.nodes.Cast(axis, DstT=DataType.DT_INT32), rank)


def _parts_of_rows(shapes: Sequence[g.Tensor], axis: int, grad: g.IndexedSlices) -> Sequence[Any]:
    """The parts along an axis inside the rows."""
    rows = [g.nodes.ConcatV2([[-1], g.nodes.Slice(shape, [1], [-1])], 0) for shape in shapes]
    offsets = g.nodes.ConcatOffset(axis, shapes)
    return [
        g.IndexedSlices(g.nodes.Slice(grad.values, offset, size), grad.indices, shape)
        for offset, size, shape in zip(offsets, rows, shapes, strict=True)
    ]


def _ranges_of_rows(shapes: Sequence[g.Tensor], grad: g.IndexedSlices) -> Sequence[Any]:
    """The rows that come from each of the values."""
    parts, start = [], g.nodes.Cast(0, DstT=grad.indices.dtype)
    for shape in shapes:
        size = g.nodes.StridedSlice(shape, [0], [1], [1], shrink_axis_mask=1)
        end = g.nodes.AddV2(start, g.nodes.Cast(size, DstT=grad.indices.dtype))
        is_in = g.nodes.LogicalAnd(
            g.nodes.GreaterEqual(grad.indices, start), g.nodes.Less(grad.indices, end)
        )
        places = g.nodes.Squeeze(g.nodes.Where(is_in), squeeze_dims=[1])
        indices = g.nodes.Sub(g.nodes.GatherV2(grad.indices, places, 0), start)
        parts.append(g.IndexedSlices(g.nodes.GatherV2(grad.values, places, 0), indices, shape))
        start = end
    return parts
