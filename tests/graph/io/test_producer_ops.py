"""The ops that a graph uses, and attrs that only its producer knew: TensorFlow's graph_def_util."""

from tests.graph.builders import REGISTRY
from tests.graph.function_builders import define, node

from opkernel.graph import ops_used_by_graph, remove_new_default_attrs, stripped_op_list_for_graph
from opkernel.opdef import OpDefBuilder, OpRegistry
from opkernel.proto import GraphDef, OpList


def graph_def() -> GraphDef:
    made = GraphDef(
        node=[
            node("a = Two()"),
            node("b = Identity[T=float](a)"),
            node("c = Identity[T=float](b)"),
            node("d = F(c)"),
            node("e = Unknown(c)"),
        ]
    )
    made.library.function.append(
        define("F(x: float) -> (y: float)", ["n = AddV2[T=float](x, x)", "m = F(n)"], y="n:z")
    )
    return made


def test_nodes_are_counted_by_op_and_calls_are_not() -> None:
    assert ops_used_by_graph(graph_def()) == {"Two": 1, "Identity": 2, "AddV2": 1, "Unknown": 1}


def test_registered_ops_are_listed_by_name_without_documentation() -> None:
    registry = OpRegistry()
    for name in ("Two", "Identity", "Other"):
        registry.register(OpDefBuilder(name).attr("T: type").doc(f"Does it.\n\nT: {name}."))
    ops = stripped_op_list_for_graph(graph_def(), registry.look_up)
    assert [op.name for op in ops.op] == ["Identity", "Two"]
    assert not any(op.summary or op.attr[0].description for op in ops.op)
    assert registry.look_up_op_def("Two").summary == "Does it."
    assert [op.name for op in stripped_op_list_for_graph(graph_def(), REGISTRY.look_up).op] == [
        "AddV2", "Identity", "Two"
    ]  # fmt: skip


def test_attrs_that_only_the_producer_knows_go_where_they_have_its_default() -> None:
    producer = OpList(
        op=[
            OpDefBuilder("Identity").attr("T: type").attr("new: int = 3").finalize().op_def,
            OpDefBuilder("NoOp").attr("must: int").finalize().op_def,
            OpDefBuilder("Unknown").attr("new: int = 3").finalize().op_def,
        ]
    )
    made = GraphDef(
        node=[
            node("a = Identity[T=float; new=3](x)"),
            node("b = Identity[T=float; new=4](x)"),
            node("c = NoOp[must=3; _own=3; other=3]()"),
            node("d = Unknown[new=3]()"),
            node("e = Two[new=3]()"),
        ]
    )
    made.library.function.append(
        define("F(x: float) -> (y: float)", ["n = Identity[T=float; new=3](x)"], y="n:output")
    )
    producer.op[1].attr.add(name="_own", type="int").default_value.i = 3
    assert remove_new_default_attrs(made, producer, REGISTRY.look_up) == {("Identity", "new")}
    left = [sorted(one.attr) for one in made.node]
    assert left == [["T"], ["T", "new"], ["_own", "must", "other"], ["new"], ["new"]]
    assert sorted(made.library.function[0].node_def[0].attr) == ["T"]


def test_attrs_that_are_known_here_stay_whatever_the_producer_took_for_them() -> None:
    producer = OpList(op=[OpDefBuilder("Fill").attr("Index: type = DT_INT64").finalize().op_def])
    made = GraphDef(node=[node("a = Fill[Index=int64](x, x)")])
    assert remove_new_default_attrs(made, producer, REGISTRY.look_up) == set()
    assert "Index" in made.node[0].attr
