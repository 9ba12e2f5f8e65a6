"""Sessions run branches side by side where that is faster; what a step gives and raises stays the same."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.runtime.deadlines import error_at_deadline

import opkernel
from opkernel.device.budget import Budget
from opkernel.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from opkernel.graph import Graph, Tensor
from opkernel.kernel import allocate, intra_op_parallelism, shard, under_budget
from opkernel.opdef import unchanged_shape
from opkernel.runtime import CompiledPlan
from opkernel.runtime.adaptive import branches, stages

SLEEP_S = 0.003
ENOUGH_STEPS = 25  # for everything to be measured

written: list[str] = []


def register(name: str, kernel: Callable[..., Any], **more: Any) -> None:
    """Register an op of a float vector and a number, and its kernel."""
    inputs = ["x: float", "n: float"]
    op = opkernel.register_op(
        name, inputs=inputs, outputs=["y: float"], shape_fn=unchanged_shape, **more
    )
    opkernel.register_kernel(op, device="CPU")(kernel)


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    """The ops of the test."""
    register("BranchSleep", Sleep())
    register("BranchWrite", write, is_stateful=True)
    register("BranchFail", fail)
    register("BranchShard", in_parts)
    register("BranchAllocate", allocates)
    register("BranchDivide", divides)


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Whatever the machine has."""
    with intra_op_parallelism(2):
        yield


@pytest.fixture(autouse=True)
def branches_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else the machine is doing; to be undone by what tests the measurement."""
    monkeypatch.setattr(branches, "_FASTER", math.inf)
    monkeypatch.setattr(stages, "_LEAST_SAVED", 0)


class Sleep:
    """Lets the other threads run for a while; notes which there are, and how many at once."""

    threads: ClassVar[set[str]] = set()
    at_once: ClassVar[list[None]] = []
    most = 0

    def __call__(self, x: Any, n: Any) -> Any:
        Sleep.threads.add(threading.current_thread().name)
        Sleep.at_once.append(None)
        Sleep.most = max(Sleep.most, len(Sleep.at_once))
        time.sleep(SLEEP_S)
        Sleep.at_once.pop()
        return x + n


def write(x: Any, n: Any) -> Any:
    """Note that it ran."""
    written.append(f"{int(n)}")
    time.sleep(SLEEP_S)
    return x


def fail(x: Any, n: Any) -> Any:
    """Refuse numbers over 100."""
    time.sleep(SLEEP_S)
    if x[0] == 999:
        raise KeyboardInterrupt
    if x[0] > 100:
        raise InvalidArgumentError(f"{x[0]} is too much, says {n}")
    return x


def in_parts(x: Any, n: Any) -> Any:
    """Share the work out."""
    result = np.empty_like(x)

    def work(part: int) -> None:
        time.sleep(SLEEP_S / 4)
        result[part] = x[part] + n

    shard(work, range(len(x)))
    return result


def allocates(x: Any, n: Any) -> Any:
    """Ask for as much memory as the input says."""
    time.sleep(SLEEP_S)
    allocate([int(x[0])], opkernel.float32)
    return x


def divides(x: Any, n: Any) -> Any:
    """Divide by zero, which NumPy warns of where it was not told otherwise."""
    time.sleep(SLEEP_S)
    return x / np.zeros_like(x)


def two_towers(op: str, length: int = 3, other: str = "") -> tuple[Graph, Tensor, Tensor]:
    """A graph of two chains from `x`, which are added."""
    graph = Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [4], name="x")
        ends = []
        for tower, kind in enumerate((op, other or op)):
            y = x
            for number in range(length):
                inputs = [y, np.float32(tower + 1)]
                y = graph.create_op(kind, inputs, name=f"t{tower}_{number}").outputs[0]
            ends.append(y)
        return graph, x, graph.create_op("AddV2", ends, name="sum").outputs[0]


def settled(session: opkernel.Session, fetch: Any, x: Tensor) -> Callable[..., Any]:
    """A callable that has found out what is the fastest."""
    call = session.make_callable(fetch, [x])
    for _ in range(ENOUGH_STEPS):
        call(np.zeros(4, np.float32))
    return call


def has_branches(session: opkernel.Session, fetch: Any, x: Tensor) -> bool:
    """Whether a session runs something side by side."""
    return "side by side" in session.plan(fetch, [x]).source


def runs_side_by_side(call: Callable[..., Any]) -> bool:
    """Whether kernels of a step run at the same time, as soon as a thread comes to it."""
    Sleep.most = 0
    for _ in range(200):
        call(VALUE)
        if Sleep.most > 1:
            return True
    return False


VALUE = np.array([1, 2, 3, 4], np.float32)


def test_branches_run_side_by_side_where_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    graph, x, y = two_towers("BranchSleep")
    for _ in range(10):  # a machine that is busy with other things may mislead the measurement
        with opkernel.Session(graph) as session:
            call = session.make_callable(y, [x])
            np.testing.assert_array_equal(call(VALUE), 2 * VALUE + 9)
            assert not has_branches(session, y, x)
            call = settled(session, y, x)
            np.testing.assert_array_equal(call(VALUE), 2 * VALUE + 9)
            if has_branches(session, y, x):
                assert runs_side_by_side(call)
                return
    pytest.fail("branches were never faster")


def test_what_is_not_faster_side_by_side_is_not_done_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    lock = threading.Lock()

    def alone(x: Any, n: Any) -> Any:
        with lock:
            time.sleep(SLEEP_S)
        return x + n

    register("BranchAlone", alone)
    graph, x, y = two_towers("BranchAlone")
    for _ in range(10):
        with opkernel.Session(graph) as session:
            call = settled(session, y, x)
            np.testing.assert_array_equal(call(VALUE), 2 * VALUE + 9)
            if not has_branches(session, y, x):
                return
    pytest.fail("branches were always faster")


def test_kernels_of_branches_may_share_out_their_work() -> None:
    graph, x, y = two_towers("BranchShard")
    with opkernel.Session(graph) as session:
        call = settled(session, y, x)
        assert has_branches(session, y, x)
        np.testing.assert_array_equal(call(VALUE), 2 * VALUE + 9)
        (found,) = session.report()
        assert (found.strategy, found.steps) == ("branches", "whatever is fed")
        assert found.chosen == "branches side by side where that is faster"
        measured = {name for name, seconds in found.tried.items() if seconds is not None}
        assert measured == {"plan", "branches one after the other", "branches side by side"}


@pytest.mark.parametrize(
    "more", [{"config": opkernel.SessionConfig(inter_op_parallelism_threads=-1)}, {}]
)
def test_steps_may_be_kept_to_the_calling_thread(more: dict[str, Any]) -> None:
    graph, x, y = two_towers("BranchSleep")
    with opkernel.Session(graph, **more) as session:
        settled(session, y, x)
        assert has_branches(session, y, x) == (not more)
        Sleep.threads.clear()
        options = None if more else opkernel.RunOptions(inter_op_thread_pool=-1)
        for _ in range(3):
            session.run(y, {x: VALUE}, options=options)
        assert Sleep.threads == {threading.current_thread().name}


def test_one_thread_for_kernels_is_one_thread_for_branches() -> None:
    graph, x, y = two_towers("BranchSleep")
    config = opkernel.SessionConfig(intra_op_parallelism_threads=1)
    with opkernel.Session(graph, config=config) as session:
        settled(session, y, x)
        assert not has_branches(session, y, x)


def test_graphs_without_two_heavy_nodes_side_by_side_have_the_plan_alone() -> None:
    graph = Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [4, 4], name="x")
        product = graph.create_op("MatMul", [x, x]).outputs[0]
        fork = graph.create_op("AddV2", [product, graph.create_op("Tanh", [product]).outputs[0]])
    with opkernel.Session(graph) as session:
        assert type(session.plan(fork.outputs[0], [x])) is CompiledPlan


def test_nodes_with_state_run_in_the_order_of_the_plan() -> None:
    graph, x, y = two_towers("BranchWrite", 2)
    with graph.as_default():
        ends = [graph.create_op("BranchSleep", [y, np.float32(n)]).outputs[0] for n in range(2)]
        total = graph.create_op("AddV2", ends).outputs[0]
    with opkernel.Session(graph) as session:
        settled(session, total, x)
        assert has_branches(session, total, x)
        written.clear()
        session.run(total, {x: VALUE})
    assert written == ["1", "1", "2", "2"]


def test_branches_of_steps_with_a_timeout_stop() -> None:
    graph, x, y = two_towers("BranchSleep", 10)
    config = opkernel.SessionConfig(operation_timeout_in_ms=60_000)
    with opkernel.Session(graph, config=config) as session:
        call = settled(session, y, x)
        np.testing.assert_array_equal(call(VALUE), 2 * VALUE + 30)
        times = (
            int(3e3 * SLEEP_S),
        ) * 1000  # a busy machine may take all of it before the first node
        error_at_deadline(lambda options: session.run(y, {x: VALUE}, options), "BranchSleep", times)
        executable = session._runner.executables.find(y, (x,), "stoppable")
        assert "side by side" in executable.program.executor.source


def error_of(call: Callable[..., Any], value: Any) -> OpError:
    with pytest.raises(OpError) as raised:
        call(value)
    return raised.value


def test_errors_are_told_as_without_branches() -> None:
    graph, x, y = two_towers("BranchFail")
    with opkernel.Session(graph) as session:
        value = np.full(4, 101, np.float32)
        expected = error_of(session.make_callable(y, [x]), value)
        call = settled(session, y, x)
        assert has_branches(session, y, x)
        error = error_of(call, value)
        assert type(error) is InvalidArgumentError
        assert str(error) == str(expected)
        assert (error.node, error.op) == ("t0_0", "BranchFail")
        np.testing.assert_array_equal(call(VALUE), 2 * VALUE)


def test_an_error_while_branches_are_tried_out_is_that_of_its_step_alone() -> None:
    graph, x, y = two_towers("BranchFail")
    with opkernel.Session(graph) as session:
        call = session.make_callable(y, [x])
        for _ in range(ENOUGH_STEPS):
            assert "101" in str(error_of(call, np.full(4, 101, np.float32)))
            np.testing.assert_array_equal(call(VALUE), 2 * VALUE)
        assert has_branches(session, y, x)


def test_an_interrupt_in_a_branch_leaves_the_session_usable() -> None:
    graph, x, y = two_towers("BranchFail")
    with opkernel.Session(graph) as session:
        call = settled(session, y, x)
        with pytest.raises(KeyboardInterrupt):
            call(np.full(4, 999, np.float32))
        np.testing.assert_array_equal(call(VALUE), 2 * VALUE)


def test_what_holds_for_a_step_holds_for_its_branches() -> None:
    graph, x, y = two_towers("BranchAllocate", other="BranchSleep")
    with opkernel.Session(graph) as session:
        call = settled(session, y, x)
        assert has_branches(session, y, x)
        for _ in range(8):  # whichever thread has the branch
            with under_budget(Budget(4096)), pytest.raises(ResourceExhaustedError):
                call(np.full(4, 2000, np.float32))
    graph, x, y = two_towers("BranchDivide")
    with opkernel.Session(graph) as session:
        call = settled(session, y, x)
        with np.errstate(all="raise"):
            assert np.all(np.isinf(call(VALUE)[:1]))


def test_what_is_fed_and_fetched_may_stand_anywhere() -> None:
    graph, x, y = two_towers("BranchSleep")
    inner = [graph.get_tensor_by_name(f"t{tower}_1:0") for tower in (0, 1)]
    constant = inner[0].op.inputs[1]
    fetches = [y, inner[0], x, constant]
    with opkernel.Session(graph) as session:
        call = session.make_callable(fetches, [x, inner[1]])
        for _ in range(ENOUGH_STEPS):
            got = call(VALUE, 10 * VALUE)
        assert "side by side" in session.plan(fetches, [x, inner[1]]).source
        for value, expected in zip(got, [11 * VALUE + 5, VALUE + 2, VALUE, 1], strict=True):
            np.testing.assert_array_equal(value, expected)


def test_an_edited_graph_is_left_to_the_plan_that_was_made_before() -> None:
    graph, x, y = two_towers("BranchSleep")
    with opkernel.Session(graph, optimize=False) as session:
        call = session.make_callable(y, [x])
        graph.get_operation_by_name("sum").update_input(1, x)
        for _ in range(ENOUGH_STEPS):
            np.testing.assert_array_equal(call(VALUE), 2 * VALUE + 9)


def test_bodies_of_functions_have_branches_too() -> None:
    @opkernel.function
    def towers(x: Any) -> Any:
        graph = x.graph
        ends = []
        for tower in (1, 2):
            y = x
            for _ in range(3):
                y = graph.create_op("BranchSleep", [y, np.float32(tower)]).outputs[0]
            ends.append(y)
        return graph.create_op("AddV2", ends).outputs[0]

    for _ in range(ENOUGH_STEPS):
        towers(VALUE)
    np.testing.assert_array_equal(towers(VALUE), 2 * VALUE + 9)
    assert runs_side_by_side(towers)


def test_many_threads_run_one_session_while_it_finds_out() -> None:
    graph, x, y = two_towers("BranchSleep", 2)
    failures: list[BaseException] = []
    with opkernel.Session(graph) as session:
        call = session.make_callable(y, [x])

        def work(number: int) -> None:
            try:
                for step in range(20):
                    value = VALUE * number + step
                    np.testing.assert_array_equal(call(value), 2 * value + 6)
            except BaseException as error:
                failures.append(error)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not failures


def test_what_is_measured_may_read_references() -> None:
    graph, x, y = two_towers("BranchSleep")
    with graph.as_default():
        attrs = {"dtype": opkernel.float32, "shape": [4]}
        v = graph.create_op("VariableV2", name="v", attrs=attrs).outputs[0]
        graph.create_op("Assign", [v, x], name="assign")
        total = graph.create_op("AddV2", [v, y]).outputs[0]
    with opkernel.Session(graph) as session:
        session.run("assign", {x: VALUE})
        call = settled(session, total, x)
        np.testing.assert_array_equal(call(2 * VALUE), 5 * VALUE + 9)
