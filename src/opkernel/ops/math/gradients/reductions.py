"""Gradients of reductions over axes and by segment.

In a reduction by segment an element gets the gradient of its segment. Elements of negative segments get none.
"""

from typing import Any

import opkernel.gradients as g
from opkernel.graph import constant
from opkernel.types import DataType


def kept_dims_shape(op: g.Operation) -> Any:
    """The shape of the input of a reduction, with size 1 along the axes that were reduced."""
    x, axes = op.inputs
    dims, known_axes = x.shape.dims, g.constant_value(axes)
    if dims is not None and known_axes is not None:
        reduced = {int(axis) % len(dims) for axis in known_axes.reshape(-1)}
        kept = [1 if axis in reduced else size for axis, size in enumerate(dims)]
        if None not in kept:
            return constant(kept, DataType.DT_INT32)
    rank = g.nodes.Rank(x)
    sizes = g.nodes.Shape(x)
    reduced_axes = positive_axes(axes, rank)
    ones = g.nodes.Fill(g.nodes.Shape(reduced_axes), 1)
    return g.nodes.DynamicStitch([g.nodes.Range(0, rank, 1), reduced_axes], [sizes, ones])


def positive_axes(axes: g.Tensor, rank: g.Tensor) -> Any:
    """The axes as a vector of int32, counted from the front."""
    flat = g.nodes.Reshape(axes, [-1])
    if flat.dtype != DataType.DT_INT32:
        flat = g.nodes.Cast(flat, DstT=DataType.DT_INT32)
    return g.nodes.FloorMod(g.nodes.AddV2(flat, rank), rank)


def with_kept_dims(op: g.Operation, tensor: g.Tensor) -> Any:
    """A tensor of the shape of a reduction's result, with size 1 along the reduced axes."""
    return tensor if op.get_attr("keep_dims") else g.nodes.Reshape(tensor, kept_dims_shape(op))


def number_reduced(op: g.Operation) -> Any:
    """How many elements make one of the result, as an int or a scalar of int32."""
    before, after = op.inputs[0].shape, op.outputs[0].shape
    if before.is_fully_defined() and after.is_fully_defined():
        return (before.num_elements() or 0) // max(after.num_elements() or 0, 1)
    size, results = g.nodes.Size(op.inputs[0]), g.nodes.Size(op.outputs[0])
    return g.nodes.FloorDiv(size, g.nodes.Maximum(results, 1))


@g.register_gradient("Sum")
def sum_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.BroadcastTo(with_kept_dims(op, grad), g.shape_of(op.inputs[0])), None


@g.register_gradient("Mean")
def mean_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    spread, _ = sum_gradient(op, grad)
    number = number_reduced(op)
    if isinstance(number, g.Tensor):
        number = g.nodes.Cast(number, DstT=grad.dtype)
    return g.nodes.RealDiv(spread, number), None


@g.register_gradient("Max", "Min")
def extreme_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Equal elements share the gradient."""
    x, axes = op.inputs
    chosen = g.nodes.Cast(g.nodes.Equal(with_kept_dims(op, op.outputs[0]), x), DstT=grad.dtype)
    number = g.nodes.Sum(chosen, axes, keep_dims=True)
    return g.nodes.Mul(g.nodes.RealDiv(chosen, number), with_kept_dims(op, grad)), None


@g.register_gradient("Prod")
def prod_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Each element's is the product of all others, made without division: there may be zeros.

    The reduced axes are moved to the front and made one, along which products of those before and
    those behind each element are accumulated.
    """
    x, axes = op.inputs
    shape, rank = g.shape_of(x), g.nodes.Rank(x)
    spread = g.nodes.BroadcastTo(with_kept_dims(op, grad), shape)
    reduced = positive_axes(axes, rank)
    others, _ = g.nodes.ListDiff(g.nodes.Range(0, rank, 1), reduced)
    order = g.nodes.ConcatV2([reduced, others], 0)
    moved = g.nodes.Transpose(x, order)
    table = g.nodes.Pack(
        [g.nodes.Prod(g.nodes.GatherV2(shape, part, 0), [0]) for part in (reduced, others)]
    )
    columns = g.nodes.Reshape(moved, table)
    before = g.nodes.Cumprod(columns, 0, exclusive=True)
    behind = g.nodes.Cumprod(columns, 0, exclusive=True, reverse=True)
    rest = g.nodes.Reshape(g.nodes.Mul(g.conj(before), g.conj(behind)), g.nodes.Shape(moved))
    return g.nodes.Mul(spread, g.nodes.Transpose(rest, g.nodes.InvertPermutation(order))), None


_REAL = "it leaves out the conjugates of complex numbers"


@g.register_gradient("EuclideanNorm", not_derivative=_REAL)
def euclidean_norm_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    norm, spread = with_kept_dims(op, op.outputs[0]), with_kept_dims(op, grad)
    return g.nodes.Mul(op.inputs[0], g.nodes.RealDiv(spread, norm)), None


g.register_gradient("L2Loss")(lambda op, grad: g.nodes.Mul(op.inputs[0], grad))


g.register_gradient("SegmentSum")(lambda op, grad: (g.nodes.GatherV2(grad, op.inputs[1], 0), None))


@g.register_gradient("SegmentMean")
def segment_mean_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    data, ids = op.inputs
    further_axes = g.nodes.Fill(g.nodes.Reshape(g.nodes.Sub(g.nodes.Rank(data), 1), [1]), 1)
    column = g.nodes.Fill(
        g.nodes.ConcatV2([g.nodes.Shape(ids), further_axes], 0), constant(1, grad.dtype)
    )
    mean = g.nodes.RealDiv(grad, g.nodes.SegmentSum(column, ids))
    return g.nodes.GatherV2(mean, ids, 0), None


@g.register_gradient("SegmentMax", "SegmentMin")
def segment_extreme_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Equal elements share the gradient."""
    data, ids = op.inputs
    chosen = g.nodes.Equal(data, g.nodes.GatherV2(op.outputs[0], ids, 0))
    number = g.nodes.SegmentSum(g.nodes.Cast(chosen, DstT=grad.dtype), ids)
    share = g.nodes.GatherV2(g.nodes.RealDiv(grad, number), ids, 0)
    return g.nodes.SelectV2(chosen, share, g.zeros_like(data)), None


@g.register_gradient("SegmentProd", not_derivative=_REAL)
def segment_prod_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    ids = op.inputs[1]
    kept, by_data = _of_product(op, grad, g.nodes.SegmentSum, g.nodes.SegmentProd, ids)
    return g.nodes.Mul(g.nodes.GatherV2(kept, ids, 0), by_data), None


@g.register_gradient("UnsortedSegmentSum")
def unsorted_segment_sum_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return _Gathering(op.inputs[1]).rows(grad), None, None


@g.register_gradient("UnsortedSegmentMax", "UnsortedSegmentMin")
def unsorted_segment_extreme_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Equal elements share the gradient."""
    data, ids, number_of_segments = op.inputs
    gathering = _Gathering(ids)
    result = gathering.rows(op.outputs[0])
    chosen = g.nodes.LogicalAnd(g.nodes.Equal(data, result), gathering.is_in(result))
    number = g.nodes.UnsortedSegmentSum(
        g.nodes.Cast(chosen, DstT=grad.dtype), ids, number_of_segments
    )
    share = gathering.rows(g.nodes.RealDiv(grad, number))
    return g.nodes.SelectV2(chosen, share, g.zeros_like(share)), None, None


@g.register_gradient("UnsortedSegmentProd", not_derivative=_REAL)
def unsorted_segment_prod_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    gathering = _Gathering(op.inputs[1])
    sums, products = g.nodes.UnsortedSegmentSum, g.nodes.UnsortedSegmentProd
    kept, by_data = _of_product(op, grad, sums, products, gathering.ids)
    return g.nodes.Mul(gathering.rows(kept), by_data), None, None


class _Gathering:
    """Rows by segment ids, with zeros for negative ones.

    Attributes:
        ids: the ids, with 0 in the place of negative ones.
    """

    def __init__(self, ids: g.Tensor) -> None:
        self.ids = g.nodes.Maximum(ids, g.zeros_like(ids))
        self._is_in = g.nodes.GreaterEqual(ids, 0)

    def rows(self, tensor: g.Tensor) -> Any:
        """The row of each id."""
        rows = g.nodes.GatherV2(tensor, self.ids, 0)
        return g.nodes.SelectV2(self.is_in(rows), rows, g.zeros_like(rows))

    def is_in(self, rows: g.Tensor) -> Any:
        """Whether each element of the rows belongs to an id that is not negative."""
        shape = g.nodes.Shape(self._is_in)
        further = g.nodes.Sub(g.nodes.Rank(rows), g.nodes.Rank(self._is_in))
        further_axes = g.nodes.Fill(g.nodes.Reshape(further, [1]), 1)
        column = g.nodes.Reshape(self._is_in, g.nodes.ConcatV2([shape, further_axes], 0))
        return g.nodes.BroadcastTo(column, g.nodes.Shape(rows))


def _of_product(
    op: g.Operation, grad: g.Tensor, sums: Any, products: Any, ids: g.Tensor
) -> tuple[Any, Any]:
    """The gradient, 0 where more than one element of a segment is; and what to multiply it with.

    That is the product of the others of the segment. No id is negative.
    """
    data, *segments = op.inputs
    is_zero = g.nodes.Equal(data, 0)
    zeros = sums(g.nodes.Cast(is_zero, DstT=DataType.DT_INT32), *segments)
    other = g.nodes.SelectV2(is_zero, g.ones_like(data), data)
    product, rest = (
        g.nodes.GatherV2(tensor, ids, 0) for tensor in (op.outputs[0], products(other, *segments))
    )
    kept = g.nodes.SelectV2(g.nodes.Greater(zeros, 1), g.zeros_like(grad), grad)
    return kept, g.nodes.SelectV2(is_zero, rest, g.nodes.RealDiv(product, other))
