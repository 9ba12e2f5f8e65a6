"""Steps with a deadline, or that are cancelled, stop at the next node, in straight plans too."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from tests.runtime.sabotage import Clock, clock

import opkernel
from opkernel.device.budget import Budget
from opkernel.errors import CancelledError, DeadlineExceededError, FailedPreconditionError
from opkernel.kernel import under_budget

__all__ = ["clock"]

NODES = 50
LONG_MS = 600_000
"""Longer than anything here takes, but by the clock that is put forward."""


class Third:
    """Does something before the third node of a step, and counts the nodes that run."""

    count = 0
    action: Callable[[], object] | None = None

    @classmethod
    def does(cls, action: Callable[[], object] | None) -> None:
        cls.count, cls.action = 0, action

    @classmethod
    def come(cls) -> None:
        cls.count += 1
        if cls.count == 3 and cls.action is not None:
            cls.action()


@pytest.fixture(scope="module")
def counting() -> str:
    op = opkernel.register_op(
        "StoppableCounts",
        inputs=["x: float"],
        outputs=["y: float"],
        shape_fn=lambda c: c.set_output(0, c.input(0)),
    )

    @opkernel.register_kernel(op, device="CPU")
    def count(x):
        Third.come()
        return x + np.float32(1)

    return op.name


@pytest.fixture(scope="module")
def chain(counting: str) -> opkernel.Graph:
    graph = opkernel.Graph()
    with graph.as_default():
        tensor = opkernel.placeholder(opkernel.float32, [], name="x")
        for index in range(NODES):
            tensor = graph.create_op(counting, [tensor], name=f"n{index}").outputs[0]

        @opkernel.function(input_signature=[opkernel.TensorSpec([], opkernel.float32)])
        def body(x):
            for _ in range(NODES):
                x = graph_op(counting, x)
            return x

        opkernel.raw_ops.Identity(input=body(graph.get_tensor_by_name("x:0")), name="called")
    return graph


def graph_op(op: str, x: opkernel.Tensor) -> opkernel.Tensor:
    return x.graph.create_op(op, [x]).outputs[0]


def time_passes(clock: Clock) -> None:
    """Have the time of all steps be up at the third node."""
    clock.offset = 0.0
    Third.does(lambda: setattr(clock, "offset", LONG_MS / 100))


@pytest.mark.parametrize("fetch", [f"n{NODES - 1}:0", "called:0"])
def test_a_deadline_ends_the_step_at_the_next_node(
    chain: opkernel.Graph, fetch: str, clock: Clock
) -> None:
    with opkernel.Session(chain) as session:
        time_passes(clock)
        with pytest.raises(DeadlineExceededError, match="StoppableCounts"):
            session.run(fetch, {"x:0": 0.0}, opkernel.RunOptions(timeout_in_ms=LONG_MS))
        assert Third.count == 3
        assert session.run("n0:0", {"x:0": 1.0}) == 2.0


def test_a_cancelled_step_ends_at_the_next_node(chain: opkernel.Graph) -> None:
    manager = opkernel.CancellationManager()
    Third.does(manager.start_cancel)
    with opkernel.Session(chain) as session:
        options = opkernel.RunOptions(cancellation_manager=manager)
        with pytest.raises(CancelledError, match="StoppableCounts"):
            session.run(f"n{NODES - 1}:0", {"x:0": 0.0}, options)
    assert Third.count == 3


def test_the_timeout_of_the_session_holds_for_all_its_steps(
    chain: opkernel.Graph, clock: Clock
) -> None:
    config = opkernel.SessionConfig(operation_timeout_in_ms=LONG_MS)
    with opkernel.Session(chain, config=config) as session:
        call = session.make_callable(f"n{NODES - 1}:0", ["x:0"])
        time_passes(clock)
        with pytest.raises(DeadlineExceededError):
            session.run(f"n{NODES - 1}:0", {"x:0": 0.0})
        time_passes(clock)
        with pytest.raises(DeadlineExceededError):
            call(0.0)
        time_passes(clock)
        with pytest.raises(DeadlineExceededError):
            session.run_saver(f"n{NODES - 1}:0", {"x:0": 0.0})
        assert Third.count == 3
        assert session.run("n1:0", {"x:0": 0.0}) == 2.0


def test_a_finalized_session_runs_what_it_knows_with_a_timeout(chain: opkernel.Graph) -> None:
    Third.does(None)
    with opkernel.Session(chain) as session:
        session.run("n0:0", {"x:0": 0.0})
        session.finalize()
        options = opkernel.RunOptions(timeout_in_ms=LONG_MS)
        assert session.run("n0:0", {"x:0": 1.0}, options) == 2.0
        with pytest.raises(FailedPreconditionError):
            session.run("n1:0", {"x:0": 1.0}, options)


def test_a_callable_has_no_more_time_than_its_caller(chain: opkernel.Graph, clock: Clock) -> None:
    config = opkernel.SessionConfig(operation_timeout_in_ms=100 * LONG_MS)
    with opkernel.Session(chain, config=config) as session:
        call = session.make_callable(f"n{NODES - 1}:0", ["x:0"])
        time_passes(clock)
        with (
            under_budget(Budget(deadline=time.monotonic() + LONG_MS / 1000)),
            pytest.raises(DeadlineExceededError),
        ):
            call(0.0)
        assert Third.count == 3
        clock.offset = 0.0
        Third.does(None)
        assert call(0.0) == NODES
