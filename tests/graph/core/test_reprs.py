"""What Python shows for graphs and what belongs to them."""

from pathlib import Path

import pytest
from tests.graph.function_builders import define, node

import opkernel
from opkernel import Graph, float32, import_graph_def, load_graph, raw_ops
from opkernel.opdef import parse_attr_value
from opkernel.proto import GraphDef

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.pb"


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


def test_inferred_shapes(digits: Graph) -> None:
    shapes = digits.infer_shapes({"images:0": [1, 8, 8, 1]})
    assert repr(shapes) == "<opkernel.GraphShapes: 28 of 28 fully known>"


def test_functions() -> None:
    @opkernel.function
    def twice(x: opkernel.Tensor) -> opkernel.Tensor:
        return x + x

    assert repr(twice) == "<opkernel.Function 'twice'>"
    concrete = twice.get_concrete_function(opkernel.TensorSpec([2], float32, "x"))
    assert repr(concrete).startswith("<opkernel.ConcreteFunction ")
    assert "twice" in repr(concrete)
    assert twice.concrete_functions == [concrete]
    assert repr(concrete.graph).startswith("<opkernel.FuncGraph of ")


def test_drawings_for_notebooks(digits: Graph) -> None:
    assert digits._repr_html_().lstrip().startswith("<")
