"""Loops of TensorFlow 1: frames, iterations, dead exits, loop invariants."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.kernels import register
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder

import opkernel
from opkernel.graph import Graph, graph_to_function_def
from opkernel.kernel import OpKernel
from opkernel.proto import NameAttrList


def counted(b: Builder, n, body, variables, invariants=(), **options):
    """A loop of n turns: `body(i, *variables, *invariants)`; the results without the counter."""
    count = len(variables)

    def step(i, *rest):
        return [b.op("AddV2", i, b.constant(1)), *body(i, *rest[:count], *rest[count:-1])]

    results = b.while_loop(
        lambda i, *rest: b.op("Less", i, rest[-1]),
        step,
        [b.constant(0), *variables],
        [*invariants, n],
        **options,
    )
    return results[1:]


@pytest.mark.parametrize("n", [0, 1, 2, 10])
@pytest.mark.parametrize("parallel_iterations", [1, 2, 10])
def test_a_loop_doubles_its_variable_n_times(n, parallel_iterations):
    b = Builder()
    (y,) = counted(
        b,
        b.placeholder("n", INT32),
        lambda i, x: [b.op("AddV2", x, x)],
        [b.placeholder("x")],
        parallel_iterations=parallel_iterations,
    )
    assert b.run(y, {"n:0": n, "x:0": 3.0}) == 3 * 2**n


def test_nested_loops_multiply():
    b = Builder()
    n, m = b.placeholder("n", INT32), b.placeholder("m", INT32)

    def outer(i, x, m):
        return counted(b, m, lambda j, x: [b.op("AddV2", x, b.constant(1.0))], [x])

    (y,) = counted(b, n, outer, [b.placeholder("x")], [m])
    for turns, inner in [(0, 5), (5, 0), (3, 4), (12, 13)]:
        assert b.run(y, {"n:0": turns, "m:0": inner, "x:0": 0.5}) == turns * inner + 0.5


def test_a_conditional_in_a_loop_takes_another_branch_at_every_turn():
    b = Builder()

    def body(i, x):
        odd = b.op("Equal", b.op("FloorMod", i, b.constant(2)), b.constant(1))
        return b.cond(
            odd,
            lambda x: [b.op("Mul", x, b.constant(3.0))],
            lambda x: [b.op("AddV2", x, b.constant(1.0))],
            [x],
        )

    (y,) = counted(b, b.placeholder("n", INT32), body, [b.placeholder("x")])
    expected = 0.0
    for turn in range(7):
        assert b.run(y, {"n:0": turn, "x:0": 0.0}) == expected
        expected = expected * 3 if turn % 2 else expected + 1


@pytest.mark.parametrize(("taken", "expected"), [(True, 8.0), (False, -1.0)])
def test_a_loop_on_the_branch_that_is_not_taken_is_dead(taken, expected):
    b = Builder()
    x = b.placeholder("x")

    def loop(x):
        return counted(b, b.constant(3), lambda i, x: [b.op("AddV2", x, x)], [x])

    (y,) = b.cond(
        b.placeholder("p", BOOL),
        loop,
        lambda x: [b.op("Neg", x)],
        [x],
    )
    assert b.run(y, {"p:0": taken, "x:0": 1.0}) == expected


def test_a_loop_that_is_dead_in_some_turns_of_another():
    b = Builder()

    def body(i, x):
        odd = b.op("Equal", b.op("FloorMod", i, b.constant(2)), b.constant(1))
        return b.cond(
            odd,
            lambda x: counted(b, b.constant(3), lambda j, x: [b.op("AddV2", x, x)], [x]),
            lambda x: [b.op("AddV2", x, b.constant(1.0))],
            [x],
        )

    (y,) = counted(b, b.placeholder("n", INT32), body, [b.placeholder("x")])
    expected = 0.0
    for turn in range(7):
        assert b.run(y, {"n:0": turn, "x:0": 0.0}) == expected
        expected = expected * 8 if turn % 2 else expected + 1


def test_invariants_are_there_in_every_iteration_and_several_exits_agree():
    b = Builder()
    w = b.placeholder("w")
    x, y = counted(
        b,
        b.placeholder("n", INT32),
        lambda i, x, y, w: [
            b.op("MatMul", x, w),
            b.op("AddV2", y, b.op("Cast", i, SrcT=INT32, DstT=FLOAT)),
        ],
        [b.placeholder("x"), b.placeholder("y")],
        [w],
    )
    matrix = np.array([[0.5, 1], [2, -1]], np.float32)
    start = np.eye(2, dtype=np.float32)
    found_x, found_y = b.run([x, y], {"n:0": 5, "w:0": matrix, "x:0": start, "y:0": 1.0})
    np.testing.assert_allclose(found_x, np.linalg.matrix_power(matrix.astype(float), 5), rtol=1e-6)
    assert found_y == 11


def test_no_iteration_stays_behind():
    b = Builder()
    (y,) = counted(
        b, b.placeholder("n", INT32), lambda i, x: [b.op("AddV2", x, x)], [b.placeholder("x")]
    )
    with opkernel.Session(b.graph) as session:
        assert session.run(y, {"n:0": 10, "x:0": np.zeros(4)}).tolist() == [0] * 4
        tracemalloc.start()
        session.run(y, {"n:0": 1_000, "x:0": np.zeros(4)})
        peaks = []
        for turns in (1_000, 10_000):
            tracemalloc.reset_peak()
            session.run(y, {"n:0": turns, "x:0": np.zeros(4)})
            peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 20_000


def test_a_hundred_thousand_turns():
    b = Builder()
    (y,) = counted(
        b,
        b.placeholder("n", INT32),
        lambda i, x: [b.op("AddV2", x, b.constant(1.0))],
        [b.placeholder("x")],
    )
    assert b.run(y, {"n:0": 100_000, "x:0": 0.0}) == 100_000


@pytest.mark.parametrize("parallel", [1, 4])
def test_parallel_iterations_bound_how_many_are_under_way(parallel):
    """The counter runs ahead of a slow body by no more turns than that."""
    ahead: list[int] = []
    state = {"counter": 0, "body": 0}

    class Notes(OpKernel):
        def compute(self, ctx):
            key = "counter" if ctx.input(1) == 0 else "body"
            state[key] += 1
            ahead.append(state["counter"] - state["body"])
            ctx.set_output(0, ctx.input(0))

    register("DataflowNotes", Notes, inputs=2)
    b = Builder()
    results = b.while_loop(
        lambda i, x: b.op("Less", i, b.constant(20.0)),
        lambda i, x: [
            b.op("DataflowNotes", b.op("AddV2", i, b.constant(1.0)), b.constant(0.0)),
            b.op("DataflowNotes", x, b.constant(1.0)),
        ],
        [b.constant(0.0), b.placeholder("x")],
        parallel_iterations=parallel,
    )
    assert b.run(results, {"x:0": 3.0}) == [20, 3]
    assert max(map(abs, ahead)) <= parallel


def test_a_function_may_hold_a_loop():
    b = Builder()
    inner = Builder()
    inner.graph = Graph(function_library=b.graph.function_library)
    x = inner.placeholder("x")
    (y,) = counted(inner, inner.constant(4), lambda i, x: [inner.op("AddV2", x, x)], [x])
    b.graph.function_library.add_function(graph_to_function_def(inner.graph, "loops", [x], [y]))
    attrs: dict[str, Any] = {"f": NameAttrList(name="loops"), "Tout": [FLOAT]}
    called = b.op("PartitionedCall", [b.placeholder("x")], **attrs)
    (looped,) = counted(
        b,
        b.constant(3),
        lambda i, x: [b.op("PartitionedCall", [x], **attrs)],
        [b.op("Neg", called)],
    )
    with opkernel.Session(b.graph) as session:
        assert isinstance(session.plan(called, ["x:0"]), opkernel.runtime.CompiledPlan)
        assert session.run([called, looped], {"x:0": 1.0}) == [16, -(16.0**4)]


def test_a_variant_of_ops_by_reference_runs_the_same_loop():
    b = Builder()
    ref = b.op("Variable", shape=[], dtype=FLOAT, name="v")
    assign = b.op("Assign", ref, b.constant(1.0), name="assign")
    enter = b.op("RefEnter", assign, frame_name="refs")
    merge = b.operation("RefMerge", [enter, enter])
    b.pivot = merge.outputs[0]
    condition = b.op("LoopCond", b.op("Less", merge.outputs[0], b.constant(10.0)))
    switch = b.operation("RefSwitch", merge.outputs[0], condition)
    added = b.op("AssignAdd", switch.outputs[1], switch.outputs[1])
    merge.update_input(1, b.op("RefNextIteration", added))
    b.pivot = None
    result = b.op("RefExit", switch.outputs[0])
    assert b.run(result) == 16
