"""Engines that compute in a lower precision, where somebody asks for it."""

import logging
import threading

import ml_dtypes
import numpy as np
import pytest
from tests.runtime.engines.own_engine import OwnEngine, registered

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import Graph

X = np.linspace(0.1, 2, 200, dtype=np.float32)


class Rounding(OwnEngine):
    """Rounds its results to bfloat16 where it computes in that; may add something to them."""

    lower_precisions = ("bfloat16",)
    added = 0.0

    def compile(self, body, arguments):
        program = super().compile(body, arguments)
        return _Rounded(program, self.added) if self.precision == "bfloat16" else program


class _Rounded:
    resource_updates = ()

    def __init__(self, program, added):
        self._program, self._added = program, added

    def run(self, inputs):
        results, _ = self._program.run(inputs)
        rounded = [
            (one + self._added).astype(ml_dtypes.bfloat16).astype(np.float32) for one in results
        ]
        return rounded, []


def graph_of_exp():
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[200], name="x")
        raw_ops.Exp(x=raw_ops.Neg(x=x), name="y")
    return graph


EXACT = np.exp(-X)
ROUNDED = EXACT.astype(ml_dtypes.bfloat16).astype(np.float32)


@pytest.mark.parametrize(
    ("jit", "is_rounded"), [("own!", False), ("own:float32!", False), ("own:bfloat16!", True)]
)
def test_a_precision_follows_the_name_of_the_engine(jit, is_rounded):
    with registered(Rounding()), opkernel.Session(graph_of_exp(), jit=jit) as session:
        found = session.run("y:0", {"x:0": X})
    np.testing.assert_allclose(found, ROUNDED if is_rounded else EXACT, rtol=1e-6)


def test_the_environment_may_ask_for_it(monkeypatch):
    monkeypatch.setenv("OPKERNEL_JIT", "own:bfloat16!")
    with registered(Rounding()), opkernel.Session(graph_of_exp()) as session:
        np.testing.assert_array_equal(session.run("y:0", {"x:0": X}), ROUNDED)


def test_results_that_must_be_the_same_at_each_step_are_in_float32(monkeypatch):
    monkeypatch.setenv("OPKERNEL_DETERMINISTIC", "1")
    with registered(Rounding()), opkernel.Session(graph_of_exp(), jit="own:bfloat16!") as session:
        np.testing.assert_allclose(session.run("y:0", {"x:0": X}), EXACT, rtol=1e-6)


def test_an_engine_without_lower_precision_says_so():
    with (
        registered(OwnEngine()),
        pytest.raises(UnimplementedError, match="own does not compute in bfloat16, but in float32"),
    ):
        opkernel.Session(Graph(), jit="own:bfloat16!")


def test_an_unknown_precision_is_refused():
    with (
        registered(Rounding()),
        pytest.raises(
            InvalidArgumentError,
            match=r"one of float32, bfloat16, float16, not 'bfloat61'.*bfloat16",
        ),
    ):
        opkernel.Session(Graph(), jit="own:bfloat61")


@pytest.fixture
def patient(monkeypatch):
    """Steps of any length are worth a trial."""
    monkeypatch.setattr("opkernel.runtime.adaptive.shapes._SHORTEST_S", 0.0)


def run_until(session, holds):
    for _ in range(3000):
        found = session.run("y:0", {"x:0": X})
        np.testing.assert_allclose(found, EXACT, rtol=1e-2)
        if holds():
            return found
        threading.Event().wait(0.01)  # for what is compiled meanwhile
    return pytest.fail("it never holds")


def test_auto_tries_both_precisions(patient, caplog):
    caplog.set_level(logging.WARNING, "opkernel.engines")
    engine = Rounding()
    with registered(engine), opkernel.Session(graph_of_exp(), jit="auto:bfloat16") as session:
        run_until(session, lambda: len(engine.compiled) == 2)
        for _ in range(4):
            run_until(session, lambda: True)
    assert not caplog.messages  # both are near enough


def test_auto_drops_what_is_wrong_in_any_precision(patient, caplog):
    caplog.set_level(logging.WARNING, "opkernel.engines")
    engine = Rounding()
    engine.added = 0.5
    with registered(engine), opkernel.Session(graph_of_exp(), jit="auto:bfloat16") as session:
        run_until(session, lambda: bool(caplog.messages))
    assert "own:bfloat16 computes other values" in caplog.messages[0]


def test_auto_stays_in_float32_unless_asked(patient):
    engine = Rounding()
    with registered(engine), opkernel.Session(graph_of_exp(), jit="auto") as session:
        run_until(session, lambda: len(engine.compiled) == 1)
        for _ in range(60):
            np.testing.assert_allclose(session.run("y:0", {"x:0": X}), EXACT, rtol=1e-6)
    assert len(engine.compiled) == 1


def test_openvino_rounds_products():
    openvino = pytest.importorskip("openvino")
    weights = np.random.default_rng(3).normal(size=(256, 256)).astype(np.float32) / 16
    inputs = np.random.default_rng(4).normal(size=(32, 256)).astype(np.float32)
    with Graph().as_default() as graph:
        y = raw_ops.Placeholder(dtype=opkernel.float32, shape=[32, 256], name="x")
        for _ in range(4):
            y = raw_ops.Relu(features=raw_ops.MatMul(a=y, b=weights))
        y = raw_ops.Identity(input=y, name="y")
    found = []
    for jit in ("openvino!", "openvino:bfloat16!"):
        with opkernel.Session(graph, jit=jit) as session:
            found.append(session.run("y:0", {"x:0": inputs}))
    exact = inputs
    for _ in range(4):
        exact = np.maximum(exact @ weights, 0)
    assert np.abs(found[0] - exact).max() < 1e-4 * exact.max()
    assert np.abs(found[1] - exact).max() < 3e-2 * exact.max()
    if "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        assert np.abs(found[1] - exact).max() > 1e-3 * exact.max()
