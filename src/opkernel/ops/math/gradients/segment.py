"""Gradients of reductions of segments.

An element gets the gradient of its segment. Elements of negative segments get none.
"""

from typing import Any

import opkernel.gradients as g
from opkernel.graph import constant
from opkernel.types import DataType

_REAL = "it leaves out the conjugates of complex numbers"


@g.register_gradient("SegmentSum")
def segment_sum_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.GatherV2(grad, op.inputs[1], 0), None


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
    data, ids = op.inputs
    is_zero = g.nodes.Equal(data, 0)
    zeros = g.nodes.SegmentSum(g.nodes.Cast(is_zero, DstT=DataType.DT_INT32), ids)
    other = g.nodes.SelectV2(is_zero, g.ones_like(data), data)
    product, rest = (
        g.nodes.GatherV2(tensor, ids, 0)
        for tensor in (op.outputs[0], g.nodes.SegmentProd(other, ids))
    )
    by_data = g.nodes.SelectV2(is_zero, rest, g.nodes.RealDiv(product, other))
    return g.nodes.Mul(g.nodes.GatherV2(_where_few_zeros(zeros, grad), ids, 0), by_data), None


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
    data, ids, number = op.inputs
    is_zero = g.nodes.Equal(data, 0)
    zeros = g.nodes.UnsortedSegmentSum(g.nodes.Cast(is_zero, DstT=DataType.DT_INT32), ids, number)
    other = g.nodes.SelectV2(is_zero, g.ones_like(data), data)
    gathering = _Gathering(ids)
    product = g.nodes.GatherV2(op.outputs[0], gathering.ids, 0)
    rest = g.nodes.GatherV2(g.nodes.UnsortedSegmentProd(other, ids, number), gathering.ids, 0)
    by_data = g.nodes.SelectV2(is_zero, rest, g.nodes.RealDiv(product, other))
    return g.nodes.Mul(gathering.rows(_where_few_zeros(zeros, grad)), by_data), None, None


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


def _where_few_zeros(zeros: g.Tensor, grad: g.Tensor) -> Any:
    """The gradient where at most one element of a segment is zero; 0 where more are."""
    return g.nodes.SelectV2(g.nodes.Greater(zeros, 1), g.zeros_like(grad), grad)
