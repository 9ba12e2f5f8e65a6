"""Products and transposes of sparse matrices.

Source: TensorFlow core/ops/sparse_csr_matrix_ops.cc, core/kernels/sparse/mat_mul_op.cc, sparse_mat_mul_op.cc,
transpose_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.ops.declared.sparse_matrix import (
    matmul_shape,
    sparse_matmul_shape,
    transpose_shape,
)
from opkernel.ops.kernel_types import COMPLEX
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.csr import row_pointers, sparse_times_dense
from opkernel.ops.sparse.matrix import CsrSparseMatrix, Rows, matrix_of, to_handle
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
    if len(a) != len(b):
        raise InvalidArgumentError(f"Ranks of a and b must match, saw: {len(a)} vs. {len(b)}.")
    if a[:-2] != b[:-2]:
        raise InvalidArgumentError(
            f"Batch sizes of a and b do not agree: {TensorShape(a)} vs. {TensorShape(b)}"
        )
    if a[-1] != b[-2]:
        raise InvalidArgumentError(
            "Inner product dimensions of A and B do not agree. Shapes are: "
            f"{TensorShape(a)} vs. {TensorShape(b)}"
        )


@register_kernel(TRANSPOSE, device="CPU", types={"type": _TYPES})
def transpose(input: Any, *, conjugate: bool, type: DataType) -> Any:
    turned = _turned(matrix_of(input, type), conjugate)
    return to_handle(turned.dtype, turned.shape, turned.matrices)


@register_kernel(MATMUL, device="CPU", types={"T": _TYPES})
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
    if b.ndim != len(matrix.shape):
        raise InvalidArgumentError(
            f"Ranks of a and b must match, saw: {len(matrix.shape)} vs. {b.ndim}."
        )
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


@register_kernel(SPARSE_MATMUL, device="CPU", types={"type": _TYPES})
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
