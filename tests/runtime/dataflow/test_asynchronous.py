"""Kernels that wait, threads, errors, cancellation and deadlines in the middle of a step."""

import threading
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.kernels import Fails, Later, Together, WaitsForCancellation, register
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.dataflow.test_loops import counted
from tests.runtime.deadlines import error_at_deadline
from tests.runtime.plan.test_control_flow import define

import opkernel
from opkernel.errors import CancelledError, DeadlineExceededError, InternalError, OpError
from opkernel.graph import Graph, graph_to_function_def
from opkernel.kernel import AsyncOpKernel, OpKernel
from opkernel.proto import NameAttrList
from opkernel.runtime import DataflowExecutor, RunOptions
from opkernel.runtime.program.run_step import RunStep

LATER, WAITS, FAILS = "DataflowLater", "DataflowWaits", "DataflowFails"
TOGETHER = "DataflowTogether"


@pytest.fixture(scope="module", autouse=True)
def ops():
    register(LATER, Later)
    register(WAITS, WaitsForCancellation)
    register(FAILS, Fails)


@pytest.fixture(autouse=True)
def no_thread_stays_behind():
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(300)
    assert set(threading.enumerate()) <= before


def test_asynchronous_kernels_wait_side_by_side():
    b = Builder()
    x = b.placeholder("x")
    register(TOGETHER, Together)
    sums = b.op("AddN", [b.op(TOGETHER, x) for _ in range(20)])
    assert b.run(sums, {"x:0": 2.0}) == 40


def test_an_asynchronous_kernel_in_a_loop_runs_at_every_turn():
    b = Builder()
    (y,) = counted(
        b,
        b.placeholder("n", INT32),
        lambda i, x: [b.op(LATER, b.op("AddV2", x, x))],
        [b.placeholder("x")],
    )
    assert b.run(y, {"n:0": 5, "x:0": 1.0}) == 32


@pytest.mark.parametrize("parallel", [1, 3, 10])
def test_parallel_iterations_are_as_many_as_are_asked_for(parallel):
    """Kernels wait until as many turns are under way, and a little for more."""
    lock, waiting, most = threading.Lock(), list[Any](), [0]

    def finish():
        with lock:
            most[0] = max(most[0], len(waiting))
            ready = waiting[:]
            waiting.clear()
        for ctx, done in ready:
            ctx.set_output(0, np.float32(ctx.input(0)))
            done()

    class Overlaps(AsyncOpKernel):
        def compute_async(self, ctx, done):
            with lock:
                waiting.append((ctx, done))
                are_all = len(waiting) == parallel
            if are_all:
                threading.Timer(0.01, finish).start()

    register("DataflowOverlaps", Overlaps)
    b = Builder()
    _, total = b.while_loop(
        lambda i, x: b.op("Less", i, b.constant(30.0)),
        lambda i, x: [
            b.op("AddV2", i, b.constant(1.0)),
            b.op("AddV2", x, b.op("DataflowOverlaps", i)),
        ],
        [b.constant(0.0), b.constant(0.0)],
        parallel_iterations=parallel,
    )
    assert b.run(total, executor="DATAFLOW") == sum(range(30))
    assert most == [parallel]


def test_the_first_error_stops_what_waits_and_names_its_node():
    b = Builder()
    x = b.placeholder("x")
    waits = b.op(WAITS, x, name="waits")
    fails = b.op(FAILS, b.op(LATER, x), name="fails")
    y = b.op("AddV2", waits, fails)
    with opkernel.Session(b.graph) as session:
        for _ in range(2):
            with pytest.raises(InternalError, match=r"by zero.*node 'fails', inputs float32\[\]"):
                session.run(y, {"x:0": 1.0})
        assert session.run(b.op("Neg", x), {"x:0": 1.0}) == -1


@pytest.mark.parametrize("threads", [0, 2])
def test_an_error_in_a_function_is_the_error_of_the_step(threads):
    b = Builder()
    x = b.placeholder("x")

    def body(g, x):
        waits, fails = (g.create_op(name, [x], name=name).outputs[0] for name in (WAITS, FAILS))
        return [g.create_op("AddV2", [waits, fails]).outputs[0]]

    attrs: dict[str, Any] = {"f": define(b.graph, "fails", [FLOAT], body), "Tout": [FLOAT]}
    y = b.op("AddV2", b.op(WAITS, x), b.op("PartitionedCall", [x], **attrs))
    with (
        opkernel.Session(b.graph, inter_op_threads=threads) as session,
        pytest.raises(InternalError, match=rf"by zero.*node '{FAILS}'"),
    ):
        session.run(y, {"x:0": 1.0})


def test_an_error_ends_a_loop_without_end_in_a_function_on_a_thread():
    b = Builder()
    inner = Builder()
    inner.graph = Graph(function_library=b.graph.function_library)
    x = inner.placeholder("x")
    endless = inner.while_loop(lambda x: inner.constant(True), lambda x: [inner.op("Neg", x)], [x])
    b.graph.function_library.add_function(
        graph_to_function_def(inner.graph, "endless", [x], endless)
    )
    x = b.placeholder("x")
    call = b.op("PartitionedCall", [x], f=NameAttrList(name="endless"), Tout=[FLOAT])
    y = b.op("AddV2", call, b.op(FAILS, b.op(LATER, x)))
    with (
        opkernel.Session(b.graph, inter_op_threads=2) as session,
        pytest.raises(InternalError, match="by zero"),
    ):
        session.run(y, {"x:0": 1.0})


def test_an_error_in_a_loop_names_its_node_and_the_session_stays_usable():
    b = Builder()
    (y,) = counted(
        b,
        b.placeholder("n", INT32),
        lambda i, x: [b.op("CheckNumerics", b.op("Mul", x, x), message="too big", name="check")],
        [b.placeholder("x")],
    )
    with opkernel.Session(b.graph) as session:
        with pytest.raises(OpError, match=r"too big.*node 'check', inputs float32\[\]"):
            session.run(y, {"n:0": 20, "x:0": 10.0})
        assert session.run(y, {"n:0": 2, "x:0": 10.0}) == 10_000


@pytest.mark.parametrize("reason", ["cancelled", "late"])
def test_who_waits_is_told_and_named(reason):
    b = Builder()
    waits = b.op(WAITS, b.placeholder("x"), name="waits")
    plan = opkernel.Session(b.graph).plan(waits, ["x:0"])
    step = RunStep(0.05 if reason == "late" else None)
    if reason == "cancelled":
        threading.Timer(0.05, step.cancel).start()
    with pytest.raises((CancelledError, DeadlineExceededError)) as caught:
        plan.run(step, np.float32(1))
    step.end()
    assert isinstance(
        caught.value, CancelledError if reason == "cancelled" else DeadlineExceededError
    )


def test_a_kernel_that_ignores_its_cancellation_is_named_and_left():
    begun: list[Any] = []

    class Ignores(AsyncOpKernel):
        def compute_async(self, ctx, done):
            begun.append(done)

    register("DataflowIgnores", Ignores)
    b = Builder()
    y = b.op("DataflowIgnores", b.placeholder("x"), name="deaf")
    with opkernel.Session(b.graph) as session:
        error_at_deadline(
            lambda options: session.run(y, {"x:0": 1.0}, options),
            r"waiting for DataflowIgnores \(node 'deaf'\)",
        )
    begun.pop()()  # too late to matter


def test_a_sanitized_session_watches_the_kernels_of_loops():
    class Writes(OpKernel):
        def compute(self, ctx):
            ctx.input(0)[...] = 3
            ctx.set_output(0, ctx.input(0))

    register("DataflowWrites", Writes)
    b = Builder()
    (y,) = counted(
        b, b.placeholder("n", INT32), lambda i, x: [b.op("AddV2", x, x)], [b.placeholder("x")]
    )
    (bad,) = counted(
        b, b.constant(1), lambda i, x: [b.op("DataflowWrites", x, name="bad")], [b.placeholder("z")]
    )
    with opkernel.Session(b.graph, sanitize=True) as session:
        assert session.run(y, {"n:0": 3, "x:0": 1.0}) == 8
        with pytest.raises(InternalError, match=r"writes to an input.*node 'bad'"):
            session.run(bad, {"z:0": 1.0})


def test_a_loop_without_end_stops_at_the_deadline_and_when_it_is_cancelled():
    b = Builder()
    (y,) = b.while_loop(
        lambda x: b.constant(True), lambda x: [b.op("Neg", x)], [b.placeholder("x")]
    )
    with opkernel.Session(b.graph) as session:
        with pytest.raises(DeadlineExceededError):
            session.run(y, {"x:0": 1.0}, RunOptions(timeout_in_ms=30))
        step = RunStep()
        threading.Timer(0.03, step.cancel).start()
        with pytest.raises(CancelledError):
            session.plan(y, ["x:0"]).run(step, np.float32(1))


def test_every_node_of_a_loop_may_fail_in_turn():
    """A deadline is made to end the step at its k-th check, for every k."""

    class Stops(RunStep):
        def __init__(self, after):
            super().__init__()
            self.left = after

        def check(self):
            self.left -= 1
            if not self.left:
                raise DeadlineExceededError("now")

    b = Builder()
    (y,) = counted(
        b, b.placeholder("n", INT32), lambda i, x: [b.op("AddV2", x, x)], [b.placeholder("x")]
    )
    plan = opkernel.Session(b.graph, executor_type="DATAFLOW").plan(y, ["n:0", "x:0"])
    assert isinstance(plan, DataflowExecutor)
    feeds = np.int32(2), np.float32(1)
    _, counts = plan.run_counting(RunStep(), *feeds)
    for after in range(1, sum(counts.values()) + 1):
        with pytest.raises(DeadlineExceededError):
            plan.run(Stops(after), *feeds)
    assert plan.run(RunStep(), *feeds) == [4]


def test_deferred_kernels_are_waited_for():
    done: list[bool] = []

    class Defers(OpKernel):
        def __init__(self, construction):
            super().__init__(construction, is_deferred=True)

        def compute(self, ctx):
            begin, end = ctx.inc_num_deferred_ops_function(), ctx.dec_num_deferred_ops_function()

            def work():
                done.append(True)
                end()

            begin()
            threading.Timer(0.05, work).start()
            ctx.set_output(0, ctx.input(0))

    register("DataflowDefers", Defers)
    b = Builder()
    assert b.run(b.op("DataflowDefers", b.placeholder("x")), {"x:0": 1.0}, "DATAFLOW") == 1
    assert done == [True]


def test_expensive_kernels_are_computed_side_by_side():
    both = threading.Barrier(2)

    class Meets(OpKernel):
        """Synchronous kernels must not wait for one another; these do, to show that two run."""

        def compute(self, ctx):
            both.wait(timeout=300)
            ctx.set_output(0, ctx.input(0))

    register("DataflowMeets", Meets)
    b = Builder()
    x = b.placeholder("x")
    y = b.op("AddV2", b.op("DataflowMeets", x), b.op("DataflowMeets", x))
    assert b.run(y, {"x:0": 1.0}, inter_op_threads=2) == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_loops_on_threads_give_the_same_and_errors_end_them(threads):
    b = Builder()
    results = [
        counted(
            b,
            b.placeholder(f"n{k}", INT32),
            lambda i, x: [b.op("CheckNumerics", b.op("Mul", x, x), message="too big")],
            [b.placeholder(f"x{k}")],
        )[0]
        for k in range(3)
    ]
    feeds = {f"n{k}:0": k + 1 for k in range(3)} | {f"x{k}:0": 2.0 for k in range(3)}
    with opkernel.Session(b.graph, inter_op_threads=threads) as session:
        for _ in range(5):
            assert session.run(results, feeds) == [4, 16, 256]
            with pytest.raises(OpError, match="too big"):
                session.run(results, {**feeds, "n1:0": 20})


def test_sixteen_threads_run_one_session():
    b = Builder()
    (y,) = counted(
        b, b.placeholder("n", INT32), lambda i, x: [b.op("AddV2", x, x)], [b.placeholder("x")]
    )
    found: list[bool] = []

    def work(n):
        found.extend(session.run(y, {"n:0": n, "x:0": 1.0}) == 2**n for _ in range(20))

    with opkernel.Session(b.graph, inter_op_threads=2) as session:
        threads = [threading.Thread(target=work, args=[n]) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [True] * 320


def test_functions_in_functions_never_starve_the_pool():
    b = Builder()
    function = define(b.graph, "f0", [FLOAT], lambda g, x: [g.create_op("Neg", [x]).outputs[0]])
    for depth in range(1, 4):

        def body(g, x, inner=function):
            calls = [
                g.create_op("PartitionedCall", [[x]], attrs={"f": inner, "Tout": [FLOAT]})
                for _ in range(3)
            ]
            return [g.create_op("AddN", [[call.outputs[0] for call in calls]]).outputs[0]]

        function = define(b.graph, f"f{depth}", [FLOAT], body)
    x = b.placeholder("x")
    y = b.graph.create_op("PartitionedCall", [[x]], attrs={"f": function, "Tout": [FLOAT]})
    for threads in (1, 2):
        assert b.run(y.outputs[0], {"x:0": 1.0}, inter_op_threads=threads) == -27
