"""Loops of regressions, gamma functions, tridiagonal systems and shuffles of indices, in all their forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.ops.loader import load_all_ops
from opkernel.providers.loops import loops_run

SHUFFLED = {  # TensorFlow 2.21's, of the first indices
    9: [2, 0, 6, 4, 8],
    519: [158, 420, 156, 480, 107],
    65535: [7886, 23762, 39666, 58068, 7056],
    70000: [13622, 45065, 36391, 50692, 5714],
}


@pytest.fixture(params=["numpy", "plain", "compiled"])
def form(request: Any) -> Any:
    if request.param == "compiled":
        pytest.importorskip("numba")
    load_all_ops()
    return request.param


def regression(row: Any) -> tuple[Any, Any]:
    """By the definition: neighbours that rise are pooled until there are none."""
    parts = [[value] for value in row]
    i = 0
    while i + 1 < len(parts):
        if np.mean(parts[i]) < np.mean(parts[i + 1]):
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
            i = max(i - 1, 0)
        else:
            i += 1
    sizes = [len(part) for part in parts]
    return np.repeat([np.mean(part) for part in parts], sizes), np.repeat(range(len(parts)), sizes)


@pytest.mark.parametrize("kind", ["any", "integers", "rising", "falling, then one larger"])
def test_isotonic_regression(kind: str, form: Any) -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(7, 60))
    if kind == "integers":
        rows = random.integers(-3, 4, (7, 60)).astype(float)
    elif kind == "rising":
        rows = np.sort(rows)
    elif kind == "falling, then one larger":
        rows = -np.sort(-rows)
        rows[:, -1] = 100
    expected, segments = zip(*map(regression, rows), strict=True)
    with loops_run(form):
        found = raw_ops.IsotonicRegression(input=rows, output_dtype="float64")
    np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(found[1], segments)


def test_a_mean_that_is_equal_but_for_rounding_is_decided_in_the_order_of_the_row(
    form: Any,
) -> None:
    row = np.array([[-0.7, -0.2, 1.8, 1.7, 0.9, 0.3, 1.1, -0.1]])
    with loops_run(form):
        found = raw_ops.IsotonicRegression(input=row, output_dtype="float64")
    np.testing.assert_array_equal(found[1], [[0, 0, 0, 0, 0, 0, 0, 1]])  # TensorFlow 2.21's


def test_zeta_and_lgamma(form: Any) -> None:
    special = pytest.importorskip("scipy.special")
    random = np.random.default_rng(0)
    x, q = random.uniform(1.01, 40, 500), random.uniform(0.01, 30, 500)
    with loops_run(form):
        found, logarithm = raw_ops.Zeta(x=x, q=q), raw_ops.Lgamma(x=q - 15)
        ends = raw_ops.Zeta(
            x=np.array([1, 0.5, 2, 3, 2.5, np.inf, 2, 2]),
            q=np.array([3, 3, -2, -2, -0.5, 2, np.inf, -0.5]),
        )
    np.testing.assert_allclose(found, special.zeta(x, q), rtol=1e-12)
    np.testing.assert_allclose(logarithm, special.gammaln(q - 15), rtol=1e-12, atol=1e-12)
    expected = [np.inf, np.nan, np.inf, np.nan, np.nan, 0, 0, np.pi**2 / 2 + 4]
    np.testing.assert_allclose(ends, expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("partial_pivoting", [True, False])
def test_tridiagonal_systems(dtype: Any, partial_pivoting: bool, form: Any) -> None:
    random = np.random.default_rng(0)
    diagonals = random.normal(size=(2, 20, 3, 6)).astype(dtype)
    diagonals[..., 1, :] += 4
    diagonals[1, 3] = 0  # singular
    rhs = random.normal(size=(2, 20, 6, 3)).astype(dtype)
    with loops_run(form):
        x = raw_ops.TridiagonalSolve(
            diagonals=diagonals, rhs=rhs, partial_pivoting=partial_pivoting
        )
    above, main, below = np.moveaxis(diagonals, -2, 0)[..., None]
    products = main * x
    products[..., :-1, :] += above[..., :-1, :] * x[..., 1:, :]
    products[..., 1:, :] += below[..., 1:, :] * x[..., :-1, :]
    singular = np.zeros((2, 20), bool)
    singular[1, 3] = True
    tolerance = 1e-5 if np.dtype(dtype).char in "fF" else 1e-13
    np.testing.assert_allclose(products[~singular], rhs[~singular], rtol=0, atol=tolerance)
    of_singular = 0 if dtype.startswith("complex") else np.nan
    np.testing.assert_array_equal(x[singular], np.full_like(x[singular], of_singular))


@pytest.mark.parametrize("largest", [1, 9, 519, 65535, 70000])
def test_shuffled_indices_are_those_of_a_permutation(largest: int, form: Any) -> None:
    if form == "plain":
        largest = max(largest, 519)  # the fewer, the longer does each index walk
    count = min(largest + 1, 50 if form == "plain" else 3000)
    index = np.arange(count, dtype=np.int64)
    with loops_run(form):
        found = raw_ops.RandomIndexShuffle(
            index=index, seed=np.array([1, 2, 3], np.int32), max_index=np.int64(largest)
        )
    assert len(np.unique(found)) == count
    assert found.min() >= 0
    assert found.max() <= largest
    if largest in SHUFFLED:
        np.testing.assert_array_equal(found[:5], SHUFFLED[largest])
