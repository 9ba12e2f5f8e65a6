"""Products of sparse matrices with dense ones. SciPy (the extra `scipy`) adds in TensorFlow's order.

Without SciPy NumPy adds, in another order.
"""

from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.ops.libraries import library_or_none, warn_of_fallback
from opkernel.ops.stable_order import stable_order

__all__ = ["row_pointers", "sparse_times_dense"]

_GATHERED = 1 << 20
"""How many products NumPy makes at once."""


def row_pointers(rows: Any, count: int) -> Any:
    """Where each of `count` rows begins among entries sorted by row, and where the last one ends."""
    return np.searchsorted(rows, np.arange(count + 1))


def sparse_times_dense(rows: Any, columns: Any, values: Any, dense: Any, count: int) -> Any:
    """The product of a sparse matrix of `count` rows with a dense one.

    Args:
        rows: Of each entry, in any order; entries of a row are added in their order.
        columns: Of each entry.
        values: Of each entry; of a type that NumPy adds itself.
        dense: The other matrix, of the same type.
        count: How many rows the sparse matrix has.
    """
    if (rows[1:] < rows[:-1]).any():
        order = stable_order(rows)
        rows, columns, values = rows[order], columns[order], values[order]
    sparse = library_or_none("scipy.sparse")
    if sparse is None:
        warn_of_fallback("scipy", "NumPy multiplies sparse matrices; the last bits of sums differ")
        return _product(rows, columns, values, dense, count)
    parts = (values, columns, row_pointers(rows, count))
    return sparse.csr_array(parts, shape=(count, len(dense))) @ dense


def _product(rows: Any, columns: Any, values: Any, dense: Any, count: int) -> Any:
    """The product by NumPy; the entries are sorted by row."""
    product = np.zeros((count, dense.shape[1]), dense.dtype)
    step = max(_GATHERED // max(dense.shape[1], 1), 1)
    for start in in_time(range(0, len(rows), step), SLOW):
        part = slice(start, start + step)
        terms = values[part, None] * dense[columns[part]]
        first = np.flatnonzero(np.concatenate(([True], rows[part][1:] != rows[part][:-1])))
        product[rows[part][first]] += np.add.reduceat(terms, first, axis=0)
    return product
