"""Further variables of a While: its types, and the shapes that it states."""

from tests.graph.function_builders import define, graph_of, library_of

from opkernel.graph import Graph, Operation
from opkernel.graph.edit.loop_variables import add_loop_variables, further_output_shapes
from opkernel.opdef import attr_from_python
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import PartialTensorShape, float32, int32

ONE = define("One(x: float) -> (y: float)", y="x")
LARGER = {"body": AttrValue(func=NameAttrList(name="Larger"))}


def loop(**shapes: list[list[int | None]]) -> Operation:
    graph = graph_of(
        library_of(ONE),
        "x = Placeholder[dtype=float]()",
        "n = Placeholder[dtype=int32]()",
        "v = VariableV2[dtype=float]()",
        "loop = While[T={float}; cond=One; body=One](x)",
    )
    op = graph.get_operation_by_name("loop")
    for attr, value in shapes.items():
        op.set_attrs({attr: attr_from_python(value, "list(shape)")}, op.inputs)
    return op


def add(op: Operation, *names: str) -> None:
    graph: Graph = op.graph
    tensors = [graph.get_tensor_by_name(f"{name}:0") for name in names]
    add_loop_variables(op, tensors, [PartialTensorShape([None, 2])] * len(names), LARGER)


def stated(op: Operation, attr: str) -> list[list[int | None] | None]:
    shapes = map(PartialTensorShape.from_proto, op.attr[attr].list.shape)
    return [None if one.rank is None else one.as_list() for one in shapes]


def test_variables_are_added_behind_the_others() -> None:
    op = loop()
    add(op, "n", "v")
    assert [tensor.name for tensor in op.inputs] == ["x:0", "n:0", "v:0"]
    assert op.get_attr("T") == [float32, int32, float32]
    assert [tensor.dtype for tensor in op.outputs] == [float32, int32, float32]
    assert (op.attr["body"].func.name, op.attr["cond"].func.name) == ("Larger", "One")
    assert op.graph.get_tensor_by_name("n:0").consumers() == [op]


def test_a_loop_that_states_no_shapes_states_none_of_the_new_ones() -> None:
    op = loop()
    add(op, "n")
    assert stated(op, "output_shapes") == []
    assert "_output_shapes" not in op.attr


def test_a_loop_that_states_shapes_states_those_of_the_new_ones() -> None:
    op = loop(output_shapes=[[3]], _output_shapes=[[4]])
    add(op, "n", "v")
    assert stated(op, "output_shapes") == [[3], [None, 2], [None, 2]]
    assert stated(op, "_output_shapes") == [[4], None, None]


def test_the_shapes_of_a_node_stay_as_they_are() -> None:
    op = loop(_output_shapes=[[4]])
    further = further_output_shapes(op, 2)
    assert [one.unknown_rank for one in further["_output_shapes"].list.shape] == [False, True, True]
    assert stated(op, "_output_shapes") == [[4]]
    assert further_output_shapes(loop(), 2) == {}
