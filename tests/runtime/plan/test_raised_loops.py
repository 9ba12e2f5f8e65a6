"""Loops and conditionals of TensorFlow 1 as compiled plans: their text, errors, deadlines, memory."""

import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder

import opkernel
from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    UnimplementedError,
)
from opkernel.runtime import CompiledPlan
from opkernel.runtime.program.run_step import RunStep


def counting(b: Builder, body: Any, start: Any, *invariants: Any) -> Any:
    """`x = start; for i in range(n): x = body(i, x, *invariants)`."""

    def turn(i, x, n, *rest):
        return [b.op("AddV2", i, b.constant(1)), body(i, x, *rest)]

    variables, n = [b.constant(0), start], b.placeholder("n", INT32)
    return b.while_loop(lambda i, x, n, *_: b.op("Less", i, n), turn, variables, [n, *invariants])[
        1
    ]


def plan(b: Builder, fetches: Any, feeds: list[str]) -> CompiledPlan:
    found = opkernel.Session(b.graph, executor_type="COMPILED_PLAN").plan(fetches, feeds)
    assert isinstance(found, CompiledPlan)
    return found


def test_a_loop_is_a_while_statement_that_lets_go_of_what_is_not_needed():
    b = Builder()
    y = counting(
        b,
        lambda i, x, w: b.op("MatMul", b.op("MatMul", x, w), w),
        b.placeholder("x"),
        b.placeholder("w"),
    )
    assert plan(b, y, ["x:0", "n:0", "w:0"]).source.splitlines() == [
        "def plan(step, x, n, w):",
        "    Merge_1 = x; del x  # 'Enter_1'",
        "    Merge = Const  # 'Enter'",
        "    with one_blas_thread():",
        "        while True:",
        "            Less = Merge < n",
        "            Less.ndim and scalar_of(Less)  # 'LoopCond'",
        "            if not Less: break",
        "            step.check(); del Less",
        "            MatMul = kernel(Merge_1, w); del Merge_1",
        "            MatMul_1 = kernel_1(MatMul, w); del MatMul",
        "            AddV2 = Merge + Const_1; del Merge",
        "            Merge_1, Merge = MatMul_1, AddV2; del MatMul_1, AddV2  # 'NextIteration_1'",
        "    del Less, Merge, n, w",
        "    return (Merge_1,)",
    ]


def test_a_conditional_is_one_if_statement_for_all_its_results():
    b = Builder()
    p, x = b.placeholder("p", BOOL), b.placeholder("x")

    def then(x):
        y = b.op("Neg", x)
        return [y, b.op("Sin", y)]

    results = b.cond(p, then, lambda x: [x, b.constant(2.0)], [x])
    assert plan(b, results, ["p:0", "x:0"]).source.splitlines() == [
        "def plan(step, p, x):",
        "    p.ndim and scalar_of(p)  # 'Switch_1'",
        "    if p:",
        "        Neg = negative(x); del x",
        "        Merge = Neg",
        "        Sin = sin(Neg); del Neg",
        "        Merge_1 = Sin; del Sin",
        "    else:",
        "        Merge = x; del x",
        "        Merge_1 = Const",
        "    del p",
        "    return (Merge, Merge_1)",
    ]


def test_only_the_branch_that_is_taken_is_run():
    b = Builder()
    square, row = b.placeholder("square"), b.placeholder("row")
    (y,) = b.cond(
        b.placeholder("p", BOOL),
        lambda a, c: [b.op("MatMul", a, a)],
        lambda a, c: [b.op("MatMul", a, c)],
        [square, row],
    )
    feeds = {"square:0": np.eye(2), "row:0": np.ones((1, 2))}
    with opkernel.Session(b.graph, executor_type="COMPILED_PLAN") as session:
        assert session.run(y, {**feeds, "p:0": True}).tolist() == [[1, 0], [0, 1]]
        with pytest.raises(InvalidArgumentError, match=r"Matrix size-incompatible.*'MatMul_1'"):
            session.run(y, {**feeds, "p:0": False})


def test_an_error_in_the_third_turn_names_the_node_and_what_it_was_given():
    b = Builder()
    y = counting(
        b,
        lambda i, x: b.op(
            "Reshape", x, b.op("Pack", [b.op("Sub", b.constant(4), i), b.constant(-1)]), name="fold"
        ),
        b.placeholder("x"),
    )
    with opkernel.Session(b.graph, executor_type="COMPILED_PLAN") as session:
        assert session.run(y, {"x:0": np.zeros(4), "n:0": 1}).shape == (4, 1)
        with pytest.raises(InvalidArgumentError) as caught:
            session.run(y, {"x:0": np.zeros(4), "n:0": 3})
        assert (caught.value.op, caught.value.node) == ("Reshape", "fold")
        assert "float32[" in caught.value.message
        assert session.run(y, {"x:0": np.zeros(12), "n:0": 3}).shape == (2, 6)


def endless() -> tuple[Builder, Any]:
    b = Builder()
    (y,) = b.while_loop(
        lambda x: b.op("LessEqual", b.constant(0.0), b.op("Abs", x)),
        lambda x: [b.op("Neg", x)],
        [b.placeholder("x")],
    )
    return b, y


def test_a_loop_without_end_stops_at_the_deadline():
    b, y = endless()
    options = opkernel.RunOptions(timeout_in_ms=50)
    with opkernel.Session(b.graph, executor_type="COMPILED_PLAN") as session:
        for _ in range(2):
            with pytest.raises(DeadlineExceededError):
                session.run(y, {"x:0": 1.0}, options)
        assert np.isnan(session.run(y, {"x:0": np.nan}))


def test_a_loop_without_end_can_be_cancelled_from_another_thread():
    b, y = endless()
    step = RunStep()
    timer = threading.Timer(0.05, step.cancel)
    timer.start()
    with pytest.raises(CancelledError):
        plan(b, y, ["x:0"]).run(step, np.float32(1))


def test_a_hundred_thousand_turns_take_no_more_memory_than_ten():
    b = Builder()
    y = counting(b, lambda i, x: b.op("Neg", b.op("AddV2", x, x)), b.placeholder("x"))
    run = plan(b, y, ["x:0", "n:0"]).run
    x, peaks = np.zeros(1000, np.float32), []
    run(RunStep(), x, np.int32(10))
    for turns in (10, 100_000):
        tracemalloc.start()
        run(RunStep(), x, np.int32(turns))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 4000


def test_a_value_of_the_turn_before_is_gone_when_the_next_one_needs_memory():
    """Of a variable that a body replaces there is one array, and that under way."""
    b = Builder()
    y = counting(b, lambda i, x: b.op("Neg", b.op("Sin", b.op("Neg", x))), b.placeholder("x"))
    run = plan(b, y, ["x:0", "n:0"]).run
    x = np.zeros(1_000_000, np.float32)
    run(RunStep(), x[:1], np.int32(3))
    tracemalloc.start()
    run(RunStep(), x, np.int32(5))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.1 * x.nbytes


def test_loops_may_be_nested_more_deeply_than_python_allows():
    b = Builder()

    def nest(depth, x):
        if not depth:
            return b.op("AddV2", x, b.constant(1.0))
        return b.while_loop(
            lambda i, x: b.op("Less", i, b.constant(2 if depth % 8 == 0 else 1)),
            lambda i, x: [b.op("AddV2", i, b.constant(1)), nest(depth - 1, x)],
            [b.constant(0), x],
        )[1]

    y = nest(30, b.placeholder("x"))
    assert "def _part_0" in plan(b, y, ["x:0"]).source
    assert b.run(y, {"x:0": 0.0}, "COMPILED_PLAN") == 8


def test_a_long_body_is_cut_into_functions_and_gives_the_same():
    b = Builder()

    def body(i, x):
        for _ in range(2500):
            x = b.op("AddV2", x, b.constant(1.0))
        odd = b.op("Equal", b.op("FloorMod", i, b.constant(2)), b.constant(1))
        return b.cond(odd, lambda x: [b.op("Neg", x)], lambda x: [x], [x])[0]

    y = counting(b, body, b.placeholder("x"))
    found = plan(b, y, ["x:0", "n:0"])
    assert found.source.count("def ") >= 3
    (value,) = found.run(RunStep(), np.float32(0.5), np.int32(3))
    assert value == -(0.5 + 5000) + 2500


def test_a_fetch_on_the_branch_not_taken_is_an_error_that_names_it():
    b = Builder()
    p = b.placeholder("p", BOOL)
    inner = b.operation("Switch", b.operation("Switch", b.placeholder("x"), p).outputs[1], p)
    alive, never = b.op("Neg", inner.outputs[1]), b.op("Neg", inner.outputs[0])
    for executor in ("COMPILED_PLAN", "DATAFLOW"):
        assert b.run(alive, {"p:0": True, "x:0": 2.0}, executor) == -2
        for fetch, value in ((alive, False), (never, True), (never, False)):
            with pytest.raises(InvalidArgumentError, match=f"{fetch.name} was not valid"):
                b.run(fetch, {"p:0": value, "x:0": 2.0}, executor)


@pytest.mark.parametrize("index", range(-1, 4))
def test_a_switch_between_several_branches(index):
    b = Builder()
    k, x = b.placeholder("k", INT32), b.placeholder("x")
    outputs = b.operation("_SwitchN", x, k, name="switch", num_outs=3, T=FLOAT).outputs
    branches = [b.op("Neg", outputs[0]), outputs[1], b.op("Square", outputs[2])]
    merged = b.operation("Merge", branches).outputs
    expected = {0: -3, 1: 3}.get(index, 9)
    found = b.run(list(merged), {"k:0": index, "x:0": 3.0}, "COMPILED_PLAN")
    assert found == [expected, index if index in (0, 1) else 2]


def test_a_reference_is_read_where_it_is_led_into_a_loop():
    b = Builder()
    variable = b.op("Variable", shape=[], dtype=FLOAT, name="v")
    assign = b.op("Assign", variable, b.constant(1.5), name="assign")
    y = counting(b, lambda i, x: b.op("AddV2", x, x), assign)
    assert b.run(y, {"n:0": 3}, "COMPILED_PLAN") == 12


def unraisable(kind: str) -> tuple[Builder, Any, dict[str, Any]]:
    b = Builder()
    x, n = b.placeholder("x"), b.placeholder("n", INT32)
    feeds: dict[str, Any] = {"x:0": 3.0, "n:0": 2}
    y = counting(b, lambda i, x: b.op("AddV2", x, x, name="inside"), x)
    if kind == "a feed inside":
        feeds["inside:0"] = 1.0
    if kind == "a fetch inside":
        y = b.graph.get_tensor_by_name("inside:0")
    if kind == "a part of the turns":
        enter = b.op("Enter", x, frame_name="loop_1")
        b.graph.get_operation_by_name("inside").update_input(1, enter)
    del n
    return b, y, feeds


@pytest.mark.parametrize("kind", ["a feed inside", "a fetch inside", "a part of the turns"])
def test_what_has_no_form_in_python_is_left_to_the_dataflow_executor(kind):
    b, y, feeds = unraisable(kind)
    outcomes = []
    for executor in ("", "DATAFLOW"):
        try:
            outcomes.append(b.run(y, feeds, executor))
        except InvalidArgumentError as error:
            outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]
    with pytest.raises((UnimplementedError, InvalidArgumentError)):
        b.run(y, feeds, "COMPILED_PLAN")
