"""Gradients of ops that pick elements: each goes back to where it was."""

from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

_INT32 = DataType.DT_INT32


@g.register_gradient("Gather")
def gather_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return rows_gradient(g.shape_of(op.inputs[0]), op.inputs[1], grad), None


@g.register_gradient("GatherV2")
def gather_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    params, indices, axis = op.inputs
    if g.constant_value(axis) == 0:  # and so there are no batch dimensions
        return rows_gradient(g.shape_of(params), indices, grad), None, None
    return _along_axis(op, grad), None, None


@g.register_gradient("GatherNd")
def gather_nd_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    params, indices = op.inputs
    shape = g.nodes.Shape(params, out_type=indices.dtype)
    return points_gradient(shape, indices, grad, op.get_attr("bad_indices_policy")), None


def rows_gradient(shape: g.Tensor, indices: g.Tensor, grad: g.Tensor) -> g.IndexedSlices:
    """The gradient of a tensor of a shape of which the rows of indices were taken."""
    size = g.nodes.Reshape(g.nodes.Size(indices), [1])
    row_shape = g.nodes.StridedSlice(shape, [1], [0], [1], end_mask=1)
    values = g.nodes.Reshape(grad, g.nodes.ConcatV2([size, row_shape], 0))
    return g.IndexedSlices(values, g.nodes.Reshape(indices, size), shape)


def points_gradient(shape: g.Tensor, indices: g.Tensor, grad: g.Tensor, policy: Any = "") -> Any:
    """The gradient of a gathered tensor of some shape, by the indices of the gathered slices."""
    dims = indices.shape.dims
    if dims is not None and len(dims) == 2 and dims[1] == 1:
        return g.IndexedSlices(grad, g.nodes.Squeeze(indices, squeeze_dims=[-1]), shape)
    return g.nodes.ScatterNd(indices, grad, shape, bad_indices_policy=policy)


def _along_axis(op: g.Operation, grad: g.Tensor) -> Any:
    """The gradient for an axis that is not the first, or not known.

    The axis is moved behind the batch axes, and all of these made one, so that a sum of segments
    can put the elements back.
    """
    params, indices, axis = op.inputs
    batch_dims = _batch_dims(op)
    shape, axis = g.nodes.Shape(params), g.nodes.Reshape(g.nodes.Cast(axis, DstT=_INT32), [])
    rank = g.nodes.Rank(params)
    axis = g.nodes.FloorMod(g.nodes.AddV2(axis, rank), rank)
    one = g.nodes.AddV2(axis, 1)
    outer, inner = _part(shape, 0, axis), _part(shape, one, rank)
    flat = g.nodes.Reshape(grad, g.nodes.ConcatV2([outer, [-1], inner], 0))
    order = g.nodes.ConcatV2(
        [_range(0, batch_dims), _vector(axis), _range(batch_dims, axis), _range(one, rank)], 0
    )
    moved_shape = g.nodes.GatherV2(shape, order, 0)
    moved = _sum_of_rows(moved_shape, g.nodes.Transpose(flat, order), indices, batch_dims)
    return g.nodes.Reshape(g.nodes.Transpose(moved, g.nodes.InvertPermutation(order)), shape)


def _batch_dims(op: g.Operation) -> int:
    batch_dims, rank = int(op.get_attr("batch_dims")), op.inputs[1].shape.rank
    if batch_dims >= 0:
        return batch_dims
    if rank is None:
        raise InvalidArgumentError(
            f"The gradient of '{op.name}' is not known for batch_dims {batch_dims} and indices of "
            f"unknown rank"
        )
    return batch_dims + rank


def _sum_of_rows(shape: g.Tensor, values: g.Tensor, indices: g.Tensor, batch_dims: int) -> Any:
    """Values of shape `[batch..., n, ...]` added at indices of a tensor of shape `[batch..., ...]`."""
    row_shape = _part(shape, batch_dims + 1, g.nodes.Size(shape))
    places = _in_one_axis(g.nodes.Cast(shape, DstT=indices.dtype), indices, batch_dims)
    number = g.nodes.Prod(_part(shape, 0, batch_dims + 1), [0])
    rows = g.nodes.Reshape(values, g.nodes.ConcatV2([[-1], row_shape], 0))
    total = g.nodes.UnsortedSegmentSum(rows, g.nodes.Reshape(places, [-1]), number)
    return g.nodes.Reshape(total, shape)


def _in_one_axis(sizes: g.Tensor, indices: g.Tensor, batch_dims: int) -> Any:
    """Indices into the last of several axes as indices into all of them made one."""
    if not batch_dims:
        return indices
    batches = g.nodes.Prod(_part(sizes, 0, batch_dims), [0])
    size = g.nodes.StridedSlice(sizes, [batch_dims], [batch_dims + 1], [1], shrink_axis_mask=1)
    number = g.nodes.Range(g.nodes.ZerosLike(batches), batches, g.nodes.OnesLike(batches))
    starts = g.nodes.Reshape(g.nodes.Mul(number, size), [-1, 1])
    return g.nodes.AddV2(g.nodes.Reshape(indices, g.nodes.Pack([batches, -1])), starts)


def _part(vector: g.Tensor, begin: Any, end: Any) -> Any:
    return g.nodes.StridedSlice(vector, _vector(begin), _vector(end), [1])


def _vector(scalar: Any) -> Any:
    return g.nodes.Reshape(scalar, [1]) if isinstance(scalar, g.Tensor) else [scalar]


def _range(begin: Any, end: Any) -> Any:
    return g.nodes.Range(begin, end, 1)
