"""What is the same in every turn of a While is computed before it, and results stay."""

import numpy as np
import pytest
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.types import DataType, PartialTensorShape

TYPES = [INT32, FLOAT, FLOAT]
NAMES = iter(range(1000))


def image(b, *dims, name="x"):
    return b.op("Placeholder", name=name, dtype=FLOAT, shape=PartialTensorShape(dims))


def loop(b, variables, turn, turns=3, op="StatelessWhile", types=TYPES, **attrs):
    """A While of the variables i, x, w...; `turn(g, x, w...)` gives the next x, all others stay."""
    number = next(NAMES)
    go_on = define(
        b, f"go_on_{number}", types, lambda g, i, *_: [g.op("Less", i, g.constant(turns))]
    )
    body = define(
        b,
        f"turn_{number}",
        types,
        lambda g, i, x, *w: [g.op("AddV2", i, g.constant(1)), turn(g, x, *w), *w],
    )
    inputs = [b.constant(0), *variables]
    return b.operation(op, inputs, cond=go_on, body=body, T=types, **attrs)


def test_what_is_the_same_enters_the_loop():
    b = Builder()
    x, w = image(b, 2, 2), image(b, 2, 2, name="w")

    def turn(g, x, w):
        matrix = g.op("AddV2", g.op("MatMul", w, w), g.op("Exp", g.op("Identity", w)))
        return g.op("MatMul", x, g.op("Mul", matrix, g.constant(0.5)))

    while_ = loop(b, [x, w], turn, output_shapes=[[], [2, 2], [2, 2]], name="while")
    y = while_.outputs[1]
    graph = optimized(b, y, "while_invariants")
    assert ops_of(graph) == sorted(["AddV2", "Exp", "MatMul", "Mul", "StatelessWhile"])
    assert [change.node for change in graph.changes] == ["while"]
    body = graph.graph.get_operation_by_name("while").get_attr("body").name
    function = graph.graph.function_library[body]
    assert sorted(node.op for node in function.node_def) == ["AddV2", "Const", "MatMul"]
    feeds = {x: np.eye(2, dtype="f4"), w: np.array([[0, 1], [1, 0.5]], "f4")}
    check_same(b, list(while_.outputs), feeds, "while_invariants")
    check_same(b, y, feeds)


def test_the_condition_counts_too():
    b = Builder()
    x, w = image(b), image(b, name="w")
    go_on = define(b, "go_on", [FLOAT] * 2, lambda g, x, w: [g.op("Less", x, g.op("Exp", w))])
    double = define(b, "double", [FLOAT] * 2, lambda g, x, w: [g.op("AddV2", x, x), w])
    y = b.op("StatelessWhile", [x, w], cond=go_on, body=double, T=[FLOAT] * 2)
    assert ops_of(optimized(b, y)) == ["Exp", "StatelessWhile"]
    for value in (0.5, 100.0):
        check_same(b, y, {x: value, w: 3.0})


def test_a_loop_variable_may_be_the_same_from_its_first_turn_on():
    b = Builder()
    x, w = image(b), image(b, name="w")
    for turns in (0, 1, 4):
        y = loop(b, [x, w], lambda g, x, w: g.op("Exp", w), turns=turns).outputs[1]
        check_same(b, y, {x: 2.0, w: 1.0})


def test_what_may_fail_or_has_state_stays_in_the_loop():
    b = Builder()
    x, w = image(b), image(b, name="w")

    def product(g, x, w):
        return g.op("AddV2", x, g.op("MatMul", w, w))  # perhaps no matrix

    y = loop(b, [x, w], product, turns=0).outputs[1]
    assert ops_of(optimized(b, y)) == ["StatelessWhile"]
    check_same(b, y, {x: 1.0, w: 1.0})

    def noise(g, x, w):
        shape = g.constant(np.zeros(0, "i4"))
        drawn = g.op("RandomUniform", shape, dtype=FLOAT, seed=1, seed2=2)
        return g.op("AddV2", x, g.op("Mul", drawn, g.op("Exp", w)))

    z = loop(b, [x, w], noise, op="While").outputs[1]
    assert ops_of(optimized(b, z)) == ["While"]


def test_variables_may_be_read_and_written_in_the_loop():
    b = Builder()
    handle = b.op("VarHandleOp", dtype=FLOAT, shape=[], name="v")
    assign = b.operation("AssignVariableOp", handle, b.constant(1.0), dtype=FLOAT)
    x, w = image(b), image(b, name="w")

    def turn(g, x, w, handle):
        added = g.operation("AssignAddVariableOp", handle, g.op("Exp", w), dtype=FLOAT)
        read = g.operation("ReadVariableOp", handle, dtype=FLOAT, after=[added])
        return g.op("AddV2", x, read.outputs[0])

    types = [*TYPES, DataType.DT_RESOURCE]
    while_ = loop(b, [x, w, handle], turn, op="While", types=types)
    while_.add_control_input(assign)
    assert ops_of(optimized(b, while_.outputs[1])) == [
        *("AssignVariableOp", "Exp", "VarHandleOp", "While")
    ]
    check_same(b, while_.outputs[1], {x: 0.0, w: 0.0})


def test_loops_in_loops_give_up_what_is_the_same_in_both():
    b = Builder()
    x, w = image(b), image(b, name="w")
    types = [INT32, FLOAT, FLOAT]
    less = define(b, "less", types, lambda g, i, x, w: [g.op("Less", i, g.constant(2))])
    inner = define(
        b,
        "inner",
        types,
        lambda g, i, x, w: [
            g.op("AddV2", i, g.constant(1)),
            g.op("AddV2", x, g.op("Exp", w)),
            w,
        ],
    )

    def turn(g, x, w):
        return g.operation(
            "StatelessWhile", [g.constant(0), x, w], cond=less, body=inner, T=types
        ).outputs[1]

    y = loop(b, [x, w], turn).outputs[1]
    assert ops_of(optimized(b, y)) == ["Exp", "StatelessWhile"]
    check_same(b, y, {x: 1.0, w: 0.0})
    with opkernel.Session(b.graph) as session:
        assert session.run(y, {x: 1.0, w: 0.0}) == 7


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
def test_a_loop_in_a_function_and_one_on_a_branch(executor):
    b = Builder()
    x, w, p = image(b), image(b, name="w"), b.placeholder("p", DataType.DT_BOOL)

    def body(g, x, w):
        return [loop(g, [x, w], lambda g, x, w: g.op("AddV2", x, g.op("Exp", w))).outputs[1]]

    function = define(b, "f", [FLOAT, FLOAT], body)
    b.graph.function_library._functions["f"].attr["_noinline"].b = True
    y = b.op("PartitionedCall", [x, w], f=function, Tout=[FLOAT])
    (z,) = b.cond(p, lambda x, w: body(b, x, w), lambda x, w: [x], [x, w])
    with opkernel.Session(b.graph, executor_type=executor) as session:
        for value in (True, False, True):
            found = session.run([y, z], {x: 1.0, w: 0.0, p: value})
            assert found == [4, 4 if value else 1]


def test_a_loop_in_its_own_body_ends():
    b = Builder()
    x = image(b)
    name = opkernel.proto.NameAttrList(name="again")
    small = define(b, "small", [FLOAT], lambda g, x: [g.op("Less", x, g.constant(0.0))])
    define(
        b,
        "again",
        [FLOAT],
        lambda g, x: [g.op("StatelessWhile", [x], cond=small, body=name, T=[FLOAT])],
    )
    check_same(b, b.op("StatelessWhile", [x], cond=small, body=name, T=[FLOAT]), {x: 1.0})
