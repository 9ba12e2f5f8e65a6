"""Which control flow of TensorFlow 1 plans have a form for, and what they say of the rest."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.plan.test_control_flow import constant, define, op

import opkernel
from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.graph import Tensor
from opkernel.runtime import CompiledPlan
from opkernel.runtime.plan import tree
from opkernel.runtime.plan.functionalization import _Ready

Made = tuple[Any, dict[str, Any]]


def nested(depth: int) -> Made:
    """`x` through so many conditionals, one in the other."""
    b = Builder()
    feeds: dict[str, Any] = {"x:0": 1.0}

    def at(level: int, x: Tensor) -> Tensor:
        if level == depth:
            return b.op("Neg", x)
        p = b.op("Placeholder", name=f"p{level}", dtype=BOOL)
        feeds[f"p{level}:0"] = True
        return b.cond(p, lambda x: [at(level + 1, x)], lambda x: [x], [x])[0]

    return (b, at(0, b.placeholder("x"))), feeds


def test_branches_are_nested_a_hundred_deep_and_no_deeper() -> None:
    for depth, is_raised in ((100, True), (101, False)):
        (b, y), feeds = nested(depth)
        with opkernel.Session(b.graph, executor_type="COMPILED_PLAN", optimize=False) as session:
            if is_raised:
                assert session.run(y, feeds) == -1
            else:
                with pytest.raises(UnimplementedError, match="branches are nested too deeply"):
                    session.run(y, feeds)
        if not is_raised:
            with opkernel.Session(b.graph, optimize=False) as session:
                assert session.run(y, feeds) == -1


def loop(b: Builder, body: Callable[..., Any], *invariants: Tensor) -> list[Tensor]:
    return b.while_loop(
        lambda i, x, *_: b.op("Less", i, b.constant(3)),
        lambda i, x, *rest: [b.op("AddV2", i, b.constant(1)), body(i, x, *rest)],
        [b.constant(0), b.placeholder("x")],
        invariants,
    )


def test_a_loop_under_a_condition_runs_where_it_holds() -> None:
    b = Builder()
    p = b.placeholder("p", BOOL)
    off, on = b.operation("Switch", b.placeholder("x"), p).outputs
    results = b.while_loop(
        lambda i, x: b.op("Less", i, b.constant(3)),
        lambda i, x: [b.op("AddV2", i, b.constant(1)), b.op("AddV2", x, x)],
        [b.constant(0), on],
    )
    merged = b.operation("Merge", [b.op("Neg", off), results[1]])
    for p_value, expected in ((True, [16.0, 1]), (False, [-2.0, 0])):
        assert b.run([*merged.outputs], {"p:0": p_value, "x:0": 2.0}) == expected


def test_both_results_of_a_merge_and_of_none() -> None:
    """A Merge of branches of two predicates: the first that is alive; dead where none is."""
    b = Builder()
    p, q, x = b.placeholder("p", BOOL), b.placeholder("q", BOOL), b.placeholder("x")
    on_p = b.op("Neg", b.operation("Switch", x, p).outputs[1])
    on_q = b.op("Square", b.operation("Switch", x, q).outputs[1])
    merged = b.operation("Merge", [on_p, on_q])
    after = b.op("AddV2", merged.outputs[0], x)
    for p_value, q_value in ((True, False), (False, True), (False, False)):
        feeds = {"p:0": p_value, "q:0": q_value, "x:0": 3.0}
        if not p_value and not q_value:
            for executor in ("COMPILED_PLAN", "DATAFLOW"):
                with pytest.raises(InvalidArgumentError, match="was not valid"):
                    b.run(after, feeds, executor)
            continue
        expected = [-3.0, 0, 0.0] if p_value else [9.0, 1, 12.0]
        found = b.run([*merged.outputs, after], feeds, "COMPILED_PLAN")
        assert found == expected
        assert np.asarray(found[1]).dtype == np.int32


def test_control_edges_hold_an_operation_to_its_branch() -> None:
    b = Builder()
    p, x = b.placeholder("p", BOOL), b.placeholder("x")
    _, on = b.operation("Switch", x, p).outputs
    held = b.operation("Neg", x, after=[b.op("Identity", on).op]).outputs[0]
    trigger = b.operation("ControlTrigger", after=[held.op])
    always = b.operation("Square", x, after=[trigger]).outputs[0]
    for executor in ("COMPILED_PLAN", "DATAFLOW"):
        assert b.run([held, always], {"p:0": True, "x:0": 3.0}, executor) == [-3, 9]
        assert b.run(always, {"p:0": False, "x:0": 3.0}, executor) == 9
        with pytest.raises(InvalidArgumentError, match="was not valid"):
            b.run(held, {"p:0": False, "x:0": 3.0}, executor)


def a_fetch_inside(b: Builder) -> Made:
    loop(b, lambda i, x: b.op("AddV2", x, x, name="inside"))
    return b.graph.get_tensor_by_name("inside:0"), {"x:0": 1.0}


def a_fetch_of_an_enter(b: Builder) -> Made:
    loop(b, lambda i, x: b.op("AddV2", x, x))
    enter = next(op for op in b.graph.get_operations() if op.type == "Enter")
    return enter.outputs[0], {"x:0": 1.0}


def a_part_of_the_turns(b: Builder) -> Made:
    """A value that is computed in the first turns only."""
    p = b.placeholder("p", BOOL)

    def body(i: Tensor, x: Tensor, p: Tensor) -> Tensor:
        return b.op("AddV2", b.operation("Switch", x, p).outputs[1], x)

    return loop(b, body, p)[1], {"x:0": 1.0, "p:0": True}


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (a_fetch_inside, "a tensor inside a loop is fetched"),
        (a_fetch_of_an_enter, "a tensor inside a loop is fetched"),
        (a_part_of_the_turns, "it does not run in every turn, or runs in one turn too many"),
    ],
)
def test_what_has_no_form(make: Callable[[Builder], Made], reason: str) -> None:
    b = Builder()
    y, feeds = make(b)
    with (
        pytest.raises(UnimplementedError, match=f"the dataflow executor does: {reason}") as refusal,
        opkernel.Session(b.graph, executor_type="COMPILED_PLAN", optimize=False) as session,
    ):
        session.run(y, feeds)
    assert refusal.value.node
    outcomes = []
    for executor in ("", "DATAFLOW"):
        try:
            outcomes.append(b.run(y, feeds, executor, optimize=False))
        except OpError as error:
            outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]


def test_a_result_of_a_loop_may_be_fetched_and_a_fed_one_is_not_computed() -> None:
    b = Builder()
    results = loop(b, lambda i, x: b.op("AddV2", x, x))
    after = b.op("Neg", results[1])
    assert b.run([*results, after], {"x:0": 1.0}, "COMPILED_PLAN") == [3, 8, -8]
    assert b.run([results[1], after], {results[1].name: 5.0}, "COMPILED_PLAN") == [5, -5]


def test_a_variable_that_keeps_its_value_is_no_variable() -> None:
    b = Builder()
    w = b.placeholder("w")
    results = b.while_loop(
        lambda i, x, w: b.op("Less", i, b.constant(3)),
        lambda i, x, w: [b.op("AddV2", i, b.constant(1)), b.op("AddV2", x, w), w],
        [b.constant(0), b.placeholder("x"), w],
    )
    with opkernel.Session(b.graph, executor_type="COMPILED_PLAN", optimize=False) as session:
        plan = session.plan(results, ["x:0", "w:0"])
        assert isinstance(plan, CompiledPlan)
        (found,) = [item for item in plan.tree.block if isinstance(item, tree.While)]
        assert len(found.variables) == 2
        assert session.run(results, {"x:0": 1.0, "w:0": 2.0}) == [3, 7, 2]


def test_items_of_one_branch_stand_together() -> None:
    """The context last taken from comes first, then one of its predicates, then the lowest number."""
    p, q = ((0, 1),), ((1, 1),)
    ready: _Ready[str] = _Ready()
    for number, context, item in [
        (0, p, "p0"),
        (1, q, "q1"),
        (2, p, "p2"),
        (3, ((0, 0),), "not p3"),
        (4, (), "always4"),
        (6, q, "q6"),
        (5, q, "q5"),
    ]:
        ready.put(number, context, item)
    taken = [ready.take() for _ in range(3)]
    assert taken == ["always4", "p0", "p2"]
    ready.put(0, (), "always0")
    assert [ready.take() for _ in range(6)] == ["not p3", "always0", "q1", "q5", "q6", None]


@pytest.mark.parametrize("name", ["function", "PartitionedCall"])
def test_functions_by_name(name: str) -> None:
    """Without the pass that inlines them, too; the plan tells of the function."""
    b = Builder()
    halve = define(
        b.graph, "function", [FLOAT], lambda g, x: [op(g, "Mul", x, constant(g, np.float32(0.5)))]
    )
    x = b.placeholder("x")
    attrs: dict[str, Any] = {} if name == "function" else {"f": halve, "Tout": [FLOAT]}
    y = b.op(name, x if name == "function" else [x], **attrs)
    for executor in ("COMPILED_PLAN", "DATAFLOW", ""):
        with opkernel.Session(b.graph, executor_type=executor, optimize=False) as session:
            assert session.run(y, {"x:0": 5.0}) == 2.5
    with opkernel.Session(b.graph, executor_type="COMPILED_PLAN", optimize=False) as session:
        plan = session.plan(y, ["x:0"])
        assert isinstance(plan, CompiledPlan)
    (call,) = [one for one in tree.statements(plan.tree.block) if type(one) is tree.FunctionCall]
    assert plan.tree.globals[call.function].kind == "function"
    assert repr(plan).startswith("<opkernel.CompiledPlan of 1 statements: 1 fed, 1 fetched")


def test_the_node_of_a_line() -> None:
    b = Builder()
    y = b.op("MatMul", b.placeholder("x"), b.placeholder("w"), name="product")
    with opkernel.Session(b.graph, executor_type="COMPILED_PLAN", optimize=False) as session:
        plan = session.plan(y, ["x:0", "w:0"])
    assert isinstance(plan, CompiledPlan)
    file = plan.run.__code__.co_filename
    assert plan.node_at(file, 1) is None
    found = plan.node_at(file, 2)
    assert found is not None
    assert (found[0].name, [*found[1]]) == ("product", ["x", "w"])
    assert plan.node_at(file, 3) is None


def test_an_index_decides_between_branches_in_a_loop() -> None:
    b = Builder()
    k = b.placeholder("k", INT32)

    def body(i: Tensor, x: Tensor, k: Tensor) -> Tensor:
        outputs = b.operation("_SwitchN", x, k, name="switch", num_outs=3, T=FLOAT).outputs
        return b.op("Merge", [b.op("Neg", outputs[0]), b.op("AddV2", outputs[1], x), outputs[2]])

    y = loop(b, body, k)[1]
    for index, expected in ((0, -2.0), (1, 16.0), (2, 2.0), (5, 2.0), (-1, 2.0)):
        assert b.run(y, {"k:0": index, "x:0": 2.0}) == expected
