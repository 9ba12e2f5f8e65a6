"""The loop that finds equal rows."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.libraries import is_installed
from opkernel.providers.loops import loops_run, unique_rows

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_equal_rows_share_a_number(form: Any, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unique_rows, "_AT_ONCE", 40)
    which = np.random.default_rng(0).integers(0, 20, 90)
    rows = (which[:, None] >> np.arange(5) & 1).astype(f"u{bits // 8}") << np.uint8(bits - 1)
    with loops_run(form), np.errstate(over="ignore"):
        numbers = unique_rows.numbers_of_rows(rows)
    np.testing.assert_array_equal(numbers[:, None] == numbers, which[:, None] == which)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.bool_])
def test_wide_slices_in_the_order_they_appear(form: Any, dtype: Any) -> None:
    x = np.repeat(np.array([[1], [0], [1], [1], [0]], dtype), 40, axis=1)
    with loops_run(form):
        y, idx, count = opkernel.raw_ops.UniqueWithCountsV2(x=x.T, axis=np.array([1]))
    assert idx.tolist() == [0, 1, 0, 0, 1]
    assert count.tolist() == [3, 2]
    np.testing.assert_array_equal(y, x[:2].T)


@pytest.mark.parametrize("form", FORMS)
def test_zeros_are_equal_and_nans_are_not(form: Any) -> None:
    x = np.zeros((4, 30), np.float32)
    x[1] = -0.0
    x[2:, 7] = np.nan
    with loops_run(form):
        _, idx = opkernel.raw_ops.UniqueV2(x=x, axis=np.array([0]))
    assert idx.tolist() == [0, 0, 1, 2]
