"""Bessel functions and integrals: known values, values at the ends, gradients."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError

VALUES = {  # at 1: Abramowitz and Stegun, tables 9.1, 9.8, 5.1, 7.1, 7.7, 27.7
    "BesselI0": 1.2660658777520084,
    "BesselI0e": 0.46575960759364043,
    "BesselI1": 0.5651591039924851,
    "BesselI1e": 0.20791041534970845,
    "BesselJ0": 0.7651976865579666,
    "BesselJ1": 0.44005058574493355,
    "BesselK0": 0.42102443824070834,
    "BesselK0e": 1.1444630798068949,
    "BesselK1": 0.6019072301972346,
    "BesselK1e": 1.636153486263258,
    "BesselY0": 0.08825696421567697,
    "BesselY1": -0.7812128213002887,
    "Dawsn": 0.5380795069127684,
    "Expint": 1.8951178163559368,
    "FresnelCos": 0.7798934003768228,
    "FresnelSin": 0.4382591473903548,
    "Spence": 0.0,
}


@pytest.fixture(autouse=True)
def scipy() -> None:
    pytest.importorskip("scipy")


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(("dtype", "digits"), [("float16", 3), ("float32", 6), ("float64", 14)])
def test_values_at_one(name: str, dtype: str, digits: int) -> None:
    if dtype == "float16" and not name.startswith("Bessel"):
        pytest.skip("as in TensorFlow, these have no kernel for half")
    y = getattr(raw_ops, name)(x=np.ones((2, 1), dtype))
    assert y.dtype == dtype
    np.testing.assert_allclose(y, np.full((2, 1), VALUES[name]), rtol=10.0**-digits, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [("BesselK0", np.inf), ("BesselK1e", np.inf), ("BesselY0", -np.inf), ("Expint", np.nan)],
)
def test_below_zero_is_what_tensorflow_gives(name: str, value: float) -> None:
    np.testing.assert_array_equal(getattr(raw_ops, name)(x=np.float64([-2, -0.5])), [value, value])


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("at", [0.4, 1.0, 2.5])
def test_gradients_are_slopes(name: str, at: float) -> None:
    function, step = getattr(raw_ops, name), 1e-6
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype="float64", shape=[], name="x")
        (gradient,) = opkernel.gradients(function(x=x), [x])
        slope = Session(graph).run(gradient, {"x:0": np.float64(at)})
    ends = [function(x=np.float64(at + d)) for d in (step, -step)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-7, atol=1e-8)


def test_subnormal_numbers_are_zeros() -> None:
    x = np.array([1e-310, -1e-310])
    assert raw_ops.Expint(x=x).tolist() == [-np.inf, -np.inf]
    np.testing.assert_allclose(raw_ops.Spence(x=x), [1.6449340668482264] * 2)
    single = raw_ops.Expint(x=np.array([1e-40, -1e-40], np.float32))
    np.testing.assert_allclose(single, [-103.39485931396484, np.nan], rtol=1e-6)


def test_betainc() -> None:
    x = np.array([0.0, 0.25, 1.0])
    two, three = np.float64(2), np.full(3, 3.0)
    # I_x(2, 3) = 6 x^2 - 8 x^3 + 3 x^4
    np.testing.assert_allclose(
        raw_ops.Betainc(a=two, b=three, x=x), 6 * x**2 - 8 * x**3 + 3 * x**4, rtol=1e-13
    )
    assert np.isnan(raw_ops.Betainc(a=np.float32(0), b=np.float32(1), x=np.float32(0.5)))
    with pytest.raises(InvalidArgumentError, match="must all be equal or scalars"):
        raw_ops.Betainc(a=np.ones(2), b=np.ones(3), x=np.ones(3))


def test_the_gradient_of_betainc_is_its_density() -> None:
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype="float64", shape=[2], name="x")
        (gradient,) = opkernel.gradients(
            raw_ops.Betainc(a=np.float64(2), b=np.float64(3), x=x), [x]
        )
        density = Session(graph).run(gradient, {"x:0": np.array([0.25, 0.5])})
    np.testing.assert_allclose(density, [12 * 0.25 * 0.75**2, 12 * 0.5 * 0.5**2])


def test_without_scipy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(
        UnimplementedError, match=r"Dawsn needs the library scipy: pip install 'opkernel\[scipy\]'"
    ):
        raw_ops.Dawsn(x=np.float32(1))
