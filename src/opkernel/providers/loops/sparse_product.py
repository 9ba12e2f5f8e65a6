"""The loop that multiplies sparse matrices, row by row: the entries of a row are summed in one dense row."""

import numpy as np

from opkernel.device.budget import check_time
from opkernel.kernel import check_allocation
from opkernel.ops.sparse import matrix_math
from opkernel.ops.sparse.matrix import Rows
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array, DataType

_AT_ONCE = 1 << 22
"""About so many products are summed in one call."""
_CROWDED = 16
"""Rows with an entry in so many columns are gone through, not sorted."""


def _all_by_numpy(*arrays: Array) -> None:
    a, b = Rows(*arrays[:3]), Rows(*arrays[3:6])
    sums, _, ptrs, columns, values, state = arrays[6:]
    found = matrix_math.product_of_rows(a, b, sums.size)
    count = len(found.values)
    ptrs[:], columns[:count], values[:count] = found
    state[0] = ptrs.size - 1


@loop(otherwise=_all_by_numpy)
def multiply_some(
    ptrs_a: Array, columns_a: Array, values_a: Array, ptrs_b: Array, columns_b: Array, values_b: Array,
    sums: Array, rows_with: Array, ptrs: Array, columns: Array, values: Array, state: Array,
) -> None:  # fmt: skip
    """Compute some rows of the product.

    Args:
        ptrs_a: Of the first matrix; so are the next two.
        columns_a: Its columns.
        values_a: Its entries.
        ptrs_b: Of the second; so are the next two.
        columns_b: Its columns.
        values_b: Its entries.
        sums: A dense row.
        rows_with: For each column the last row that has an entry there.
        ptrs: Of the product, which are written; so are the next two.
        columns: Its columns.
        values: Its entries.
        state: How many rows are done.
    """
    row, left = state[0], _AT_ONCE
    while row < ptrs_a.size - 1 and left > 0:
        first = to = ptrs[row]
        for i in range(ptrs_a[row], ptrs_a[row + 1]):
            factor, inner = values_a[i], columns_a[i]
            left -= ptrs_b[inner + 1] - ptrs_b[inner] + 1
            for k in range(ptrs_b[inner], ptrs_b[inner + 1]):
                column, product = columns_b[k], factor * values_b[k]
                if rows_with[column] == row:
                    sums[column] += product
                else:
                    rows_with[column], sums[column], columns[to] = row, product, column
                    to += 1
        if (to - first) * _CROWDED > sums.size:
            to = first
            for column in range(sums.size):
                if rows_with[column] == row:
                    columns[to] = column
                    to += 1
            left -= sums.size // _CROWDED
        else:
            columns[first:to].sort()
        for k in range(first, to):
            values[k] = sums[columns[k]]
        row += 1
        ptrs[row] = to
    state[0] = row


def product_of_rows(a: Rows, b: Rows, width: int) -> Rows:
    """As `matrix_math.product_of_rows`."""
    before = np.zeros(len(a.values) + 1, np.int64)
    np.cumsum(np.diff(b.row_ptrs)[a.col_inds], out=before[1:])
    most = int(np.minimum(np.diff(before[a.row_ptrs]), width).sum())
    check_allocation((3, most), DataType.DT_INT64)
    ptrs = np.zeros(len(a.row_ptrs), np.int32)
    columns, values = np.empty(most, np.int32), np.empty(most, a.values.dtype)
    sums, rows_with, state = np.empty(width, a.values.dtype), np.full(width, -1), np.zeros(1, int)
    while state[0] < len(a.row_ptrs) - 1:
        check_time("multiplying sparse matrices")
        multiply_some(*a, *b, sums, rows_with, ptrs, columns, values, state)
    return Rows(ptrs, columns[: ptrs[-1]].copy(), values[: ptrs[-1]].copy())


matrix_math.register_sparse_matmul(product_of_rows, LOOPS.kernels)
