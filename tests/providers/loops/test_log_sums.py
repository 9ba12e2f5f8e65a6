"""The loop of CumulativeLogsumexp."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.libraries import is_installed
from opkernel.ops.math import scans
from opkernel.providers.loops import log_sums, loops_run

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sums_along_each_axis(
    form: Any, dtype: Any, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "_AT_ONCE", 40)
    x = np.random.default_rng(0).normal(size=(3, 6, 4)).astype(dtype)
    with loops_run(form):
        found = raw_ops.CumulativeLogsumexp(x=x, axis=axis)
        last = raw_ops.CumulativeLogsumexp(x=x, axis=axis, reverse=True)
    expected = np.log(np.cumsum(np.exp(x.astype(float)), axis=axis))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last.take(0, axis), expected.take(-1, axis), rtol=1e-5, atol=1e-6)


def by_steps(x: Any) -> Any:
    """The sums, with each step rounded."""
    total, sums = x.dtype.type(-np.inf), []
    for element in x:
        total = scans.log_add_exp(total, element, np)
        sums.append(total)
    return np.array(sums, x.dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_step_is_rounded(form: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "_AT_ONCE", 500)
    x = np.zeros(3000, dtype)  # whose sums by steps are log(3000) and some roundings
    x[:5] = -np.inf
    with loops_run(form), np.errstate(all="ignore"):
        found, expected = log_sums.scan_log_sum_exp(x, 0), by_steps(x)
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("form", FORMS)
def test_numbers_that_are_not_finite(form: Any) -> None:
    x = np.array([-np.inf, -np.inf, 1, np.inf, 2, np.nan, np.inf, -np.inf, 3], np.float32)
    for given in (x, x[::-1], x[4:], x[:3]):
        with loops_run(form), np.errstate(all="ignore"):
            found = log_sums.scan_log_sum_exp(given, 0)
            expected = by_steps(given)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
