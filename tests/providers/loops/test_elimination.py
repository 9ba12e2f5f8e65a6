"""The loop that eliminates columns."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.libraries import is_installed
from opkernel.ops.linalg.lu import eliminate_by_numpy
from opkernel.providers.loops import elimination, loops_run

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]


@pytest.mark.parametrize("form", FORMS)
def test_real_panels_come_out_as_by_numpy(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elimination, "_AT_ONCE", 50)
    rng = np.random.default_rng(2)
    panel = rng.integers(-3, 4, (4, 9, 6)).astype(np.float32)
    panel[1, 2, 0] = np.nan
    panel[2, :, 1] = 0
    panel[3] *= np.float32(1e-30)  # whose squares are 0
    found = []
    for eliminate in (eliminate_by_numpy, elimination.eliminate):
        order, is_odd = np.tile(np.arange(9), (4, 1)), np.zeros(4, bool)
        with loops_run(form), np.errstate(all="ignore"):
            found.append((eliminate(panel, order, is_odd), order, is_odd))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 7, 40])
def test_factors_make_the_matrix_again(form: Any, size: int) -> None:
    matrix = np.random.default_rng(3).normal(size=(3, size, size))
    with loops_run(form):
        lu, p = raw_ops.Lu(input=matrix)
        determinant = raw_ops.MatrixDeterminant(input=matrix)
        inverse = raw_ops.MatrixInverse(input=matrix)
    lower = np.tril(lu, -1) + np.eye(size)
    np.testing.assert_allclose(
        lower @ np.triu(lu), np.take_along_axis(matrix, p[..., None], axis=1), atol=1e-12
    )
    np.testing.assert_allclose(determinant, np.linalg.det(matrix))
    np.testing.assert_allclose(
        inverse @ matrix, np.broadcast_to(np.eye(size), matrix.shape), atol=1e-9
    )
