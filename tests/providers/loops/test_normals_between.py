"""Loops choose the normal numbers between bounds that the function of NumPy chooses, over stretches of blocks."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InternalError
from opkernel.providers.loops import loops_run

pytest.importorskip("numba")

FORMS = ["numpy", "plain", "compiled"]
LOW = [-2, 3, 1, -np.inf, -1.5, 3, 0.5, 2]
HIGH = [2, np.inf, 1.2, -2, 2, np.inf, 0.6, 2.01]


def drawn(form: Any, dtype: Any, low: Any, high: Any, shape: list[int], *, mean: Any = 0) -> Any:
    ones = np.ones(len(low), dtype)
    with loops_run(form):
        return np.asarray(
            raw_ops.StatelessParameterizedTruncatedNormal(
                shape=np.array(shape, np.int32),
                seed=np.array([5, 6]),
                means=ones * dtype(mean),
                stddevs=ones,
                minvals=np.array(low, dtype),
                maxvals=np.array(high, dtype),
            )
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("sets", "each"), [(24, 1), (24, 7), (24, 900), (1, 20_000), (3000, 3)])
def test_the_forms_give_the_same(dtype: Any, sets: int, each: int) -> None:
    low, high = (np.resize(one, sets) for one in (LOW, HIGH))
    first, *others = (drawn(form, dtype, low, high, [each, sets]) for form in FORMS)
    assert ((low <= first) & (first <= high)).all()
    for other in others:
        np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_sets_have_the_numbers_of_sets_that_are_drawn_one_by_one(dtype: Any) -> None:
    """A bound that no number reaches makes sets differ, so that each is drawn by itself."""
    high = np.full(50, 1e6)
    equal = drawn("numpy", dtype, np.full(50, 3), high, [37, 50])
    high[::2] *= 2
    np.testing.assert_array_equal(drawn("numpy", dtype, np.full(50, 3), high, [37, 50]), equal)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sets", [1, 2])
def test_a_thousand_rejected_numbers_are_an_internal_error(form: Any, sets: int) -> None:
    """Around a mean that is NaN all numbers are."""
    mean = [0, np.nan][-sets:]
    with pytest.raises(InternalError, match="failed to accept"):
        drawn(form, np.float32, LOW[:sets], HIGH[:sets], [5, sets], mean=mean)
