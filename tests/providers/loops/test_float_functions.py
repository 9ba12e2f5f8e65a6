"""Functions of floats, in all forms of their loops: SciPy's and NumPy's of double tell the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.ops.loader import load_all_ops
from opkernel.providers.loops import loops_run

special = pytest.importorskip("scipy.special")

RANGES = {
    "Acos": (np.arccos, -1, 1),
    "Asin": (np.arcsin, -1, 1),
    "Atan": (np.arctan, -9, 9),
    "Atanh": (np.arctanh, -1, 1),
    "BesselI0": (special.i0, -40, 40),
    "BesselI0e": (special.i0e, -90, 90),
    "BesselI1": (special.i1, -40, 40),
    "BesselI1e": (special.i1e, -90, 90),
    "BesselK0": (special.k0, 0, 20),
    "BesselK0e": (special.k0e, 0, 90),
    "BesselK1": (special.k1, 0, 20),
    "BesselK1e": (special.k1e, 0, 90),
    "Elu": (lambda x: np.where(x < 0, np.expm1(x), x), -20, 20),
    "Erfc": (special.erfc, -4, 4),
    "Expint": (special.expi, 0, 80),
    "Expm1": (np.expm1, -20, 80),
    "Ndtri": (special.ndtri, 0, 1),
}
ENDS = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 2, 1e-40, -1e-40, 1e-37, 30, -30], np.float32
)


@pytest.fixture(params=["numpy", "plain", "compiled"])
def form(request: Any) -> Any:
    if request.param == "compiled":
        pytest.importorskip("numba")
    load_all_ops()
    return request.param


def _call(op: str, x: Any) -> Any:
    return getattr(raw_ops, op)(**{"features" if op == "Elu" else "x": x})


@pytest.mark.parametrize("op", RANGES)
def test_values_between_ends(op: str, form: Any) -> None:
    function, low, high = RANGES[op]
    far = np.random.default_rng(0).uniform(low, high, 1100)
    near = np.geomspace(1e-30, max(high, 1), 100) * min(1, high)
    x = np.concatenate([far, near[near < high]]).astype(np.float32)
    with loops_run(form):
        found = _call(op, x)
    expected = function(x.astype(np.float64))
    is_normal = (np.abs(expected) > 1e-37) & (np.abs(expected) < 3e38)
    atol = 1e-6 if op in ("Elu", "Expint", "Ndtri") else 0.0  # they cross 0
    np.testing.assert_allclose(found[is_normal], expected[is_normal], rtol=3e-6, atol=atol)


EXPECTED_AT_ENDS = {  # TensorFlow 2.21's
    "Acos": "nan nan nan 1.570796 1.570796 0 3.141593 nan 1.570796 1.570796 1.570796 nan nan",
    "Asin": "nan nan nan 0 -0 1.570796 -1.570796 nan 0 -0 1e-37 nan nan",
    "Atan": "nan 1.570796 -1.570796 0 -0 0.7853981 -0.7853981 1.107149 0 -0 1e-37 1.537475 -1.537475",
    "Atanh": "nan nan nan 0 -0 inf -inf nan 0 -0 1e-37 nan nan",
    "BesselI0": "nan nan nan 1 1 1.266066 1.266066 2.279585 1 1 1 7.816723e+11 7.816723e+11",
    "BesselI0e": "nan 0 0 1 1 0.4657596 0.4657596 0.3085083 1 1 1 0.07314594 0.07314594",
    "BesselI1": "nan nan nan 0 0 0.5651591 -0.5651591 1.590637 0 0 5.000001e-38 7.68532e+11 -7.68532e+11",
    "BesselI1e": "nan 0 -0 0 0 0.2079104 -0.2079104 0.2152693 0 0 5.000001e-38 0.07191633 -0.07191633",
    "BesselK0": "nan 0 inf inf inf 0.4210244 inf 0.1138939 inf inf 85.31158 2.132477e-14 inf",
    "BesselK0e": "nan 0 inf inf inf 1.144463 inf 0.8415684 inf inf 85.31158 0.2278866 inf",
    "BesselK1": "nan 0 inf inf inf 0.6019073 inf 0.1398659 inf inf 1e+37 2.167732e-14 inf",
    "BesselK1e": "nan 0 inf inf inf 1.636154 inf 1.033477 inf inf 1e+37 0.2316541 inf",
    "Elu": "nan inf -1 0 -0 1 -0.6321205 2 0 0 1e-37 30 -1",
    "Erfc": "nan 0 2 1 1 0.1572992 1.842701 0.004677735 1 1 1 0 2",
    "Expm1": "nan inf -1 0 -0 1.718282 -0.6321205 6.389056 0 0 1e-37 1.068648e+13 -1",
    "Expint": "nan nan nan -inf -inf 1.895118 nan 4.954234 -103.3949 nan -84.61843 3.689732e+11 nan",
    "Ndtri": "nan nan nan -inf -inf inf nan nan -inf -inf -12.78456 nan nan",
    "Erfinv": "nan nan nan 0 0 inf -inf nan 0 0 0 nan nan",
}


@pytest.mark.parametrize("op", EXPECTED_AT_ENDS)
def test_values_at_ends(op: str, form: Any) -> None:
    with loops_run(form):
        found = _call(op, np.resize(ENDS, 2000))
    expected = np.array([float(one) for one in EXPECTED_AT_ENDS[op].split()], np.float32)
    found = found[: ENDS.size]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-38)  # subnormal numbers are 0
    is_zero = (expected == 0) & (np.abs(ENDS) != np.float32(1e-40))
    np.testing.assert_array_equal(np.signbit(found[is_zero]), np.signbit(expected[is_zero]))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_half_is_computed_in_float(dtype: str, form: Any) -> None:
    x = np.linspace(-1, 1, 3000).astype(dtype)
    with loops_run(form):
        found = raw_ops.Asin(x=x)
    assert found.dtype == dtype
    expected = np.arcsin(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=5e-4 if dtype == "float16" else 3e-7)


def test_angles_of_points(form: Any) -> None:
    """Those between the axes, and those that NumPy and TensorFlow give for zeros and infinities."""
    numbers = np.random.default_rng(0).normal(size=(2, 3000)).astype(np.float32)
    ends = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-20, 1e20], np.float32)
    y, x = np.concatenate([numbers, [np.repeat(ends, 9), np.tile(ends, 9)]], 1, dtype=np.float32)
    with loops_run(form):
        found = raw_ops.Atan2(y=y, x=x)
        of_rows = raw_ops.Atan2(y=y[:60, None], x=x)
    np.testing.assert_allclose(found, np.arctan2(y, x, dtype=np.float64), rtol=5e-7, atol=1e-38)
    is_number = found == found
    expected_signs = np.signbit(np.arctan2(y, x))[is_number]
    np.testing.assert_array_equal(np.signbit(found[is_number]), expected_signs)
    np.testing.assert_array_equal(of_rows[7, 7], found[7])
