"""Products and transposes of sparse matrices, and gradients.

Source: TensorFlow core/ops/sparse_csr_matrix_ops.cc, core/kernels/sparse/mat_mul_op.cc, sparse_mat_mul_op.cc,
transpose_op.cc.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.ops.declared.sparse_matrix import (
    matmul_shape,
    sparse_matmul_shape,
    transpose_shape,
)
from opkernel.ops.input_checks import require_equal
from opkernel.ops.kernel_types import COMPLEX
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.matrix import (
    CsrSparseMatrix,
    Rows,
    matrix_of,
    row_pointers,
    sparse_times_dense,
    to_handle,
)
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType, TensorShape

_TYPES = (DataType.DT_FLOAT, DataType.DT_DOUBLE, *COMPLEX)
_TYPE = "type: {float, double, complex64, complex128}"
_TURNS = [
    "transpose_a: bool = false",
    "transpose_b: bool = false",
    "adjoint_a: bool = false",
    "adjoint_b: bool = false",
]

MATMUL = register_op(
    "SparseMatrixMatMul",
    inputs=["a: variant", "b: T"],
    outputs=["output: T"],
    attrs=[
        "T: type",
        *_TURNS,
        "transpose_output: bool = false",
        "conjugate_output: bool = false",
    ],
    shape_fn=matmul_shape,
    doc="The product of a sparse matrix and a dense one, or of each pair of two batches.",
)
SPARSE_MATMUL = register_op(
    "SparseMatrixSparseMatMul",
    inputs=["a: variant", "b: variant"],
    outputs=["c: variant"],
    attrs=[_TYPE, *_TURNS],
    shape_fn=sparse_matmul_shape,
    doc="The product of two sparse matrices, or of each pair of two batches.",
)
TRANSPOSE = register_op(
    "SparseMatrixTranspose",
    inputs=["input: variant"],
    outputs=["output: variant"],
    attrs=["conjugate: bool = false", _TYPE],
    shape_fn=transpose_shape,
    doc="The transposed sparse matrix, of the conjugate numbers if `conjugate`.",
)


def _transposed(rows: Rows, width: int, conjugate: bool) -> Rows:
    """The transpose of a matrix of `width` columns."""
    order = stable_order(rows.col_inds)
    pointers = row_pointers(rows.col_inds[order], width).astype(np.int32)
    values = rows.values.conj() if conjugate else rows.values
    return Rows(pointers, rows.row_inds[order].astype(np.int32), values[order])


def _turned(matrix: CsrSparseMatrix, conjugate: bool) -> CsrSparseMatrix:
    *batch, height, width = matrix.shape
    matrices = [_transposed(rows, width, conjugate) for rows in matrix.matrices]
    return CsrSparseMatrix(matrix.dtype, (*batch, width, height), matrices)


def _check_one(operand: str, transpose: bool, adjoint: bool) -> None:
    if transpose and adjoint:
        raise InvalidArgumentError(
            f"Only one of adjoint_{operand} and transpose_{operand} may be true."
        )


def _check_product(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    require_equal(len(a), len(b), "Ranks of a and b must match, saw: {} vs. {}.")
    if a[:-2] != b[:-2]:
        raise InvalidArgumentError(
            f"Batch sizes of a and b do not agree: {TensorShape(a)} vs. {TensorShape(b)}"
        )
    if a[-1] != b[-2]:
        raise InvalidArgumentError(
            "Inner product dimensions of A and B do not agree. Shapes are: "
            f"{TensorShape(a)} vs. {TensorShape(b)}"
        )


@register_kernel(TRANSPOSE, types={"type": _TYPES})
def transpose(input: Any, *, conjugate: bool, type: DataType) -> Any:
    turned = _turned(matrix_of(input, type), conjugate)
    return to_handle(turned.dtype, turned.shape, turned.matrices)


@register_kernel(MATMUL, types={"T": _TYPES})
def matmul(
    a: Any,
    b: Any,
    *,
    T: DataType,
    transpose_a: bool,
    transpose_b: bool,
    adjoint_a: bool,
    adjoint_b: bool,
    transpose_output: bool,
    conjugate_output: bool,
) -> Any:
    _check_one("a", transpose_a, adjoint_a)
    _check_one("b", transpose_b, adjoint_b)
    matrix = matrix_of(a, T)
    require_equal(len(matrix.shape), b.ndim, "Ranks of a and b must match, saw: {} vs. {}.")
    if transpose_a or adjoint_a:
        matrix = _turned(matrix, adjoint_a)
    if transpose_b or adjoint_b:
        b = b.swapaxes(-1, -2).conj() if adjoint_b else b.swapaxes(-1, -2)
    _check_product(matrix.shape, b.shape)
    height = matrix.shape[-2]
    product = np.zeros(check_allocation((*b.shape[:-2], height, b.shape[-1]), T), b.dtype)
    parts = product.reshape(-1, *product.shape[-2:])
    dense = np.ascontiguousarray(b).reshape(-1, *b.shape[-2:])
    if product.size and b.size:
        for number, rows in in_time(enumerate(matrix.matrices), SLOW):
            parts[number] = sparse_times_dense(
                rows.row_inds, rows.col_inds, rows.values, dense[number], height
            )
    product = product.conj() if conjugate_output else product
    return np.ascontiguousarray(product.swapaxes(-1, -2)) if transpose_output else product


@register_kernel(SPARSE_MATMUL, types={"type": _TYPES})
def sparse_matmul(
    a: Any,
    b: Any,
    *,
    type: DataType,
    transpose_a: bool,
    transpose_b: bool,
    adjoint_a: bool,
    adjoint_b: bool,
) -> Any:
    _check_one("a", transpose_a, adjoint_a)
    _check_one("b", transpose_b, adjoint_b)
    first, second = matrix_of(a, type), matrix_of(b, type, 1)
    if transpose_a or adjoint_a:
        first = _turned(first, adjoint_a)
    if transpose_b or adjoint_b:
        second = _turned(second, adjoint_b)
    _check_product(first.shape, second.shape)
    shape = (*first.shape[:-1], second.shape[-1])
    pairs = zip(first.matrices, second.matrices, strict=True)
    return to_handle(type, shape, [_product(one, other, shape[-1]) for one, other in pairs])


def _product(a: Rows, b: Rows, width: int) -> Rows:
    """The product of two matrices; sums that are 0 stay entries.

    Each entry of `a` meets the row of `b` that its column names.
    """
    height = len(a.row_ptrs) - 1
    counts = np.diff(b.row_ptrs)[a.col_inds]
    total = int(counts.sum(dtype=np.int64))
    check_allocation((3, total), DataType.DT_INT64)
    of_a = np.repeat(np.arange(len(a.values)), counts)
    starts = np.cumsum(counts) - counts
    of_b = np.arange(total) - np.repeat(starts - b.row_ptrs[:-1][a.col_inds], counts)
    rows, columns = a.row_inds[of_a], b.col_inds[of_b].astype(np.int64)
    keys = rows * width + columns
    order = stable_order(keys)
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    products = (a.values[of_a] * b.values[of_b])[order]
    values = np.add.reduceat(products, first) if total else products
    kept = order[first]
    pointers = row_pointers(rows[kept], height).astype(np.int32)
    return Rows(pointers, columns[kept].astype(np.int32), values)


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
