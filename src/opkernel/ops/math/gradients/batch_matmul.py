"""Gradients of batches of products of matrices."""

from typing import Any

import opkernel.gradients as g
from opkernel.ops.math.gradients.matmul import product_gradients


@g.register_gradient("BatchMatMul")
def batch_matmul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return _gradients(op, grad, g.nodes.BatchMatMul)


@g.register_gradient("BatchMatMulV2", "BatchMatMulV3")
def batch_matmul_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    for_x, for_y = _gradients(op, grad, g.nodes.BatchMatMulV2)
    if _have_same_batch(x, y):
        return for_x, for_y
    x_shape, y_shape = g.shape_of(x), g.shape_of(y)
    over_x, over_y = g.nodes.BroadcastGradientArgs(_batch(x_shape), _batch(y_shape))
    return (
        g.nodes.Reshape(g.nodes.Sum(for_x, over_x), x_shape),
        g.nodes.Reshape(g.nodes.Sum(for_y, over_y), y_shape),
    )


def _gradients(op: g.Operation, grad: g.Tensor, matmul: Any) -> tuple[Any, Any]:
    def product(a: g.Tensor, b: g.Tensor, *, flip_a: bool, flip_b: bool, of: str) -> Any:
        return matmul(a, b, adj_x=flip_a, adj_y=flip_b)

    x, y = op.inputs
    return product_gradients(product, x, y, grad, op.get_attr("adj_x"), op.get_attr("adj_y"))


def _have_same_batch(x: g.Tensor, y: g.Tensor) -> bool:
    """Whether it is known that neither operand was broadcast."""
    x_dims, y_dims = x.shape.dims, y.shape.dims
    if x_dims is None or y_dims is None:
        return False
    return x_dims[:-2] == y_dims[:-2] and None not in x_dims[:-2]


def _batch(shape: g.Tensor) -> Any:
    """A shape without its last two sizes."""
    return g.nodes.StridedSlice(shape, [0], [-2], [1])
