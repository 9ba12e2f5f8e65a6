"""The loops that search sorted rows for values."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.libraries import is_installed
from opkernel.providers.loops import bounds, loops_run

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("form", FORMS)
def test_bounds_as_numpys_search(form: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_AT_ONCE", 4)  # several parts
    rng = np.random.default_rng(0)
    for count, wanted in [(0, 3), (1, 2), (13, 7), (8, 0)]:
        rows = np.sort(rng.integers(0, 9, (3, count)).astype(dtype))
        values = rng.integers(-1, 10, (3, wanted)).astype(dtype)
        with loops_run(form):
            lower = raw_ops.LowerBound(sorted_inputs=rows, values=values)
            upper = raw_ops.UpperBound(sorted_inputs=rows, values=values)
        for i in range(3):
            np.testing.assert_array_equal(lower[i], np.searchsorted(rows[i], values[i]))
            np.testing.assert_array_equal(upper[i], np.searchsorted(rows[i], values[i], "right"))


@pytest.mark.parametrize("form", FORMS)
def test_nan_ends_up_where_the_comparisons_lead(form: Any) -> None:
    rows, values = np.array([[1, 2, 2, 3, np.nan]]), np.array([[0, 2, 5, np.nan]])
    with loops_run(form):
        lower = raw_ops.LowerBound(sorted_inputs=rows, values=values)
        upper = raw_ops.UpperBound(sorted_inputs=rows, values=values)
    assert lower.tolist() == [[0, 1, 4, 0]]  # TensorFlow's
    assert upper.tolist() == [[0, 5, 5, 5]]
