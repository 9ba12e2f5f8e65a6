"""No pass loses an effect that the graph asks for, nor brings effects out of order."""

from __future__ import annotations

import numpy as np
import pytest
from tests.optimization.counting import WAYS, Counting, wait
from tests.optimization.what_passes_change import CHANGED_BY, SPECIALIZED, Changed
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.graph import (
    Graph,
    Operation,
    Tensor,
    graph_to_function_def,
    instantiate_function,
)
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.optimization import (
    GraphEditor,
    Grouping,
    optimization_passes,
    optimize_functions,
    optimize_graph,
    register_optimization,
)
from opkernel.optimization.built_in import CLUSTERING
from opkernel.proto import NameAttrList
from opkernel.types import PartialTensorShape

ALL = frozenset(one.name for one in optimization_passes()) - CLUSTERING
CASES = [(name, kind) for name, kinds in CHANGED_BY.items() for kind in kinds]


def test_there_are_graphs_for_each_pass_which_it_changes():
    assert CHANGED_BY.keys() == ALL
    unchanged = []
    for name, kind in CASES:
        b = Builder()
        y, feeds = CHANGED_BY[name][kind](b)
        if not optimize_graph(b.graph, [y], list(feeds), passes=[name]).changes:
            unchanged.append((name, kind))
    assert not unchanged


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_what_counts_is_needed_and_comes_before_what_comes_after(name: str, kind: str) -> None:
    """Be it waited for by what the pass changes, or by anything on the way to it."""
    changed = CHANGED_BY[name][kind]
    b = Builder()
    places = range(len(Counting(b, *changed(b)).places))
    for way, passes in (("control input", [name]), ("control input", ALL), ("input", ALL)):
        for place in places:
            b = Builder()
            y, feeds = changed(b)
            counting = Counting(b, y, feeds)
            counting.count_before(counting.places[place], way)
            (add,) = counting.adds
            later = b.operation("ReadVariableOp", add.inputs[0], dtype=FLOAT, after=[y.op])
            left = optimize_graph(b.graph, [later.outputs[0]], list(feeds), passes=passes)
            assert add.name in [op.name for op in left.operations], (place, way, passes)


@pytest.mark.parametrize("way", ["chain", "input"])
@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if case[0] != "layout"])
def test_steps_count_as_often_as_without_passes(name: str, kind: str, way: str) -> None:
    check_counts(CHANGED_BY[name][kind], way, {name})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SPECIALIZED)
def test_plans_for_shapes_that_repeat_count_as_often(kind: str, way: str) -> None:
    check_counts(SPECIALIZED[kind], way, {"shape_specialization", "shape_materialization"})


@pytest.mark.parametrize("kind", SPECIALIZED)
def test_these_plans_are_others(kind: str) -> None:
    b = Builder()
    y, feeds = SPECIALIZED[kind](b)
    with opkernel.Session(b.graph) as session:
        plans = [session.plan(y, list(feeds), s) for s in (None, [v.shape for v in feeds.values()])]
    assert plans[0].source != plans[1].source


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_effects_in_functions_come_before_what_comes_after(name: str, kind: str) -> None:
    """A function counts, and reads the counter once it has its result."""
    b, inner = Builder(), Builder()
    inner.graph = Graph(function_library=b.graph.function_library)
    y, feeds = CHANGED_BY[name][kind](inner)
    counting = Counting(inner, y, feeds)
    for place in counting.places:
        counting.count_before(place, "input")
    reads = [add.inputs[0] for add in counting.adds]
    later = inner.operation("ReadVariableOp", reads[0], dtype=FLOAT, after=[y.op]).outputs[0]
    function = graph_to_function_def(inner.graph, "counts", list(feeds), [y, later])
    b.graph.function_library.add_function(function)
    fed = [b.op("Placeholder", dtype=t.dtype, shape=t.shape) for t in feeds]
    named = NameAttrList(name="counts")
    call = b.operation("StatefulPartitionedCall", fed, f=named, Tout=[y.dtype, FLOAT])
    left = optimize_functions(optimize_graph(b.graph, [call.outputs[1]], fed, passes=ALL), ALL)
    body = instantiate_function(left.graph.function_library, "counts")
    before = {op.name for op in prune_and_order([body.outputs[1]], (), ())}
    assert {add.name for add in counting.adds} <= before


@pytest.mark.parametrize("way", WAYS)
def test_effects_in_the_body_of_a_while_happen_in_every_turn(way: str) -> None:
    b = Builder()
    start, _, total = counter(b)
    types = [INT32, FLOAT, FLOAT]

    def turn(g: Builder, i: Tensor, x: Tensor, w: Tensor) -> list[Tensor]:
        same = g.op("Tanh", g.op("Neg", w))
        wait(g, same.op, adding(g), way)
        return [g.op("AddV2", i, g.constant(1)), g.op("AddV2", x, same), g.op("Identity", w)]

    less = define(b, "less", types, lambda g, i, x, w: [g.op("Less", i, g.constant(3))])
    inputs = [b.constant(0), b.constant(1.0), b.constant(0.5)]
    loop = b.operation("While", inputs, cond=less, body=define(b, "turn", types, turn), T=types)
    with opkernel.Session(b.graph) as session:
        session.run(start)
        for _ in range(2):
            np.testing.assert_allclose(session.run(loop.outputs[1]), 1 - 3 * np.tanh(0.5), 1e-6)
        assert session.run(total) == 6


def check_counts(changed: Changed, way: str, some: set[str]) -> None:
    b = Builder()
    counting = Counting(b, *changed(b))
    for place in counting.places:
        counting.count_before(place, way)
    values, counts = counting.run(False)
    for passes in (some, ALL):
        found = counting.run(passes)
        np.testing.assert_allclose(found[0], values, rtol=1e-5)
        assert found[1] == counts
    assert counting.run(True, "DATAFLOW")[1] == counts


# Samples.


def adding(b: Builder) -> Operation:
    """What adds 1 to a variable."""
    v = b.op("VarHandleOp", dtype=FLOAT, shape=[], shared_name="v")
    return b.operation("AssignAddVariableOp", v, b.constant(1.0), dtype=FLOAT)


def counter(b: Builder) -> tuple[Operation, Operation, Tensor]:
    """What sets a variable to 0, what adds 1 to it, and its value."""
    add = adding(b)
    v = add.inputs[0]
    start = b.operation("AssignVariableOp", v, b.constant(0.0), dtype=FLOAT)
    return start, add, b.op("ReadVariableOp", v, dtype=FLOAT)


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
@pytest.mark.parametrize("kind", ["resource", "reference"])
def test_the_size_of_what_waits_for_an_effect(kind: str, executor: str) -> None:
    b = Builder()
    start, add, total = counter(b)
    if kind == "reference":
        total = b.op("VariableV2", dtype=FLOAT, shape=PartialTensorShape([]))
        start = b.operation("Assign", total, b.constant(0.0))
        add = b.operation("AssignAdd", total, b.constant(1.0))
    x = b.op("Placeholder", name="x", dtype=FLOAT, shape=PartialTensorShape([None]))
    shape = b.op("Shape", b.operation("Identity", x, after=[add]).outputs[0])
    bounds = [b.constant([n], "i4") for n in (0, 1, 1)]
    y = b.op("Mul", b.op("StridedSlice", shape, *bounds, shrink_axis_mask=1), b.constant(2))
    with opkernel.Session(b.graph, executor_type=executor) as session:
        session.run(start)
        assert [session.run(y, {x: np.zeros(3, "f4")}) for _ in range(10)] == [6] * 10
        assert session.run(total) == 10


def test_an_item_of_a_list_that_waits_for_an_effect() -> None:
    b = Builder()
    start, add, total = counter(b)
    shape = b.constant(np.zeros(0, "i4"))
    items = b.op("TensorListReserve", shape, b.constant(1), element_dtype=INT32)
    items = b.operation(
        "TensorListSetItem", items, b.constant(0), b.constant(7), after=[add], element_dtype=INT32
    ).outputs[0]
    y = b.op("TensorListGetItem", items, b.constant(0), shape, element_dtype=INT32)
    with opkernel.Session(b.graph) as session:
        session.run(start)
        assert [session.run(y) for _ in range(3)] == [7, 7, 7]
        assert session.run(total) == 3


def test_what_reads_a_variable_reads_it_before_what_waits_for_that() -> None:
    """Though what waits for it takes a shape alone, which is known."""
    b = Builder()
    start, add, _ = counter(b)
    read = b.op("ReadVariableOp", add.inputs[0], dtype=FLOAT, name="read")
    add._add_control_input(b.op("Shape", b.op("Neg", read)).op)
    last = b.operation("NoOp", after=[add])
    left = optimize_graph(b.graph, [read], targets=[last])
    (kept,) = [op for op in left.operations if op.name == add.name]
    assert "read" in [op.name for op in prune_and_order((), [kept], ())]
    with opkernel.Session(b.graph) as session:
        session.run(start)
        assert [session.run([read, last])[0] for _ in range(3)] == [0, 1, 2]


def test_a_read_that_nothing_needs_goes() -> None:
    b = Builder()
    _, add, total = counter(b)
    y = b.op("Neg", b.op("Rank", total))
    z = b.operation("Identity", y, after=[add]).outputs[0]
    assert "ReadVariableOp" not in [op.type for op in optimize_graph(b.graph, [z]).operations]


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
@pytest.mark.parametrize("kind", ["choice", "pack"])
def test_an_effect_on_a_branch_stays_there(kind: str, executor: str) -> None:
    """Though all that puts it there is what passes leave out."""
    b = Builder()
    start, add, total = counter(b)
    p, one = b.placeholder("p", BOOL), add.inputs[1]

    def then(x: Tensor) -> list[Tensor]:
        kinds = {
            "choice": lambda: b.op("SelectV2", yes, one, b.op("Neg", x)),
            "pack": lambda: b.op(
                "StridedSlice", b.op("Pack", [one, x]), *bounds, shrink_axis_mask=1
            ),
        }
        add.update_input(1, kinds[kind]())
        return [b.operation("Identity", x, after=[add]).outputs[0]]

    yes, bounds = b.constant(True), [b.constant([n], "i4") for n in (0, 1, 1)]
    (y,) = b.cond(p, then, lambda x: [b.op("Neg", x)], [b.constant(3.0)])
    with opkernel.Session(b.graph, executor_type=executor) as session:
        session.run(start)
        assert [session.run(y, {p: n % 3 == 0}) for n in range(6)] == [3, -3, -3] * 2
        assert session.run(total) == 2


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
@pytest.mark.parametrize("where", ["behind", "in"])
def test_effects_in_a_loop_of_which_a_result_is_not_needed(where: str, executor: str) -> None:
    """Behind the loop, or only in it, where nothing that could wait for the effect stays."""
    b = Builder()
    start, _, total = counter(b)

    def body(i: Tensor, x: Tensor, axis: Tensor) -> list[Tensor]:
        add = adding(b)
        add.inputs[0].op.add_control_inputs([i.op])
        same = b.operation("Neg", b.op("Neg", axis), after=[add]).outputs[0]
        x = b.op("Split", axis, x, num_split=1) if where == "in" else x
        return [b.op("AddV2", i, b.constant(1)), b.op("Neg", x), same]

    first = [b.constant(0), b.constant(np.ones(4, "f4")), b.constant(0)]
    _, x, axis = b.while_loop(lambda i, *_: b.op("Less", i, b.constant(3)), body, first)
    y = x if where == "in" else b.op("Split", axis, x, num_split=1)
    with opkernel.Session(b.graph, executor_type=executor) as session:
        session.run(start)
        assert [session.run(y).tolist() for _ in range(2)] == [[-1] * 4] * 2
        assert session.run(total) == 6


def test_a_pass_may_drop_an_effect() -> None:
    @register_optimization(Grouping.POST_PARTITIONING, 99, on_request=True)
    def silent(editor: GraphEditor) -> None:
        for op in editor.operations():
            editor.drop(c for c in op.control_inputs if c.type == "AssignAddVariableOp")
            op.set_control_inputs([])

    b = Builder()
    _, add, _ = counter(b)
    x = b.placeholder("x")
    y = b.operation("Neg", x, after=[add]).outputs[0]
    try:
        left = optimize_graph(b.graph, [y], [x], passes=["silent"]).operations
    finally:
        optimization_passes().unregister("silent")
    assert [op.type for op in left] == ["Placeholder", "Neg"]


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
def test_what_never_runs_is_not_waited_for(executor: str) -> None:
    """A read on a branch that is never taken stays where it is asked for, and kills nothing behind it."""
    b = Builder()
    start, add, total = counter(b)
    x = b.placeholder("x")
    reads: list[Operation] = []

    def reading(x: Tensor) -> list[Tensor]:
        waits = b.op("Identity", x).op
        reads.append(b.operation("ReadVariableOp", add.inputs[0], dtype=FLOAT, after=[waits]))
        return [b.operation("Identity", x, after=reads).outputs[0]]

    merge = b.cond(b.constant(False), reading, lambda x: [b.op("Neg", x)], [x])[0]
    after = b.operation("AssignAddVariableOp", add.inputs[0], merge, dtype=FLOAT)
    y = b.operation("Identity", merge, after=[after]).outputs[0]
    with opkernel.Session(b.graph, executor_type=executor) as session:
        session.run(start)
        assert session.run([y, reads[0]], {x: 2.0}) == [-2, None]
        assert session.run(total) == -2
