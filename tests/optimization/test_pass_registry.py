"""The registry of passes: TensorFlow's optimization_registry_test, and the switches by name."""

import pytest
from tests.optimization.optimizing import optimized
from tests.runtime.dataflow.loop_builders import FLOAT, Builder

import opkernel
from opkernel.errors import AlreadyExistsError, NotFoundError
from opkernel.graph import Graph, graph_to_function_def
from opkernel.optimization import (
    GraphEditor,
    Grouping,
    OptimizationPassRegistry,
    optimization_passes,
    register_optimization,
)

NAMES = {
    "arithmetic",
    "batch_norm_folding",
    "common_subexpressions",
    "constant_folding",
    "control_edges",
    "dead_branches",
    "debug_stripper",
    "constants_into_loops",
    "function_inlining",
    "hoist_unary_over_split",
    "fusion",
    "fusion_onednn",
    "identities",
    "input_folding",
    "layout",
    "loop_invariants",
    "shape_materialization",
    "shape_specialization",
    "transposes",
    "while_invariants",
}


def editor():
    return GraphEditor(Graph(), [])


def test_a_pass_runs_once_in_its_grouping_and_phases_ascend():
    ran = []

    def one(editor):
        """The first."""
        ran.append("one")

    def two(editor):
        ran.append("two")

    def other(editor):
        ran.append("other")

    registry = OptimizationPassRegistry()
    registry.register(Grouping.POST_PLACEMENT, 20, two)
    registry.register(Grouping.POST_PLACEMENT, 3, one)
    registry.register(Grouping.PRE_PLACEMENT, 1, other)
    registry.run_grouping(Grouping.POST_PLACEMENT, editor())
    assert ran == ["one", "two"]
    registry.run_grouping(Grouping.PRE_PLACEMENT, editor())
    registry.run_grouping(Grouping.POST_PARTITIONING, editor())
    assert ran == ["one", "two", "other"]
    registry.run_grouping(Grouping.POST_PLACEMENT, editor(), {"two"})
    assert ran[3:] == ["two"]
    assert [(one.name, one.phase, one.doc) for one in registry] == [
        ("other", 1, ""),
        ("one", 3, "The first."),
        ("two", 20, ""),
    ]


def test_a_pass_may_add_functions_to_the_library():
    body = Builder()
    x = body.placeholder("x")
    twice = graph_to_function_def(body.graph, "twice", [x], [body.op("AddV2", x, x)])
    registry = OptimizationPassRegistry()

    def adds(editor):
        editor.graph.function_library.add_function(twice)

    registry.register(Grouping.PRE_PLACEMENT, 1, adds)
    edited = editor()
    registry.run_grouping(Grouping.PRE_PLACEMENT, edited)
    assert list(edited.graph.function_library) == ["twice"]


def test_a_pass_on_request_runs_where_it_is_named_alone():
    ran = []

    def seldom(editor):
        ran.append("seldom")

    registry = OptimizationPassRegistry()
    registry.register(Grouping.PRE_PLACEMENT, 1, seldom, on_request=True)
    registry.run_grouping(Grouping.PRE_PLACEMENT, editor())
    registry.run_grouping(Grouping.PRE_PLACEMENT, editor(), {"others"})
    assert not ran
    registry.run_grouping(Grouping.PRE_PLACEMENT, editor(), {"seldom"})
    assert ran == ["seldom"]


def test_a_pass_about_certain_ops_runs_where_one_of_them_is_needed():
    ran = []

    def about_negatives(editor):
        ran.append("ran")

    registry = OptimizationPassRegistry()
    registry.register(Grouping.PRE_PLACEMENT, 1, about_negatives, ops=["Neg", "Abs"])
    b = Builder()
    x = b.placeholder("x")
    kept, left = b.op("Exp", x), b.op("Neg", x)
    registry.run_grouping(Grouping.PRE_PLACEMENT, GraphEditor(b.graph, [kept.op]))
    assert not ran
    registry.run_grouping(Grouping.PRE_PLACEMENT, GraphEditor(b.graph, [left.op]))
    assert ran == ["ran"]


def test_names_are_unique_and_passes_can_be_taken_out():
    registry = OptimizationPassRegistry()

    def one(editor):
        pass

    registry.register(Grouping.PRE_PLACEMENT, 1, one)
    with pytest.raises(AlreadyExistsError, match="'one'"):
        registry.register(Grouping.POST_PLACEMENT, 2, one)
    registry.unregister("one")
    assert list(registry) == []
    with pytest.raises(NotFoundError, match="'one'"):
        registry.unregister("one")


def test_the_passes_are_there_with_a_sentence_each():
    passes = list(optimization_passes())
    assert {one.name for one in passes} >= NAMES
    assert all(one.doc for one in passes)
    assert [one.grouping for one in passes] == sorted(one.grouping for one in passes)


def test_a_pass_of_the_users_runs_in_sessions():
    @register_optimization(Grouping.POST_REWRITE_FOR_EXEC, 1)
    def adds_instead(editor):
        """Turns Sub into AddV2."""
        for op in editor.operations():
            if op.type == "Sub":
                editor.become(op, "AddV2", op.inputs, {"T": FLOAT})
                editor.note(op, "adds")

    try:
        b = Builder()
        x = b.placeholder("x")
        y = b.op("Sub", x, x, name="y")
        assert opkernel.Session(b.graph).run(y, {x: 2.0}) == 4
        assert opkernel.Session(b.graph, optimize=False).run(y, {x: 2.0}) == 0
        (change,) = optimized(b, y, "adds_instead").changes
        assert change == ("adds_instead", "y", "adds", ())
    finally:
        optimization_passes().unregister("adds_instead")


def test_a_name_of_no_pass_is_refused():
    b = Builder()
    x = b.placeholder("x")
    with pytest.raises(
        NotFoundError,
        match=r"no optimization pass 'folding'; perhaps you mean .*constant_folding.*; there are aggregates",
    ):
        optimized(b, b.op("Neg", x), "folding")
    with pytest.raises(NotFoundError, match="'folding'"):
        opkernel.Session(b.graph, optimize={"folding"}).run("Neg:0", {x: 1.0})
