"""Steps with a deadline, or that are cancelled, stop at the next node, in straight plans too."""

import threading
import time

import numpy as np
import pytest

import opkernel
from opkernel.device.budget import Budget
from opkernel.errors import CancelledError, DeadlineExceededError, FailedPreconditionError
from opkernel.kernel import under_budget

SLEEP_S = 0.02
NODES = 50


@pytest.fixture(scope="module")
def sleeping() -> str:
    op = opkernel.register_op(
        "StoppableSleep",
        inputs=["x: float"],
        outputs=["y: float"],
        shape_fn=lambda c: c.set_output(0, c.input(0)),
    )

    @opkernel.register_kernel(op, device="CPU")
    def sleep(x):
        time.sleep(SLEEP_S)
        return x + np.float32(1)

    return op.name


@pytest.fixture(scope="module")
def chain(sleeping: str) -> opkernel.Graph:
    graph = opkernel.Graph()
    with graph.as_default():
        tensor = opkernel.placeholder(opkernel.float32, [], name="x")
        for index in range(NODES):
            tensor = graph.create_op(sleeping, [tensor], name=f"n{index}").outputs[0]

        @opkernel.function(input_signature=[opkernel.TensorSpec([], opkernel.float32)])
        def body(x):
            for _ in range(NODES):
                x = graph_op(sleeping, x)
            return x

        opkernel.raw_ops.Identity(input=body(graph.get_tensor_by_name("x:0")), name="called")
    return graph


def graph_op(op: str, x: opkernel.Tensor) -> opkernel.Tensor:
    return x.graph.create_op(op, [x]).outputs[0]


@pytest.mark.parametrize("fetch", [f"n{NODES - 1}:0", "called:0"])
def test_a_deadline_ends_the_step_at_the_next_node(chain: opkernel.Graph, fetch: str) -> None:
    with opkernel.Session(chain) as session:
        begin = time.perf_counter()
        with pytest.raises(DeadlineExceededError, match="StoppableSleep"):
            session.run(fetch, {"x:0": 0.0}, opkernel.RunOptions(timeout_in_ms=100))
        assert time.perf_counter() - begin < NODES * SLEEP_S
        assert session.run("n0:0", {"x:0": 1.0}) == 2.0


def test_a_cancelled_step_ends_at_the_next_node(chain: opkernel.Graph) -> None:
    manager = opkernel.CancellationManager()
    timer = threading.Timer(0.1, manager.start_cancel)
    timer.start()
    with opkernel.Session(chain) as session:
        begin = time.perf_counter()
        options = opkernel.RunOptions(cancellation_manager=manager)
        with pytest.raises(CancelledError, match="StoppableSleep"):
            session.run(f"n{NODES - 1}:0", {"x:0": 0.0}, options)
        assert time.perf_counter() - begin < NODES * SLEEP_S
    timer.join()


def test_the_timeout_of_the_session_holds_for_all_its_steps(chain: opkernel.Graph) -> None:
    config = opkernel.SessionConfig(operation_timeout_in_ms=100)
    with opkernel.Session(chain, config=config) as session:
        with pytest.raises(DeadlineExceededError):
            session.run(f"n{NODES - 1}:0", {"x:0": 0.0})
        with pytest.raises(DeadlineExceededError):
            session.make_callable(f"n{NODES - 1}:0", ["x:0"])(0.0)
        assert session.run("n1:0", {"x:0": 0.0}) == 2.0


def test_a_finalized_session_runs_what_it_knows_with_a_timeout(chain: opkernel.Graph) -> None:
    with opkernel.Session(chain) as session:
        session.run("n0:0", {"x:0": 0.0})
        session.finalize()
        options = opkernel.RunOptions(timeout_in_ms=10_000)
        assert session.run("n0:0", {"x:0": 1.0}, options) == 2.0
        with pytest.raises(FailedPreconditionError):
            session.run("n1:0", {"x:0": 1.0}, options)


def test_a_callable_has_no_more_time_than_its_caller(chain: opkernel.Graph) -> None:
    config = opkernel.SessionConfig(operation_timeout_in_ms=60_000)
    with opkernel.Session(chain, config=config) as session:
        call = session.make_callable(f"n{NODES - 1}:0", ["x:0"])
        begin = time.perf_counter()
        with (
            under_budget(Budget(deadline=time.monotonic() + 0.1)),
            pytest.raises(DeadlineExceededError),
        ):
            call(0.0)
        assert time.perf_counter() - begin < NODES * SLEEP_S
        assert call(0.0) == NODES
