"""SparseMatrixSparseCholesky, and SparseMatrixOrderingAMD, which keeps its result sparse.

Source: TensorFlow core/ops/sparse_csr_matrix_ops.cc, core/kernels/sparse/sparse_cholesky_op.cc,
sparse_ordering_amd_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.ops.declared.sparse_matrix import cholesky_shape, ordering_amd_shape
from opkernel.ops.input_checks import require_equal
from opkernel.ops.kernel_types import COMPLEX
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.matrix import CsrSparseMatrix, Rows, matrix_of, row_pointers, to_handle
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType

CHOLESKY = register_op(
    "SparseMatrixSparseCholesky",
    inputs=["input: variant", "permutation: int32"],
    outputs=["output: variant"],
    attrs=["type: {float, double, complex64, complex128}"],
    shape_fn=cholesky_shape,
    doc="The Cholesky factor of a sparse matrix whose rows and columns are permuted; its lower half counts.",
)
ORDERING_AMD = register_op(
    "SparseMatrixOrderingAMD",
    inputs=["input: variant"],
    outputs=["output: int32"],
    shape_fn=ordering_amd_shape,
    doc="A permutation of rows and columns that keeps the Cholesky factor sparse: least degree first.",
)


def _check_square(matrix: CsrSparseMatrix) -> int:
    height, width = matrix.shape[-2:]
    require_equal(height, width, "sparse matrix must be square; got: {} != {}")
    return height


@register_kernel(CHOLESKY, types={"type": (DataType.DT_FLOAT, DataType.DT_DOUBLE, *COMPLEX)})
def cholesky(input: Any, permutation: Any, *, type: DataType) -> Any:
    matrix = matrix_of(input, type)
    size = _check_square(matrix)
    require_equal(
        matrix.shape[:-1], permutation.shape, "permutation must have the shape {}, got {}"
    )
    orders = permutation.reshape(-1, size)
    if (np.sort(orders, axis=1) != np.arange(size)).any():
        raise InvalidArgumentError(f"permutation must have each of the numbers 0..{size - 1} once")
    factors = []
    for number, (rows, order) in enumerate(zip(matrix.matrices, orders, strict=True)):
        factor = _factor(rows, order)
        if factor is None:
            raise InvalidArgumentError(
                f"Sparse Cholesky factorization failed for batch index {number}. The input might not "
                "be valid."
            )
        factors.append(factor)
    return to_handle(type, matrix.shape, factors)


def _lower_columns(rows: Rows, order: Any) -> list[tuple[Any, Any]]:
    """Rows and entries of each column of the lower half of the permuted matrix."""
    size = len(order)
    below = rows.row_inds >= rows.col_inds
    places = np.empty(size, np.int64)
    places[order] = np.arange(size)
    row, column = places[rows.row_inds[below]], places[rows.col_inds[below]]
    values = rows.values[below]
    values = np.where(row < column, values.conj(), values)
    row, column = np.maximum(row, column), np.minimum(row, column)
    sort = stable_order(column, row)
    cuts = row_pointers(column[sort], size)[1:-1]
    return list(zip(np.split(row[sort], cuts), np.split(values[sort], cuts), strict=True))


def _factor(rows: Rows, order: Any) -> Rows | None:
    """The lower factor, column by column; None if the matrix is not positive definite."""
    size = len(order)
    if not size:
        return rows
    columns = _lower_columns(rows, order)
    found: list[tuple[Any, Any]] = []
    meets: list[list[tuple[int, int]]] = [
        [] for _ in range(size)
    ]  # columns before, and where in them
    work = np.zeros(size, rows.values.dtype)
    for j, (places, values) in enumerate(in_time(columns)):
        work[places] = values
        pattern = [places]
        for k, at in meets[j]:
            others, entries = found[k]
            work[others[at:]] -= entries[at:] * entries[at].conj()
            pattern.append(others[at:])
        filled = np.union1d(np.concatenate(pattern), [j])
        pivot = work[j].real
        if not pivot > 0:
            return None
        column = work[filled] / np.sqrt(pivot)
        column[0] = np.sqrt(pivot)
        work[filled] = 0
        found.append((filled, column.astype(work.dtype)))
        for at, row in enumerate(filled[1:].tolist(), 1):
            meets[row].append((j, at))
    lower = np.concatenate([filled for filled, _ in found])
    numbers = np.repeat(np.arange(size), [len(filled) for filled, _ in found])
    entries = np.concatenate([column for _, column in found])
    sort = stable_order(lower, numbers)
    pointers = row_pointers(lower[sort], size).astype(np.int32)
    return Rows(pointers, numbers[sort].astype(np.int32), entries[sort])


@register_kernel(ORDERING_AMD)
def ordering_amd(input: Any) -> Any:
    matrix = matrix_of(input)
    size = _check_square(matrix)
    orders = [_least_degree_first(rows, size) for rows in matrix.matrices]
    return np.array(orders, np.int32).reshape(matrix.shape[:-1])


def _least_degree_first(rows: Rows, size: int) -> list[int]:
    """The order in which each row taken next meets the fewest others, which then meet one another."""
    neighbours: list[set[int]] = [set() for _ in range(size)]
    for row, column in zip(rows.row_inds.tolist(), rows.col_inds.tolist(), strict=True):
        if row != column:
            neighbours[row].add(column)
            neighbours[column].add(row)
    buckets: list[set[int]] = [set() for _ in range(size + 1)]
    for row, others in enumerate(neighbours):
        buckets[len(others)].add(row)
    order: list[int] = []
    least = 0
    for _ in in_time(range(size)):
        while not buckets[least]:
            least += 1
        row = min(buckets[least])
        buckets[least].remove(row)
        order.append(row)
        met = neighbours[row]
        for other in met:
            buckets[len(neighbours[other])].remove(other)
            neighbours[other] |= met
            neighbours[other] -= {other, row}
            buckets[len(neighbours[other])].add(other)
        least = max(least - 1, 0)
    return order
