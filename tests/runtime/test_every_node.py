"""A failure, a cancellation and a deadline in the middle of a step, at every node of a model in turn.

Each time the step ends as it should, the next one gives the right answer, and nothing is left over.
"""

import gc
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.runtime.dataflow.kernels import Later, register
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import call, define
from tests.runtime.sabotage import Clock, Sabotage, clock, sabotage

import opkernel
from opkernel.errors import CancelledError, DataLossError, DeadlineExceededError, OpError
from opkernel.graph import Graph
from opkernel.kernel import CancellationManager, OpKernel
from opkernel.runtime import RunOptions

__all__ = ["clock", "sabotage"]  # fixtures


@pytest.fixture(autouse=True)
def _no_loop_is_compiled_beside_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba would be imported meanwhile, and what steps leave is counted in blocks of memory."""
    monkeypatch.setattr("opkernel.providers.loops.compiled_loop.is_installed", lambda name: False)


MODELS = Path(__file__).parents[3] / "shared" / "models"
NAMES = ["mlp", "conv_mix", "functional_control_flow", "v1_control_flow"]
EXECUTORS: dict[str, dict[str, Any]] = {
    "default": {},
    "dataflow": {"executor_type": "DATAFLOW"},
    "threads": {"inter_op_threads": 2},
    "single": {"executor_type": "COMPILED_PLAN", "inter_op_threads": 2},
}


class Case(NamedTuple):
    """A graph with feeds and what it gives for them, as often as it is run."""

    graph: Graph
    fetches: list[str]
    feeds: dict[str, Any]
    expected: list[Any]


def model(name: str) -> Case:
    if not MODELS.is_dir():
        pytest.skip("the models are not here")
    manifest = json.loads((MODELS / name / "manifest.json").read_text())
    with np.load(MODELS / name / "case.npz") as stored:
        case = dict(stored)
    feeds = {feed: case[f"feed:{feed}"] for feed in manifest["feeds"]}
    expected = [case[f"fetch:{fetch}"] for fetch in manifest["fetches"]]
    return Case(
        opkernel.load_graph(MODELS / name / "graph.pb"), manifest["fetches"], feeds, expected
    )


def small_model() -> Case:
    """Loops, conditionals, functions and kernels that wait, of both kinds of control flow."""
    register("EveryNodeLater", Later)
    b = Builder()
    x, n, p = b.placeholder("x"), b.placeholder("n", INT32), b.placeholder("p", BOOL)
    double = define(b, "double", [FLOAT], lambda g, x: [g.op("AddV2", x, x)])
    waits = define(b, "waits", [FLOAT], lambda g, x: [g.op("Square", g.op("EveryNodeLater", x))])
    below = define(b, "below", [FLOAT], lambda g, x: [g.op("Less", x, g.constant(100.0))])
    _, looped = b.while_loop(
        lambda i, x, n: b.op("Less", i, n),
        lambda i, x, n: [b.op("AddV2", i, b.constant(1)), b.op("Mul", x, b.constant(2.0))],
        [b.constant(0), x],
        [n],
    )
    (chosen,) = b.cond(p, lambda x: [b.op("Neg", x)], lambda x: [b.op("Exp", x)], [looped])
    fetches = [
        chosen,
        call(b, waits, chosen),
        b.op("While", [x], cond=below, body=double, T=[FLOAT]),
        b.op("If", p, [x], then_branch=waits, else_branch=double, Tout=[FLOAT]),
        *b.operation("Unique", b.op("Reshape", x, b.constant(np.array([1], np.int32)))).outputs,
    ]
    feeds = {"x:0": np.float32(3), "n:0": np.int32(2), "p:0": np.bool_(True)}
    expected = [-12, 144, 192, 9, [3], [0]]
    return Case(b.graph, [fetch.name for fetch in fetches], feeds, expected)


def model_with_state() -> Case:
    """A variable that a loop adds to, after it was set; the stack and array of a step."""
    b = Builder()
    x, n = b.placeholder("x"), b.placeholder("n", INT32)
    variable = b.op("VarHandleOp", dtype=FLOAT, shape=[], shared_name="v")
    init = b.operation("AssignVariableOp", variable, x, dtype=FLOAT)
    stack = b.op("StackV2", b.constant(-1), elem_type=FLOAT)
    start = b.operation("Identity", b.constant(0), after=[init]).outputs[0]

    def body(i: Any, n: Any, variable: Any, stack: Any) -> list[Any]:
        one = b.constant(1.0)
        added = b.operation("AssignAddVariableOp", variable, one, dtype=FLOAT)
        pushed = b.operation("StackPushV2", stack, one, after=[added])
        return [b.operation("AddV2", i, b.constant(1), after=[pushed.outputs[0].op]).outputs[0]]

    (count,) = b.while_loop(
        lambda i, n, v, s: b.op("Less", i, n), body, [start], [n, variable, stack]
    )
    value = b.operation("ReadVariableOp", variable, after=[count.op], dtype=FLOAT).outputs[0]
    popped = b.operation("StackPopV2", stack, after=[value.op], elem_type=FLOAT).outputs[0]
    fetches = [count.name, value.name, popped.name]
    return Case(b.graph, fetches, {"x:0": np.float32(5), "n:0": np.int32(3)}, [3, 8, 1])


@contextmanager
def no_thread_stays_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + 300
    while (left := _threads_of_steps() - before) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left


def _threads_of_steps() -> set[threading.Thread]:
    """All threads but those that kernels share their work with, which the process has."""
    return {t for t in threading.enumerate() if not t.name.startswith("opkernel intra-op")}


class Steps:
    """Runs steps of a case that meet a sabotage."""

    def __init__(self, case: Case, executor: str, sabotage: Sabotage, clock: Clock) -> None:
        self.case = case
        self.session = opkernel.Session(case.graph, optimize=False, **EXECUTORS[executor])
        self.sabotage = sabotage
        self.clock = clock

    def run(self, options: RunOptions | None = None) -> None:
        """One step, which gives what it should."""
        found = self.session.run(self.case.fetches, self.case.feeds, options)
        for value, expected in zip(found, self.case.expected, strict=True):
            atol = 1e-4 * max(np.abs(expected).max(initial=0), 0.1)
            np.testing.assert_allclose(value, expected, rtol=0, atol=atol)

    def resources(self) -> str:
        """What steps have left behind."""
        return self.session._devices.client_device.resource_manager.debug_string()

    def kernels(self) -> list[OpKernel]:
        """All kernels that a step runs."""
        with self.sabotage.at(None, lambda: None):
            self.run()
            return list(self.sabotage.ran)

    def fail(self, kernel: OpKernel) -> None:
        """The kernel raises: so does the step, and names the node."""

        def lose() -> None:
            raise DataLossError("sabotaged")

        with self.sabotage.at(kernel, lose), pytest.raises(DataLossError) as caught:
            self.run()
        assert (caught.value.node, caught.value.op) == (kernel.name, kernel.type_string)
        assert "sabotaged" in caught.value.message

    def cancel(self, kernel: OpKernel) -> bool:
        """The step is cancelled while the kernel runs; whether that was in time."""
        manager = CancellationManager()
        with self.sabotage.at(kernel, manager.start_cancel):
            return self._is_stopped(RunOptions(cancellation_manager=manager), CancelledError)

    def be_late(self, kernel: OpKernel) -> bool:
        """The time of the step passes while the kernel runs; whether that was noticed."""

        def wait() -> None:
            self.clock.offset = 100

        self.clock.offset = 0
        with self.sabotage.at(kernel, wait):
            stopped = self._is_stopped(RunOptions(timeout_in_ms=50_000), DeadlineExceededError)
        self.clock.offset = 0
        return stopped

    def _is_stopped(self, options: RunOptions, error: type[OpError]) -> bool:
        """Whether a step ends with an error; if not, it gives what it should."""
        try:
            self.run(options)
        except error as stopped:
            assert type(stopped) is error  # noqa: PT017
            return True
        return False


def check_every_node(steps: Steps) -> dict[str, int]:
    """Sabotage all nodes in all ways; how many steps were stopped in which way."""
    stopped = {"nodes": 0, "cancelled": 0, "late": 0}
    for kernel in steps.kernels():
        stopped["nodes"] += 1
        steps.fail(kernel)
        stopped["cancelled"] += steps.cancel(kernel)
        stopped["late"] += steps.be_late(kernel)
        steps.run()
    return stopped


def check(make: Callable[[], Case], executor: str, sabotage: Sabotage, clock: Clock) -> None:
    case = make()
    with no_thread_stays_behind():
        steps = Steps(case, executor, sabotage, clock)
        stopped = check_every_node(steps)
        assert stopped["nodes"] >= 5
        if executor in ("dataflow", "threads"):  # all but the last node of a step
            assert min(stopped["cancelled"], stopped["late"]) >= 0.8 * stopped["nodes"]
        resources = steps.resources()
        blocks = _blocks()
        check_every_node(steps)
        assert _blocks() - blocks < 150 + 2 * stopped["nodes"]  # of four steps a node
        assert steps.resources() == resources
        steps.session.close()


def _blocks() -> int:
    gc.collect()
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("make", [small_model, model_with_state])
def test_every_node_of_a_small_model(
    make: Callable[[], Case], executor: str, sabotage: Sabotage, clock: Clock
) -> None:
    check(make, executor, sabotage, clock)


@pytest.mark.parametrize("executor", ["default", "dataflow", "threads"])
@pytest.mark.parametrize("name", NAMES)
def test_every_node_of_a_model(name: str, executor: str, sabotage: Sabotage, clock: Clock) -> None:
    check(lambda: model(name), executor, sabotage, clock)
