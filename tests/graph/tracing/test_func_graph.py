"""Bodies of functions under construction: what they take from the graph around them."""

import pytest
from tests.graph.builders import REGISTRY

from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from opkernel.graph import FuncGraph, Graph, TensorSpec, placeholder
from opkernel.types import float32


def test_a_body_has_the_ops_and_the_version_of_the_graph_around_it() -> None:
    outer = Graph(REGISTRY)
    outer.graph_def_versions.producer = 1000
    body = FuncGraph(outer_graph=outer, name="f")
    assert body.create_op("Two").type == "Two"
    assert body.graph_def_versions.producer == 1000
    with pytest.raises(NotFoundError):
        FuncGraph(name="f").create_op("Two")
    assert FuncGraph(REGISTRY, name="f").create_op("Two").type == "Two"


def test_tensors_from_outside_are_captured_once() -> None:
    outer = Graph()
    with outer.as_default():
        x = placeholder(float32, [None, 2], name="scope/x")
    body = FuncGraph(outer_graph=outer, name="f")
    argument = body.add_input(TensorSpec([3]), "a")
    inside = body.as_own(x)
    assert inside.graph is body
    assert (inside.op.name, inside.shape.as_list()) == ("x", [None, 2])
    assert body.as_own(x) is inside
    assert body.as_own(inside) is inside
    assert body.inputs == [argument, inside]
    assert body.further_inputs(outer) == [x]


def test_bodies_within_bodies_capture_from_any_graph_around_them() -> None:
    outer = Graph()
    with outer.as_default():
        x = placeholder(float32)
    middle = FuncGraph(outer_graph=outer, name="middle")
    inner = FuncGraph(outer_graph=middle, name="inner")
    assert inner.as_own(x).graph is inner
    stranger = FuncGraph(outer_graph=outer, name="stranger")
    for wrong, place in (
        (stranger.add_input(TensorSpec([]), "y"), "a tensor of function 'stranger'"),
        (Graph().create_op("Placeholder", attrs={"dtype": float32}).outputs[0], "another graph"),
    ):
        with pytest.raises(
            InvalidArgumentError, match=f"cannot be used in function 'inner'.*{place}"
        ):
            inner.as_own(wrong)


def test_operations_from_outside_are_waited_for_by_the_whole_function() -> None:
    outer = Graph()
    first = outer.create_op("NoOp", name="first")
    body = FuncGraph(outer_graph=outer, name="f")
    own = body.create_op("NoOp", name="own")
    with body.control_dependencies([first, own]):
        later = body.create_op("NoOp", name="later")
    assert later.control_inputs == (own,)
    assert list(body.control_captures) == [first]


def test_a_body_that_is_closed_takes_nothing_more() -> None:
    outer = Graph()
    body = FuncGraph(outer_graph=outer, name="f")
    body.close()
    with pytest.raises(FailedPreconditionError, match="The trace of function 'f' has ended"):
        body.create_op("NoOp")


def test_names_of_arguments_are_made_valid() -> None:
    body = FuncGraph(name="f")
    names = ["x", "a b", "_under", "größe", "x"]
    made = [body.add_input(TensorSpec([]), name).op.name for name in names]
    assert made == ["x", "a_b", "arg_under", "gr__e", "x_1"]


def test_equal_functions_have_one_name() -> None:
    def negative(name: str) -> FuncGraph:
        body = FuncGraph(name=name)
        x = body.add_input(TensorSpec([2]), "x")
        body.trace(lambda: body.create_op("Neg", [x]).outputs[0])
        return body

    first, second, other = negative("f"), negative("f"), negative("g")
    name = first.function_def.signature.name
    assert name.startswith("f_")
    assert second.function_def.signature.name == name
    assert other.function_def.signature.name != name
    graph = Graph()
    for body in (first, second):
        body.add_to(graph)
    assert list(graph.function_library) == [name]
    assert first.reference.func.name == name
    assert not first.is_stateful
