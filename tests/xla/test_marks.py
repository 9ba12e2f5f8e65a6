"""Sessions without engine compile what a graph marks, where JAX is installed and nobody forbids it."""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import FailedPreconditionError
from opkernel.proto import AttrValue
from opkernel.runtime.engines.engine import warn_of_missing_engine

pytestmark = pytest.mark.jax

X = np.array([0.5, -1, 2], np.float32)


def marked_call() -> tuple[opkernel.Graph, Any, Any]:
    """A graph with a call that has to be compiled; its input and its result."""

    @opkernel.function(jit_compile=True)
    def f(x: Any) -> Any:
        return raw_ops.Tanh(x=x) * 2.0

    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [3], name="x")
        y = f(x) + 1.0
    return graph, x, y


def marked_node() -> tuple[opkernel.Graph, Any, Any]:
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [3], name="x")
        y = raw_ops.Tanh(x=x)
        y.op.set_attr("_XlaCompile", AttrValue(b=True))
        y = y * 2.0 + 1.0
    return graph, x, y


def launch() -> tuple[opkernel.Graph, Any, Any]:
    """A graph with a node XlaLaunch, as TensorFlow's passes leave it."""
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [3], name="x")
        function = opkernel.function(lambda a: (raw_ops.Tanh(x=a) * 2.0 + 1.0,))
        traced = function.get_concrete_function(opkernel.TensorSpec([3], opkernel.float32))
        traced.graph.add_to(graph)
        types = {"Tconstants": [], "Targs": [opkernel.float32], "Tresults": [opkernel.float32]}
        attrs = {**types, "Nresources": 0, "function": traced.name}
        y = graph.create_op("XlaLaunch", [x], attrs=attrs).outputs[0]
    return graph, x, y


GRAPHS = pytest.mark.parametrize("made", [marked_call, marked_node, launch])


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the engines' logger warns of."""
    warn_of_missing_engine.cache_clear()
    caplog.set_level(logging.WARNING, "opkernel.engines")
    yield caplog
    warn_of_missing_engine.cache_clear()


def plan_and_value(made: Any) -> tuple[str, Any]:
    graph, x, y = made()
    with opkernel.Session(graph, jit="off") as session:
        value = session.run(y, {x: X})
        return session.plan(y, [x]).source, value


@GRAPHS
def test_marks_are_compiled(made: Any, warned: pytest.LogCaptureFixture) -> None:
    source, value = plan_and_value(made)
    np.testing.assert_allclose(value, np.tanh(X) * 2 + 1, rtol=1e-6)
    assert "XlaLaunch" in source
    assert warned.messages == []


@GRAPHS
def test_kernels_compute_marks_without_jax(
    made: Any, monkeypatch: pytest.MonkeyPatch, warned: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("opkernel.libraries.is_installed", lambda module: module != "jax")
    for _ in range(2):
        _, value = plan_and_value(made)
        np.testing.assert_allclose(value, np.tanh(X) * 2 + 1, rtol=1e-6)
    (warning,) = warned.messages
    assert "opkernel[xla]" in warning


@GRAPHS
def test_compiling_can_be_forbidden(
    made: Any, monkeypatch: pytest.MonkeyPatch, warned: pytest.LogCaptureFixture
) -> None:
    def compiled(*_: Any) -> None:
        raise AssertionError("XLA compiles")

    monkeypatch.setattr("opkernel.xla.engine.XlaEngine.compile", compiled)
    monkeypatch.setenv("OPKERNEL_JIT", "never")
    _, value = plan_and_value(made)
    np.testing.assert_allclose(value, np.tanh(X) * 2 + 1, rtol=1e-6)
    assert warned.messages == []
    with pytest.raises(FailedPreconditionError, match="OPKERNEL_JIT=never"):
        raw_ops.XlaSort(input=X)


def test_unmarked_nodes_are_not_compiled() -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [3], name="x")
        y = raw_ops.Tanh(x=x) * 2.0 + raw_ops.Exp(x=x) - raw_ops.Sin(x=x)
    with opkernel.Session(graph, jit="off") as session:
        assert "XlaLaunch" not in session.plan(y, [x]).source


def test_a_convolution_with_groups_that_only_xla_computes() -> None:
    @opkernel.function(jit_compile=True)
    def conv(x: Any, w: Any) -> Any:
        return raw_ops.Conv3D(input=x, filter=w, strides=[1] * 5, padding="VALID")

    rng = np.random.default_rng(0)
    x_value, w_value = (
        rng.random((1, 2, 2, 2, 4), np.float32),
        rng.random((1, 1, 1, 2, 6), np.float32),
    )
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, x_value.shape)
        w = opkernel.placeholder(opkernel.float32, w_value.shape)
        y = conv(x, w)
    with opkernel.Session(graph) as session:
        found = session.run(y, {x: x_value, w: w_value})
    kernel = w_value[0, 0, 0]
    halves = [x_value[..., :2] @ kernel[:, :3], x_value[..., 2:] @ kernel[:, 3:]]
    np.testing.assert_allclose(found, np.concatenate(halves, -1), rtol=1e-5)


def test_nothing_is_compiled_to_infer_a_shape() -> None:
    """Evaluating constants in advance would compile, for a graph that nobody has run."""
    with opkernel.Graph().as_default():
        sizes = raw_ops.XlaSort(input=opkernel.constant(np.array([3, 2], np.int32)))
        y = raw_ops.Reshape(tensor=np.arange(6, dtype=np.float32), shape=sizes)
        assert y.shape.as_list() == [None, None]
        with opkernel.Session() as session:
            assert session.run(y).shape == (2, 3)
