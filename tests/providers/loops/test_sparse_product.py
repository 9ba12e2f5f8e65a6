"""The loop that multiplies sparse matrices."""

from typing import Any

import numpy as np
import pytest

from opkernel.libraries import is_installed
from opkernel.ops.sparse.matrix import Rows
from opkernel.providers.loops import loops_run, sparse_product

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]


def rows_of(dense: Any) -> Rows:
    rows, columns = np.nonzero(dense)
    ptrs = np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.int32)
    return Rows(ptrs, columns.astype(np.int32), dense[rows, columns])


def dense_of(rows: Rows, width: int) -> Any:
    dense = np.zeros((len(rows.row_ptrs) - 1, width), rows.values.dtype)
    dense[rows.row_inds, rows.col_inds] = rows.values
    return dense


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("part", [0.02, 0.6])
def test_products_of_integers_are_exact(
    form: Any, dtype: Any, part: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_product, "_AT_ONCE", 1 << 12)
    rng = np.random.default_rng(1)
    a, b = (
        (rng.integers(-3, 4, shape) * (rng.random(shape) < part)).astype(dtype)
        for shape in [(40, 30), (30, 90)]
    )
    with loops_run(form):
        found = sparse_product.product_of_rows(rows_of(a), rows_of(b), 90)
    np.testing.assert_array_equal(dense_of(found, 90), a @ b)
    is_entry = ((a != 0).astype(int) @ (b != 0).astype(int)) > 0
    assert found.col_inds.tolist() == np.nonzero(is_entry)[1].tolist()  # sums that are 0, too


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 3), (2, 3, 0)])
def test_nothing_to_multiply(form: Any, shape: tuple[int, int, int]) -> None:
    a, b = np.zeros(shape[:2], np.float32), np.zeros(shape[1:], np.float32)
    with loops_run(form):
        found = sparse_product.product_of_rows(rows_of(a), rows_of(b), shape[2])
    assert found.row_ptrs.tolist() == [0] * (shape[0] + 1)
    assert found.values.size == 0
