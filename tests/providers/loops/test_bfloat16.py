"""Loops of bfloat16 numbers give what NumPy gives, for numbers of every kind."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.libraries import is_installed
from opkernel.providers.loops import loops_run
from opkernel.types import DataType

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]
BFLOAT16: Any = DataType.DT_BFLOAT16.numpy_dtype
SMALLEST, LARGEST = 2.0**-126, 3.3895314e38
KINDS = np.array(
    [0.0, -0.0, 1, -1, 3, 0.1, -0.3, SMALLEST, -SMALLEST, SMALLEST / 2, -SMALLEST / 128, 255, 1e20, LARGEST,
     *[np.inf, -np.inf, np.nan, -np.nan]],
    BFLOAT16,
)  # fmt: skip
MANY = np.resize(KINDS, 5401), np.repeat(KINDS, 301)[:5401]
FORMULAS = {
    "DivNoNan": lambda x, y: np.where(y == 0, np.float32(0), x / y),
    "Xdivy": lambda x, y: np.where(x == 0, x, x / y),
}


def normal(x: Any) -> Any:
    """The numbers as float, without subnormal ones."""
    wide = x.astype(np.float32)
    return np.where(np.abs(wide) < SMALLEST, wide * 0, wide)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", FORMULAS)
def test_pairs_of_all_kinds(form: Any, op: str) -> None:
    x, y = MANY
    with loops_run(form), np.errstate(all="ignore"):
        found = getattr(opkernel.raw_ops, op)(x=x, y=y)
        expected = normal(FORMULAS[op](normal(x), normal(y)).astype(BFLOAT16))
    assert found.dtype == BFLOAT16
    np.testing.assert_array_equal(found.astype(np.float32), expected)
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[there], np.signbit(expected)[there])


@pytest.mark.parametrize("op", FORMULAS)
@pytest.mark.parametrize("number", [1, 3, -0.3])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "plain"])
def test_all_numbers(form: Any, number: float, op: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(BFLOAT16)
    y = np.full(x.shape, number, BFLOAT16)
    with loops_run(form), np.errstate(all="ignore"):
        for a, b in ((x, y), (y, x)):
            found = getattr(opkernel.raw_ops, op)(x=a, y=b).astype(np.float32)
            expected = normal(FORMULAS[op](normal(a), normal(b)).astype(BFLOAT16))
            np.testing.assert_array_equal(found, expected)
