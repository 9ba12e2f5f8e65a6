"""Gradient of SparseTensorDenseMatMul."""

import opkernel.gradients as g


@g.register_gradient("SparseTensorDenseMatMul")
def sparse_tensor_dense_matmul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    indices, values, shape, b = op.inputs
    adjoint_a, adjoint_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
    b_grad = g.nodes.SparseTensorDenseMatMul(indices, values, shape, grad, adjoint_a=not adjoint_a)
    if adjoint_b:
        b_grad = g.nodes.ConjugateTranspose(b_grad, [1, 0])
    return [None, _entries_of_product(indices, grad, b, adjoint_a, adjoint_b), None, b_grad]


def _entries_of_product(
    indices: g.Tensor, grad: g.Tensor, b: g.Tensor, adjoint_a: bool, adjoint_b: bool
) -> g.Tensor:
    """The gradient of the entries of `a`: of `grad` times the adjoint of `b` only what they need."""
    rows, columns = g.nodes.Unpack(indices, num=2, axis=1)
    if adjoint_a:
        rows, columns = columns, rows
    of_b = g.nodes.Transpose(b, [1, 0]) if adjoint_b else g.conj(b)
    products = g.nodes.Mul(g.nodes.GatherV2(grad, rows, 0), g.nodes.GatherV2(of_b, columns, 0))
    entries = g.nodes.Sum(products, 1)
    return g.conj(entries) if adjoint_a else entries
