"""Gradients of products with sparse matrices and of their transposes."""

from typing import Any

import numpy as np

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


@g.register_gradient("SparseMatrixSparseMatMul")
def sparse_matmul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Each is a product of the gradient and the other's adjoint, kept where the operand has entries."""
    (a, b), dtype = op.inputs, op.get_attr("type")
    other, turns = _adjoint(op, b, "b")
    of_a = g.nodes.SparseMatrixSparseMatMul(grad, other, type=dtype, **turns)
    other, turns = _adjoint(op, a, "a")
    of_b = g.nodes.SparseMatrixSparseMatMul(other, grad, type=dtype, **turns)
    return [_of_operand(op, a, "a", of_a), _of_operand(op, b, "b", of_b)]


def _adjoint(op: g.Operation, operand: g.Tensor, name: str) -> tuple[Any, dict[str, bool]]:
    """The adjoint of an operand as it enters the product: a matrix, and how a product turns it."""
    if op.get_attr(f"adjoint_{name}"):
        return operand, {}
    if op.get_attr(f"transpose_{name}"):
        turned = g.nodes.SparseMatrixTranspose(operand, conjugate=True, type=op.get_attr("type"))
        return turned, {f"transpose_{name}": True}
    return operand, {f"adjoint_{name}": True}


def _of_operand(op: g.Operation, operand: g.Tensor, name: str, grad: Any) -> Any:
    """The gradient by an operand, from that by what the product made of it."""
    is_adjoint, dtype = op.get_attr(f"adjoint_{name}"), op.get_attr("type")
    if is_adjoint or op.get_attr(f"transpose_{name}"):
        grad = g.nodes.SparseMatrixTranspose(grad, conjugate=is_adjoint, type=dtype)
    return _like(grad, operand, dtype)


def _like(matrix: Any, pattern: g.Tensor, dtype: Any) -> Any:
    """The sparse matrix with the entries that another one of its shape has; what it lacks is 0."""
    indices, values, shape = g.nodes.CSRSparseMatrixToSparseTensor(matrix, type=dtype)
    indices, values = g.nodes.SparseReorder(indices, values, shape)
    wanted = g.nodes.CSRSparseMatrixToSparseTensor(pattern, type=dtype)[0]
    strides = g.nodes.Cumprod(shape, 0, exclusive=True, reverse=True)
    there, searched = (g.nodes.Sum(g.nodes.Mul(each, strides), 1) for each in (indices, wanted))
    there = g.nodes.PadV2(
        there, [[0, 1]], np.iinfo(np.int64).max
    )  # so that each search ends at one
    rows = (g.nodes.ExpandDims(each, 0) for each in (there, searched))
    places = g.nodes.Reshape(g.nodes.LowerBound(*rows), [-1])
    found = g.nodes.GatherV2(g.nodes.Pad(values, [[0, 1]]), places, 0)
    is_there = g.nodes.Equal(g.nodes.GatherV2(there, places, 0), searched)
    entries = g.nodes.SelectV2(is_there, found, g.nodes.ZerosLike(found))
    return g.nodes.SparseTensorToCSRSparseMatrix(wanted, entries, shape)
