"""Gradients of elementwise arithmetic of a sparse tensor and a dense one."""

from collections.abc import Callable

import opkernel.gradients as g
from opkernel.errors import UnimplementedError
from opkernel.graph import constant
from opkernel.types import DataType

_INT64 = DataType.DT_INT64


@g.register_gradient("SparseTensorDenseAdd")
def sparse_tensor_dense_add_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return [None, g.nodes.GatherNd(grad, op.inputs[0]), None, grad]


@g.register_gradient("SparseDenseCwiseMul")
def sparse_dense_cwise_mul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    values = op.inputs[1]
    return _of_both(op, lambda dense: (g.nodes.Mul(grad, dense), g.nodes.Mul(grad, values)))


@g.register_gradient("SparseDenseCwiseDiv")
def sparse_dense_cwise_div_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    values = op.inputs[1]

    def slopes(dense: g.Tensor) -> tuple[g.Tensor, g.Tensor]:
        quotient = g.nodes.RealDiv(g.nodes.Neg(values), g.nodes.Square(dense))
        return g.nodes.RealDiv(grad, dense), g.nodes.Mul(grad, quotient)

    return _of_both(op, slopes)


def _of_both(
    op: g.Operation, slopes: Callable[[g.Tensor], tuple[g.Tensor, g.Tensor]]
) -> g.Gradients:
    """The gradients, from those of the entries and of the dense elements at their places."""
    indices, _, shape, y = op.inputs
    y_shape = g.nodes.Shape(y, out_type=_INT64)
    added = g.nodes.ExpandDims(g.nodes.Sub(g.nodes.Size(shape), g.nodes.Size(y_shape)), 0)
    ones = g.nodes.Fill(added, constant(1, _INT64))
    scale = g.nodes.FloorDiv(shape, g.nodes.ConcatV2([ones, y_shape], 0))
    begin = g.nodes.ConcatV2([[0], added], 0)
    places = g.nodes.Slice(g.nodes.FloorDiv(indices, scale), begin, [-1, -1])
    values_grad, dense_grad = slopes(g.nodes.GatherNd(y, places))
    y_grad = g.nodes.SparseTensorDenseAdd(places, dense_grad, y_shape, g.nodes.ZerosLike(y))
    return [None, values_grad, None, y_grad]


@g.register_gradient("SparseDenseCwiseAdd")
def sparse_dense_cwise_add_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    raise UnimplementedError("SparseDenseCwiseAdd has no gradient, as in TensorFlow")
