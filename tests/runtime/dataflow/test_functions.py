"""Calls of functions by the dataflow executor: what waits in them holds up nothing outside."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.kernels import Fails, Later, Together, WaitsForCancellation, register
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.dataflow.test_loops import counted

import opkernel
from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from opkernel.graph import Graph, Operation, Tensor, graph_to_function_def
from opkernel.kernel import AsyncOpKernel
from opkernel.opdef import register_op, scalar_shape
from opkernel.proto import NameAttrList
from opkernel.runtime import CompiledPlan, DataflowExecutor
from opkernel.runtime.program.run_step import RunStep

LATER, WAITS, FAILS = "FunctionLater", "FunctionWaits", "FunctionFails"
TOGETHER = "FunctionTogether"
_ALICE, _BOB = "/job:j/replica:0/task:0/cpu:0", "/job:j/replica:0/task:0/cpu:1"


@pytest.fixture(scope="module", autouse=True)
def ops():
    register(LATER, Later)
    register(WAITS, WaitsForCancellation)
    register(FAILS, Fails)


def define(b: Builder, name: str, types: Sequence[Any], body: Any) -> NameAttrList:
    """Add a function: `body(builder, *arguments)` makes its nodes and gives its results."""
    inner = Builder()
    inner.graph = Graph(function_library=b.graph.function_library)
    arguments = [inner.placeholder(f"a{index}", dtype) for index, dtype in enumerate(types)]
    results = body(inner, *arguments)
    b.graph.function_library.add_function(
        graph_to_function_def(inner.graph, name, arguments, results)
    )
    return NameAttrList(name=name)


def call(b: Builder, function: NameAttrList, *inputs: Tensor, name: str | None = None) -> Tensor:
    return b.op("StatefulPartitionedCall", list(inputs), name=name, f=function, Tout=[FLOAT])


def transfer(name: str) -> dict[str, Any]:
    return {
        "tensor_name": name,
        "send_device": _ALICE,
        "send_device_incarnation": 1,
        "recv_device": _BOB,
    }


def receive(b: Builder, name: str) -> Tensor:
    return b.op("_Recv", tensor_type=FLOAT, name=f"recv_{name}", **transfer(name))


def send(b: Builder, value: Tensor, name: str) -> Operation:
    return b.operation("_Send", value, name=f"send_{name}", **transfer(name))


@pytest.mark.parametrize("nested", [False, True])
def test_a_receiver_in_a_function_waits_for_a_sender_outside(nested: bool) -> None:
    b = Builder()
    x = b.placeholder("x")
    function = define(b, "f", [FLOAT], lambda g, x: [g.op("AddV2", x, receive(g, "a"))])
    if nested:
        inner = function
        function = define(b, "g", [FLOAT], lambda g, x: [g.op("Neg", call(g, inner, x))])
    y = call(b, function, x)
    sent = send(b, b.op("Mul", x, x), "a")
    with opkernel.Session(b.graph) as session:
        plan = session.plan([y, sent], ["x:0"])
        assert isinstance(plan, DataflowExecutor)
        for fetches in ([y, sent], [sent, y]):
            found = session.run(fetches, {"x:0": 3.0})
            assert sum(value for value in found if value is not None) == (-12 if nested else 12)


def test_a_receiver_in_the_turns_of_a_loop_waits_for_senders_outside() -> None:
    """A While whose body receives what stands behind the loop in the order of the graph."""
    b = Builder()
    cond = define(b, "cond", [FLOAT], lambda g, x: [g.op("Less", x, g.constant(10.0))])
    body = define(b, "body", [FLOAT], lambda g, x: [g.op("AddV2", x, receive(g, "a"))])
    x = b.placeholder("x")
    y = b.op("While", [x], cond=cond, body=body, T=[FLOAT])
    sends = [send(b, b.op(LATER, x), "a") for _ in range(3)]
    assert b.run([y, *sends], {"x:0": 4.0})[0] == 12  # 4, 8, 12; one is left over


def test_kernels_that_wait_in_several_calls_wait_side_by_side() -> None:
    b = Builder()
    register(TOGETHER, Together)
    function = define(b, "f", [FLOAT], lambda g, x: [g.op(TOGETHER, g.op(TOGETHER, x))])
    x = b.placeholder("x")
    total = b.op("AddN", [call(b, function, x) for _ in range(20)])
    assert b.run(total, {"x:0": 2.0}) == 40


@pytest.mark.parametrize("options", [{}, {"inter_op_threads": 1}, {"sanitize": True}])
def test_conditionals_cases_and_loops_of_functions_that_wait(options: dict[str, Any]) -> None:
    b = Builder()
    double = define(b, "double", [FLOAT], lambda g, x: [g.op(LATER, g.op("AddV2", x, x))])
    negate = define(b, "negate", [FLOAT], lambda g, x: [g.op(LATER, g.op("Neg", x))])
    small = define(b, "small", [FLOAT], lambda g, x: [g.op("Less", x, g.constant(100.0))])
    p, i, x = b.placeholder("p", BOOL), b.placeholder("i", INT32), b.placeholder("x")
    fetches = [
        b.op("If", p, [x], then_branch=double, else_branch=negate, Tout=[FLOAT]),
        b.op("Case", i, [x], branches=[double, negate], Tout=[FLOAT]),
        b.op("While", [x], cond=small, body=double, T=[FLOAT]),
    ]
    with opkernel.Session(b.graph, **options) as session:
        assert session.run(fetches, {"p:0": True, "i:0": 1, "x:0": 30.0}) == [60, -30, 120]
        assert session.run(fetches, {"p:0": False, "i:0": -3, "x:0": 300.0}) == [-300, -300, 300]


def test_only_graphs_with_functions_that_may_wait_leave_the_plan() -> None:
    b = Builder()
    plain = define(b, "plain", [FLOAT], lambda g, x: [g.op("Neg", x)])
    waits = define(b, "waits", [FLOAT], lambda g, x: [g.op(LATER, x)])
    within = define(b, "within", [FLOAT], lambda g, x: [call(g, waits, x)])
    x = b.placeholder("x")
    calls = {f.name: call(b, f, x) for f in (plain, waits, within)}
    direct = b.op("waits", x)
    with opkernel.Session(b.graph) as session:
        kinds = {name: type(session.plan(y, ["x:0"])) for name, y in calls.items()}
        assert kinds == {
            "plain": CompiledPlan,
            "waits": DataflowExecutor,
            "within": DataflowExecutor,
        }
        assert isinstance(session.plan(direct, ["x:0"]), DataflowExecutor)
        assert session.run([*calls.values(), direct], {"x:0": 5.0}) == [-5, 5, 5, 5]


def factorial(b: Builder, op: str) -> NameAttrList:
    """fact(x) = x <= 0.5 ? 1 : x * op(fact(x - 1))."""
    name = NameAttrList(name="fact")

    def more(g: Builder, x: Tensor) -> list[Tensor]:
        before = call(g, name, g.op("Sub", x, g.constant(1.0)))
        return [g.op("Mul", x, g.op(op, before))]

    def fact(g: Builder, x: Tensor) -> list[Tensor]:
        large = g.op("Greater", x, g.constant(0.5))
        return [g.op("If", large, [x], then_branch=then, else_branch=one, Tout=[FLOAT])]

    one = define(b, "one", [FLOAT], lambda g, x: [g.constant(1.0)])
    then = NameAttrList(name="more")
    b.graph.function_library.add_function(_signature("fact"))  # known before it is defined
    then = define(b, "more", [FLOAT], more)
    b.graph.function_library.remove_function("fact")
    return define(b, "fact", [FLOAT], fact)


def _signature(name: str) -> Any:
    inner = Builder()
    x = inner.placeholder("x")
    return graph_to_function_def(inner.graph, name, [x], [inner.op("Identity", x)])


def test_a_recursive_function_that_waits_at_every_level() -> None:
    b = Builder()
    y = call(b, factorial(b, LATER), b.placeholder("x"))
    assert b.run(y, {"x:0": 6.0}) == 720


def test_recursion_takes_no_stack_and_ends_with_an_error_where_it_has_no_end() -> None:
    b = Builder()
    y = call(b, factorial(b, "Identity"), b.placeholder("x"))
    with opkernel.Session(b.graph, executor_type="DATAFLOW") as session:
        assert session.run(y, {"x:0": 3000.0}) == np.inf
        with pytest.raises(ResourceExhaustedError, match="10000 other calls"):
            session.run(y, {"x:0": 1e30})
        assert session.run(y, {"x:0": 5.0}) == 120


def test_functions_of_nothing_but_arguments_and_constants() -> None:
    b = Builder()
    passes = define(b, "passes", [FLOAT, FLOAT], lambda g, x, y: [y, x])
    no = define(b, "no", [FLOAT, FLOAT], lambda g, x, y: [g.constant(False)])
    empty = define(b, "empty", [], lambda g: [g.constant(3.0)])
    x, z = b.placeholder("x"), b.placeholder("z")
    swapped = b.operation("PartitionedCall", [x, z], f=passes, Tout=[FLOAT, FLOAT]).outputs
    never = b.operation("While", [x, z], cond=no, body=passes, T=[FLOAT, FLOAT]).outputs
    fetches = [*swapped, *never, call(b, empty)]
    feeds = {"x:0": 1.0, "z:0": 2.0}
    for executor in ("", "DATAFLOW"):
        assert b.run(fetches, feeds, executor) == [2, 1, 1, 2, 3]


def test_a_loop_in_a_function_in_a_loop_whose_turns_wait() -> None:
    b = Builder()

    def body(g: Builder, x: Tensor) -> list[Tensor]:
        return counted(g, g.constant(3), lambda i, x: [g.op(LATER, g.op("AddV2", x, x))], [x])

    function = define(b, "eightfold", [FLOAT], body)
    (y,) = counted(
        b, b.placeholder("n", INT32), lambda i, x: [call(b, function, x)], [b.placeholder("x")]
    )
    assert b.run(y, {"n:0": 4, "x:0": 1.0}) == 8**4


def test_a_call_on_the_branch_that_is_not_taken_is_not_made() -> None:
    b = Builder()
    fails = define(b, "fails", [FLOAT], lambda g, x: [g.op(FAILS, g.op(LATER, x))])
    (y,) = b.cond(
        b.placeholder("p", BOOL),
        lambda x: [call(b, fails, x)],
        lambda x: [b.op("Neg", x)],
        [b.placeholder("x")],
    )
    assert b.run(y, {"p:0": False, "x:0": 1.0}) == -1


def test_an_error_in_a_function_names_its_node_and_ends_what_waits_in_others() -> None:
    b = Builder()
    waits = define(b, "waits", [FLOAT], lambda g, x: [g.op(WAITS, x)])
    fails = define(b, "fails", [FLOAT], lambda g, x: [g.op(FAILS, g.op(LATER, x), name="bad")])
    x = b.placeholder("x")
    y = b.op("AddV2", call(b, waits, x), call(b, fails, x))
    good = define(b, "good", [FLOAT], lambda g, x: [g.op(LATER, x)])
    with opkernel.Session(b.graph) as session:
        with pytest.raises(InternalError, match=r"by zero.*node 'bad"):
            session.run(y, {"x:0": 1.0})
        assert session.run(call(b, good, x), {"x:0": 1.0}) == 1


@pytest.mark.parametrize("reason", ["cancelled", "late"])
def test_what_waits_in_a_function_is_named_with_the_function(reason: str) -> None:
    b = Builder()
    inner = define(b, "inner", [FLOAT], lambda g, x: [g.op(WAITS, x, name="deep")])
    outer = define(b, "outer", [FLOAT], lambda g, x: [call(g, inner, x, name="call_inner")])
    y = call(b, outer, b.placeholder("x"))
    plan = opkernel.Session(b.graph).plan(y, ["x:0"])
    with pytest.raises(CancelledError):
        plan.run(cancelled_when_it_waits(), np.float32(1))  # functions are compiled by now
    step = RunStep(0.05) if reason == "late" else cancelled_when_it_waits()
    with pytest.raises(
        DeadlineExceededError if reason == "late" else CancelledError,
        match=r"waiting for FunctionWaits \(node 'deep.*'\) in the function 'inner' \(node "
        r"'call_inner.*'\) in the function 'outer' \(node 'StatefulPartitionedCall'\)",
    ):
        plan.run(step, np.float32(1))
    step.end()


def cancelled_when_it_waits() -> RunStep:
    """A step that is cancelled once its kernel waits."""
    step = RunStep()
    WaitsForCancellation.begun.clear()

    def cancel() -> None:
        assert WaitsForCancellation.begun.wait(300)
        step.cancel()

    threading.Thread(target=cancel).start()
    return step


def test_a_function_that_cannot_finish_says_what_it_lacks() -> None:
    b = Builder()

    def lost(g: Builder, x: Tensor) -> list[Tensor]:
        no = g.constant(False)
        return g.while_loop(
            lambda i, x, no: g.op("Less", i, g.constant(3)),
            lambda i, x, no: [
                g.op("AddV2", i, g.constant(1)),
                g.operation("Switch", x, no).outputs[1],  # dead: there is no x for the next turn
            ],
            [g.constant(0), x],
            [no],
        )[1:]

    y = call(b, define(b, "lost", [FLOAT], lost), b.placeholder("x"), name="c")
    with pytest.raises(InvalidArgumentError) as caught:
        b.run(y, {"x:0": 1.0}, "DATAFLOW")
    assert "Merge (node 'Merge_1') waits for NextIteration_1:0" in caught.value.message
    assert "of the loop 'loop_1' in the function 'lost' (node 'c')" in caught.value.message


def test_dead_results_of_a_function_are_refused() -> None:
    b = Builder()

    def dead(g: Builder, x: Tensor) -> list[Tensor]:
        return [g.operation("Switch", x, g.constant(False), name="s").outputs[1]]

    y = call(b, define(b, "dead", [FLOAT], dead), b.placeholder("x"))
    for executor in ("", "DATAFLOW"):
        with pytest.raises(InvalidArgumentError, match=r"s.*:1 was not valid"):
            b.run(y, {"x:0": 1.0}, executor)


def test_nodes_of_functions_are_counted_by_function() -> None:
    b = Builder()
    double = define(b, "double", [FLOAT], lambda g, x: [g.op("AddV2", x, x, name="sum")])
    small = define(b, "small", [FLOAT], lambda g, x: [g.op("Less", x, g.constant(10.0))])
    y = b.op("While", [b.placeholder("x")], cond=small, body=double, T=[FLOAT], name="loop")
    with opkernel.Session(b.graph, executor_type="DATAFLOW") as session:
        plan = session.plan(y, ["x:0"])
        assert isinstance(plan, DataflowExecutor)
        values, counts = plan.run_counting(RunStep(), np.float32(1))
    assert values == [16]
    counts = {name.removesuffix("_0"): count for name, count in counts.items()}
    assert counts == {"loop": 1, "small:Less": 5, "double:sum": 4}


def test_functions_share_what_their_kernels_keep_with_all_steps() -> None:
    """The kernel of a node in a function is one, however the function is run."""

    class Counts(AsyncOpKernel):
        def __init__(self, construction: Any) -> None:
            super().__init__(construction)
            self.lock, self.count = threading.Lock(), 0

        def compute_async(self, ctx: Any, done: Any) -> None:
            with self.lock:
                self.count += 1
                ctx.set_output(0, np.float32(self.count))
            done()

    register_op("FunctionCounts", outputs=["y: float"], shape_fn=scalar_shape, is_stateful=True)
    opkernel.register_kernel("FunctionCounts", device="CPU")(Counts)
    b = Builder()
    function = define(b, "counts", [], lambda g: [g.op("FunctionCounts")])
    y, z = call(b, function), call(b, function)
    with opkernel.Session(b.graph) as session:
        assert sorted(session.run([y, z])) == [1, 2]
        assert session.run(y) == 3
