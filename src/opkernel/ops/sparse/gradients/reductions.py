"""Gradients of SparseReduceSum and SparseSoftmax."""

import opkernel.gradients as g
from opkernel.graph import constant
from opkernel.ops.math.gradients.reduced_shape import positive_axes
from opkernel.types import DataType

_INT64 = DataType.DT_INT64


@g.register_gradient("SparseReduceSum")
def sparse_reduce_sum_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    indices, _, shape, axes = op.inputs
    rank = g.nodes.Size(shape)
    reduced = positive_axes(axes, rank)
    ones = g.nodes.Fill(g.nodes.Shape(reduced), constant(1, _INT64))
    kept = g.nodes.DynamicStitch([g.nodes.Range(0, rank, 1), reduced], [shape, ones])
    scale = g.nodes.FloorDiv(shape, g.nodes.Maximum(kept, constant(1, _INT64)))
    places = g.nodes.FloorDiv(indices, scale)
    return [None, g.nodes.GatherNd(g.nodes.Reshape(grad, kept), places), None, None]


@g.register_gradient("SparseSoftmax")
def sparse_softmax_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    indices, _, shape = op.inputs
    softmax = op.outputs[0]
    products = g.nodes.Mul(softmax, grad)
    sums = g.nodes.SparseReduceSum(indices, products, shape, [-1], keep_dims=True)
    centred = g.nodes.SparseDenseCwiseAdd(indices, grad, shape, g.nodes.Neg(sums))
    return [None, g.nodes.Mul(centred, softmax), None]
