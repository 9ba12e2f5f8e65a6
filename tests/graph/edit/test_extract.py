"""Parts of graphs as graphs of their own: what comes along, and what stands for what is fed."""

from typing import Any

import pytest
from tests.graph.function_builders import define

import opkernel
from opkernel import raw_ops
from opkernel.graph import Graph, GraphEdit, placeholder
from opkernel.types import float32


@pytest.fixture
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def test_shapes_that_are_known_come_along(graph: Graph) -> None:
    x = placeholder(float32, name="x")
    x.set_shape([None, 3])
    raw_ops.Neg(x=x, name="y")
    part = GraphEdit(graph).extract("y", "x:0")
    assert part.get_tensor_by_name("y:0").shape.as_list() == [None, 3]
    assert part.get_tensor_by_name("x:0").shape.as_list() == [None, 3]


def test_what_is_fed_gets_a_placeholder_of_its_type_and_shape(graph: Graph) -> None:
    x = placeholder(float32, [2, 3], name="x")
    middle = raw_ops.Neg(x=x, name="middle")
    raw_ops.Exp(x=middle, name="y")
    part = GraphEdit(graph).extract("y", middle)
    assert [(op.name, op.type) for op in part.get_operations()] == [
        ("middle", "Placeholder"), ("y", "Exp")
    ]  # fmt: skip
    assert part.get_tensor_by_name("middle:0").shape.as_list() == [2, 3]


def test_one_of_several_outputs_gets_a_placeholder_with_its_number(graph: Graph) -> None:
    u = raw_ops.Unique(x=[1, 1], name="u")
    raw_ops.AddV2(x=u.y, y=raw_ops.Cast(x=u.idx, DstT=opkernel.int32), name="sum")
    part = GraphEdit(graph).extract("sum", u.idx)
    assert part.get_operation_by_name("u_1").type == "Placeholder"
    assert part.get_operation_by_name("u").type == "Unique"
    both = GraphEdit(graph).extract("sum", list(u))
    assert sorted(op.name for op in both if op.type == "Placeholder") == ["u_0", "u_1"]


def test_placeholders_get_free_names(graph: Graph) -> None:
    u = raw_ops.Unique(x=[1, 1], name="u")
    other = placeholder(opkernel.int32, name="u_1")
    raw_ops.AddV2(x=u.idx, y=raw_ops.Neg(x=other), name="sum")
    part = GraphEdit(graph).extract("sum", u.idx)
    (first, second) = (op.name for op in part if op.type == "Placeholder")
    assert {first, second} == {"u_1", "u_1_1"}
    assert part.get_operation_by_name("sum").inputs[0].op.name == "u_1_1"


def test_what_a_handle_refers_to_is_known_of_the_placeholder(graph: Graph) -> None:
    v = raw_ops.VarHandleOp(dtype=float32, shape=[None, 2], name="v")
    raw_ops.ReadVariableOp(resource=v, dtype=float32, name="y")
    whole = GraphEdit(graph).extract("y")
    assert whole.get_tensor_by_name("y:0").shape.as_list() == [None, 2]


def test_control_inputs_come_along_where_they_are_needed(graph: Graph) -> None:
    x = placeholder(float32, [], name="x")
    count = raw_ops.VarHandleOp(dtype=float32, shape=[], name="v")
    raw_ops.AssignAddVariableOp(resource=count, value=1.0, name="up")
    with graph.control_dependencies([graph.get_operation_by_name("up")]):
        raw_ops.Neg(x=x, name="y")
    part = GraphEdit(graph).extract("y", x)
    assert [op.name for op in part.get_operation_by_name("y").control_inputs] == ["up"]
    assert "up" in part.by_name
    raw_ops.Exp(x=x, name="z")
    assert "up" not in GraphEdit(graph).extract("z").by_name


def test_functions_and_devices_come_along(graph: Graph) -> None:
    for name in ("Called", "Unused"):
        lines = ["n = Neg[T=float](x)"]
        graph.function_library.add_function(
            define(f"{name}(x: float) -> (y: float)", lines, y="n:y")
        )
    x = placeholder(float32, name="x")
    y = graph.create_op("Called", [x], name="y")
    graph.assigned_devices[y] = "/job:a/device:CPU:1"
    graph.assigned_devices[graph.create_op("NoOp")] = "/job:b"
    part = GraphEdit(graph).extract("y")
    assert list(part.function_library) == ["Called"]
    assert part.assigned_devices == {part.get_operation_by_name("y"): "/job:a/device:CPU:1"}
    assert sorted(graph.function_library) == ["Called", "Unused"]


def test_the_part_is_changed_without_the_graph(graph: Graph) -> None:
    x = placeholder(float32, [2], name="x")
    raw_ops.Neg(x=x, name="y")
    before = graph.as_graph_def()
    part = GraphEdit(graph).extract("y")
    part.get_operation_by_name("y")._set_attr("_mine", opkernel.proto.AttrValue(i=1))
    with part.edit() as edit:
        edit.become("y", "Exp")
    assert graph.as_graph_def() == before
    assert part.get_operation_by_name("y").type == "Exp"


def test_what_is_only_waited_for_without_an_effect_is_left_out(graph: Graph) -> None:
    """As in a frozen function: its result waits for all reads of variables, which are constants now."""
    x = placeholder(float32, [2], name="x")
    former = [raw_ops.Identity(input=[1.0], name=f"read_{index}") for index in range(3)]
    with graph.control_dependencies([one.op for one in former]):
        group = raw_ops.NoOp(name="group")
    said = graph.create_op("Print", [x, [x]], name="said")
    with graph.control_dependencies([group, said]):
        raw_ops.Neg(x=x, name="y")
    part = GraphEdit(graph).extract("y:0", "x:0")
    assert [op.name for op in part.get_operations()] == ["x", "said", "y"]
    assert {op.name for op in GraphEdit(graph).extract("group")} >= {"group", "read_0", "read_2"}


def test_groups_of_what_is_left_out_are_named_after_what_is_left(graph: Graph) -> None:
    x = placeholder(float32, name="x")
    passed = raw_ops.Identity(input=x, name="passed")
    groups = {"_class": [b"loc:@passed"]}
    graph.create_op("Neg", [passed], name="y", attrs=groups)
    graph.create_op("Exp", [passed], name="z", attrs=groups)
    part = GraphEdit(graph).extract(["y", "z"], ["passed:0"]).as_graph_def()
    assert [one.attr["_class"].list.s for one in part.node if one.op != "Placeholder"] == [
        [b"loc:@passed"], [b"loc:@passed"]
    ]  # fmt: skip
    part = opkernel.optimize_graph(graph, ["y:0", "z:0"], "x:0").as_graph_def()
    assert [list(one.attr["_class"].list.s) for one in part.node if one.op != "Placeholder"] == [
        [b"loc:@y"], [b"loc:@y"]
    ]  # fmt: skip
    with Graph().as_default():
        opkernel.import_graph_def(part, name="")
