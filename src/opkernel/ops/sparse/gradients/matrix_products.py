"""Gradients of products with sparse matrices and of their transposes."""

from typing import Any

import opkernel.gradients as g
from opkernel.errors import UnimplementedError


@g.register_gradient("SparseMatrixTranspose")
def transpose_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    attrs = {"type": op.get_attr("type"), "conjugate": op.get_attr("conjugate")}
    return g.nodes.SparseMatrixTranspose(grad, **attrs)


@g.register_gradient("SparseMatrixMatMul")
def matmul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, b = op.inputs
    rank = grad.shape.rank
    if rank is None:
        raise UnimplementedError("The gradient of SparseMatrixMatMul needs a known rank")
    if op.get_attr("conjugate_output"):
        grad = g.conj(grad)
    if op.get_attr("transpose_output"):
        grad = _swapped(grad, rank)
    return [_of_sparse(op, a, b, grad, rank), _of_dense(op, a, grad, rank)]


def _swapped(tensor: Any, rank: int) -> Any:
    return g.nodes.Transpose(tensor, [*range(rank - 2), rank - 1, rank - 2])


def _of_sparse(op: g.Operation, a: g.Tensor, b: g.Tensor, grad: g.Tensor, rank: int) -> Any:
    """The product of the gradient and the adjoint of `b`, where `a` has entries."""
    indices, _, shape = g.nodes.CSRSparseMatrixToSparseTensor(a, type=op.get_attr("T"))
    *batch, rows, columns = g.nodes.Unpack(indices, num=rank, axis=1)
    is_adjoint = op.get_attr("adjoint_a")
    if is_adjoint or op.get_attr("transpose_a"):
        rows, columns = columns, rows
    if op.get_attr("adjoint_b"):
        factor = _swapped(b, rank)
    elif op.get_attr("transpose_b"):
        factor = g.conj(_swapped(b, rank))
    else:
        factor = g.conj(b)
    of_grad = g.nodes.GatherNd(grad, g.nodes.Pack([*batch, rows], axis=1))
    of_factor = g.nodes.GatherNd(factor, g.nodes.Pack([*batch, columns], axis=1))
    entries = g.nodes.Sum(g.nodes.Mul(of_grad, of_factor), 1)
    entries = g.conj(entries) if is_adjoint else entries
    return g.nodes.SparseTensorToCSRSparseMatrix(indices, entries, shape)


def _of_dense(op: g.Operation, a: g.Tensor, grad: g.Tensor, rank: int) -> Any:
    """The product of the adjoint of `a` and the gradient."""
    if op.get_attr("transpose_a"):
        found = g.conj(g.nodes.SparseMatrixMatMul(a, g.conj(grad)))
    else:
        found = g.nodes.SparseMatrixMatMul(a, grad, adjoint_a=not op.get_attr("adjoint_a"))
    if op.get_attr("adjoint_b"):
        return g.conj(_swapped(found, rank))
    return _swapped(found, rank) if op.get_attr("transpose_b") else found
