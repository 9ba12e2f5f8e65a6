"""What Python shows for graphs and what belongs to them: short, and harmless whatever names are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graph.function_builders import define, node
from tests.hostile_names import HOSTILE_TEXT

from opkernel import Graph, Session, float32, import_graph_def, load_graph, raw_ops
from opkernel.opdef import global_op_registry, parse_attr_value
from opkernel.proto import GraphDef, OpDef

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits" / "digits.pb"


@pytest.fixture(scope="module")
def digits() -> Graph:
    return load_graph(DIGITS)


def test_graphs(digits: Graph) -> None:
    assert repr(digits) == "<opkernel.Graph of 28 operations>"
    graph = Graph()
    with graph.as_default():
        raw_ops.NoOp()
    graph.function_library.add_function(
        define("F(x: float) -> (y: float)", ["n = Neg[T=float](x)"], y="n:y")
    )
    assert repr(graph) == "<opkernel.Graph of 1 operation, 1 function>"


def test_tensors_have_shapes(digits: Graph) -> None:
    tensor = digits.get_tensor_by_name("Conv2D:0")
    assert repr(tensor) == "<opkernel.Tensor 'Conv2D:0' shape=(None, 8, 8, 16) dtype=float32>"
    with Graph().as_default():
        anything = raw_ops.Placeholder(dtype=float32, name="x")
    assert repr(anything) == "<opkernel.Tensor 'x:0' shape=<unknown> dtype=float32>"


def test_shapes_that_contradict_each_other_can_be_shown() -> None:
    made = GraphDef(
        node=[node("a = Placeholder[dtype=float]()"), node("b = MatMul[T=float](a, a)")]
    )
    made.node[0].attr["shape"].CopyFrom(parse_attr_value("shape", "{dim {size: 2} dim {size: 3}}"))
    with Graph().as_default() as graph:
        import_graph_def(made, name="")
    assert "shape=<contradictory>" in repr(graph.get_tensor_by_name("b:0"))


def test_sessions_and_plans(digits: Graph) -> None:
    with Session(digits) as session:
        assert repr(session) == "<opkernel.Session on CPU:0 of <opkernel.Graph of 28 operations>>"
        plan = repr(session.plan("probabilities:0", ["images:0"]))
    assert plan.startswith("<opkernel.CompiledPlan of ")
    assert plan.endswith(" statements: 1 fed, 1 fetched; `.source` is its text>")
    assert "closed" in repr(session)


def test_inferred_shapes(digits: Graph) -> None:
    shapes = digits.infer_shapes({"images:0": [1, 8, 8, 1]})
    assert repr(shapes) == "<opkernel.GraphShapes: 28 of 28 fully known>"


def test_ops_as_they_are_registered() -> None:
    op_def = global_op_registry().look_up_op_def("MaxPool")
    lines = repr(op_def).splitlines()
    assert lines[:3] == [
        'REGISTER_OP("MaxPool")',
        '    .Input("input: T")',
        '    .Output("output: T")',
    ]
    assert lines[3].startswith('    .Attr("T: {half, bfloat16, float, ')
    assert lines[3].endswith(', qint8} = DT_FLOAT")')
    assert lines[4] == '    .Attr("ksize: list(int) >= 4")'
    assert "    .Attr(\"padding: {'SAME', 'VALID', 'EXPLICIT'}\")" in lines
    assert ".SetIsStateful()" in repr(global_op_registry().look_up_op_def("VarHandleOp"))


@pytest.mark.parametrize("text", [t for t in HOSTILE_TEXT if t.isascii() or "\u2028" in t])
def test_any_op_def_can_be_shown(text: str) -> None:
    op_def = OpDef(name=text, control_output=[text])
    op_def.input_arg.add(name=text, type_attr=text)
    op_def.attr.add(name=text, type=text).default_value.s = text.encode()
    op_def.deprecation.explanation = text
    assert repr(op_def).startswith("REGISTER_OP(")
    assert all(character.isprintable() or character == "\n" for character in repr(op_def))
    assert repr(OpDef()) == 'REGISTER_OP("")'
