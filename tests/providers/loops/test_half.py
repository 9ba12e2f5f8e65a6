"""Loops of half numbers give what NumPy gives, for numbers of every kind."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.libraries import is_installed
from opkernel.providers.loops import half, loops_run

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]
KINDS = np.array(
    [0.0, -0.0, 1, -1, 3, 0.1, -0.3, 6e-8, -6e-8, 1e-5, 2047, 65504, -65504, *[np.inf, -np.inf, np.nan]],
    np.float16,
)  # fmt: skip
MANY = np.resize(KINDS, 4801), np.repeat(KINDS, 301)[:4801]
FORMULAS = {
    "FloorDiv": lambda x, y: np.floor(x / y),
    "TruncateDiv": lambda x, y: np.trunc(x / y),
    "FloorMod": lambda x, y: np.where(
        (np.fmod(x, y) != 0) & ((np.fmod(x, y) < 0) != (y < 0)), np.fmod(x, y) + y, np.fmod(x, y)
    ),
    "DivNoNan": lambda x, y: np.where(y == 0, np.float16(0), x / y),
    "Xdivy": lambda x, y: np.where(x == 0, x, x / y),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", FORMULAS)
def test_pairs_of_all_kinds(form: Any, op: str) -> None:
    x, y = MANY
    with loops_run(form), np.errstate(all="ignore"):
        found = getattr(opkernel.raw_ops, op)(x=x, y=y)
        expected = FORMULAS[op](x, y)
    np.testing.assert_array_equal(found, expected)
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[there], np.signbit(expected)[there])


@pytest.mark.parametrize("form", FORMS)
def test_operands_are_broadcast(form: Any) -> None:
    x, y = np.resize(KINDS[2:13], (70, 3, 40)), np.resize(KINDS[2:11], (3, 1))
    with loops_run(form):
        found = opkernel.raw_ops.FloorDiv(x=x, y=y)
        by_columns = opkernel.raw_ops.FloorDiv(x=x.T, y=y)
    np.testing.assert_array_equal(found, np.floor(x / y))
    np.testing.assert_array_equal(by_columns, found.T)


@pytest.mark.parametrize("op", ["Inv", "Reciprocal"])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "plain"])
def test_reciprocals_of_all_numbers(form: Any, op: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with loops_run(form), np.errstate(all="ignore"):
        np.testing.assert_array_equal(getattr(opkernel.raw_ops, op)(x=x), np.float16(1) / x)


def test_conversion_by_python() -> None:
    bits = np.float16(0.1).view(np.uint16)
    assert half.rounded(half.widened(bits)) == bits
