"""Branches that are never taken go, be they functions or made of Switch and Merge."""

import numpy as np
import pytest
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.errors import InvalidArgumentError
from opkernel.types import PartialTensorShape


def image(b, *dims, name="x"):
    return b.op("Placeholder", name=name, dtype=FLOAT, shape=PartialTensorShape(dims))


def branches(b, predicate, x):
    """x * 2 or exp(-x)."""
    return b.cond(
        predicate,
        lambda x: [b.op("Mul", x, b.constant(2.0))],
        lambda x: [b.op("Exp", b.op("Neg", x))],
        [x],
    )[0]


@pytest.mark.parametrize(("value", "ops"), [(True, ["Mul"]), (False, ["Exp", "Neg"])])
def test_a_constant_predicate_leaves_one_branch(value, ops):
    b = Builder()
    x = b.placeholder("x")
    merged = branches(b, b.constant(value), x)
    y = b.op("Tanh", merged)
    assert ops_of(optimized(b, y)) == sorted([*ops, "Tanh"])
    index = merged.op.outputs[1]
    check_same(b, [y, index, merged], {x: 0.5}, "dead_branches")
    check_same(b, [y, index, merged], {x: 0.5})
    with opkernel.Session(b.graph) as session:
        assert session.run(index, {x: 0.5}) == (1 if value else 0)


def test_predicates_may_follow_from_constants_and_shapes():
    b = Builder()
    x = image(b, 3)
    is_small = b.op("Less", b.op("Size", x), b.constant(5))
    y = b.op("Tanh", branches(b, is_small, x))
    assert ops_of(optimized(b, y)) == ["Mul", "Tanh"]
    twice = define(b, "twice", [FLOAT], lambda g, x: [g.op("AddV2", x, x)])
    minus = define(b, "minus", [FLOAT], lambda g, x: [g.op("Neg", x)])
    z = b.op("StatelessIf", is_small, [x], then_branch=twice, else_branch=minus, Tout=[FLOAT])
    z = b.op("Tanh", z)
    assert ops_of(optimized(b, z)) == ["AddV2", "Tanh"]
    check_same(b, [y, z], {x: np.ones(3, "f4")})


def test_effects_of_dead_branches_do_not_happen_and_those_of_the_other_do():
    for value, expected in ((True, 11), (False, 101)):
        b, y = branches_with_effects(value)
        check_same(b, y, {})
        with opkernel.Session(b.graph) as session:
            assert session.run(y) == expected


def branches_with_effects(value):
    """A variable that is 1, to which either branch adds."""
    b = Builder()
    handle = b.op("VarHandleOp", dtype=FLOAT, shape=[], name="v")
    start = b.operation("AssignVariableOp", handle, b.constant(1.0), dtype=FLOAT)
    predicate = b.constant(value)
    predicate.op.add_control_input(start)

    def add(number):
        def branch(handle):
            added = b.operation("AssignAddVariableOp", handle, b.constant(number), dtype=FLOAT)
            return [b.operation("ReadVariableOp", handle, dtype=FLOAT, after=[added]).outputs[0]]

        return branch

    return b, b.cond(predicate, add(10.0), add(100.0), [handle])[0]


def test_a_branch_within_a_branch_and_within_a_loop():
    b = Builder()
    x, p = b.placeholder("x"), b.placeholder("p", opkernel.types.DataType.DT_BOOL)
    (y,) = b.cond(p, lambda x: [branches(b, b.constant(True), x)], lambda x: [b.op("Neg", x)], [x])
    assert "Exp" not in ops_of(optimized(b, y))
    (inverse,) = b.cond(
        b.constant(False), lambda x: [branches(b, p, x)], lambda x: [b.op("Neg", x)], [x]
    )
    assert ops_of(optimized(b, b.op("Tanh", inverse))) == ["Neg", "Tanh"]
    _, z = b.while_loop(
        lambda i, x: b.op("Less", i, b.constant(3)),
        lambda i, x: [b.op("AddV2", i, b.constant(1)), branches(b, b.constant(True), x)],
        [b.constant(0), x],
    )
    assert "Exp" not in ops_of(optimized(b, z))
    for value in (True, False):
        check_same(b, [y, inverse, z], {x: 0.5, p: value}, "dead_branches")
        check_same(b, [y, inverse, z], {x: 0.5, p: value})
    with opkernel.Session(b.graph) as session:
        assert session.run(z, {x: 0.5}) == 4


def test_a_choice_may_enter_a_loop():
    b = Builder()
    x = b.placeholder("x")
    _, y = b.while_loop(
        lambda i, x, yes: b.op("Less", i, b.constant(3)),
        lambda i, x, yes: [b.op("AddV2", i, b.constant(1)), branches(b, yes, x)],
        [b.constant(0), x],
        [b.constant(True)],
    )
    assert "Exp" not in ops_of(optimized(b, y))
    for passes in (["dead_branches"], []):
        check_same(b, y, {x: 0.5}, *passes)
    with opkernel.Session(b.graph, executor_type="DATAFLOW") as session:
        assert session.run(y, {x: 0.5}) == 4


def test_a_loop_on_a_dead_branch_goes():
    b = Builder()
    x = b.placeholder("x")

    def repeated(x):
        return [
            b.while_loop(
                lambda i, x: b.op("Less", i, b.constant(3)),
                lambda i, x: [b.op("AddV2", i, b.constant(1)), b.op("Exp", x)],
                [b.constant(0), x],
            )[1]
        ]

    (y,) = b.cond(b.constant(False), repeated, lambda x: [b.op("Neg", x)], [x])
    y = b.op("Tanh", y)
    assert ops_of(optimized(b, y)) == ["Neg", "Tanh"]
    check_same(b, y, {x: 0.5})


def test_what_is_dead_cannot_be_fetched_and_a_fed_choice_is_none():
    b = Builder()
    x, p = b.placeholder("x"), b.constant(True, name="p")
    switch = b.operation("Switch", x, p)
    dead, alive = (b.op("Neg", output) for output in switch.outputs)
    y = b.op("Merge", [dead, alive])
    with opkernel.Session(b.graph) as session:
        assert session.run(alive, {x: 1.0}) == -1
        for optimize in (True, False):
            with (
                opkernel.Session(b.graph, optimize=optimize) as other,
                pytest.raises(InvalidArgumentError, match="Neg"),
            ):
                other.run(dead, {x: 1.0})
        assert session.run([y, y.op.outputs[1]], {x: 1.0}) == [-1, 1]
        assert session.run([y, y.op.outputs[1]], {x: 1.0, p: False}) == [-1, 0]


def test_of_several_outputs_the_last_stands_for_all_out_of_range():
    b = Builder()
    x = b.placeholder("x")
    for index, side in ((0, 0), (1, 1), (2, 2), (3, 2), (-1, 2)):
        switch = b.operation("_SwitchN", x, b.constant(index), num_outs=3, name="switch")
        scaled = [
            b.op("Mul", output, b.op("Identity", b.constant(factor)))
            for output, factor in zip(switch.outputs, (2.0, 3.0, 5.0), strict=True)
        ]
        y = b.op("Merge", scaled)
        assert ops_of(optimized(b, b.op("Neg", y), "dead_branches")).count("Mul") == 1
        check_same(b, y, {x: 1.0})
        with opkernel.Session(b.graph) as session:
            assert session.run(y, {x: 1.0}) == (2, 3, 5)[side]


def test_merges_with_other_inputs_alive_stay():
    b = Builder()
    x, p = b.placeholder("x"), b.placeholder("p", opkernel.types.DataType.DT_BOOL)
    dead = b.operation("Switch", x, b.constant(True)).outputs[0]
    either = b.operation("Switch", x, p).outputs
    y = b.op("Merge", [dead, *(b.op("Mul", side, side) for side in either)], name="y")
    assert "Merge" in ops_of(optimized(b, y))
    for value, index in ((False, 1), (True, 2)):
        with opkernel.Session(b.graph) as session:
            assert session.run([y, "y:1"], {x: 3.0, p: value}) == [9, index]
    assert b.constant(1).dtype == INT32


@pytest.mark.parametrize("value", [True, False])
def test_a_merge_that_waits_for_both_branches_waits_for_the_one_that_is_taken(value):
    b = Builder()
    x, p = b.placeholder("x"), b.placeholder("p", BOOL)
    switches = [b.operation("Switch", x, b.constant(value)), b.operation("Switch", x, p)]
    ends = []
    for switch in switches:
        dead, alive = switch.outputs
        merge = b.operation("Merge", [b.op("Neg", dead), b.op("Exp", alive)])
        for merged in merge.inputs:
            merge.add_control_input(b.operation("NoOp", after=[merged.op]))
        ends.append(merge.outputs[0])
    uncertain = b.operation("NoOp", after=[ends[1].op.inputs[0].op])
    known = b.operation("Merge", [switches[0].outputs[0], switches[0].outputs[1]])
    known.add_control_input(uncertain)
    ends.append(known.outputs[0])
    check_same(b, ends, {x: 1.0, p: True}, "dead_branches")
    check_same(b, ends, {x: 1.0, p: False})
    kept = [op.type for op in optimized(b, ends, "dead_branches").operations]
    assert kept.count("Merge") == 2
