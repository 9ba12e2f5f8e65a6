"""SymbolicGradient nodes; the values are TensorFlow's."""

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, raw_ops
from opkernel.errors import InternalError, InvalidArgumentError, NotFoundError
from opkernel.graph import FuncGraph, TensorSpec
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import DataType

FLOAT = opkernel.float32


@pytest.fixture
def graph():
    with Graph().as_default() as graph:
        yield graph


def define(graph, name, body, number=1, dtype=FLOAT):
    """A function of the graph's library: its arguments are of one type."""
    function = FuncGraph(name=name, outer_graph=graph)
    inputs = [function.add_input(TensorSpec(None, dtype), f"x{i}") for i in range(number)]
    function.trace(lambda: body(*inputs))
    definition = function.function_def
    definition.signature.name = name
    graph.function_library.add_function(definition)
    return name


def symbolic_gradient(graph, name, inputs, number=1, attrs=None, tout=None):
    """The gradients by the first `number` inputs; the rest are those of the results."""
    types = [tensor.dtype for tensor in inputs[:number]] if tout is None else tout
    function = NameAttrList(name=name, attr=attrs or {})
    return raw_ops.SymbolicGradient(input=inputs, Tout=types, f=function)


def run(graph, fetches):
    return Session(graph).run(fetches)


def test_of_a_function(graph):
    define(graph, "F", lambda x: x * x + 2 * x)
    inputs = [opkernel.constant([1.0, 5]), opkernel.constant([1.0, 10])]
    np.testing.assert_array_equal(run(graph, symbolic_gradient(graph, "F", inputs)), [[4, 120]])


def test_of_a_function_that_calls_a_function(graph):
    define(graph, "Inner", lambda x: x * x * x)

    def outer(x):
        inner = opkernel.graph.get_default_graph()
        inner.function_library.add_function(graph.function_library["Inner"])
        return inner.create_op("Inner", [x]).outputs[0] * 2

    define(graph, "Outer", outer)
    inputs = [opkernel.constant([2.0]), opkernel.constant([1.0])]
    np.testing.assert_array_equal(run(graph, symbolic_gradient(graph, "Outer", inputs)), [[24]])


def test_of_a_single_op(graph):
    inputs = [opkernel.constant([2.0, 3]), opkernel.constant([1.0, 1])]
    attrs = {"T": AttrValue(type=DataType.DT_FLOAT)}
    found = symbolic_gradient(graph, "Square", inputs, attrs=attrs)
    np.testing.assert_array_equal(run(graph, found), [[4, 6]])
    constant = symbolic_gradient(graph, "ZerosLike", inputs, attrs=attrs)
    with pytest.raises(InvalidArgumentError, match="No gradient is defined for ZerosLike"):
        run(graph, constant)


def test_by_the_function_that_the_library_records(graph):
    define(graph, "F", lambda x: x * x)
    define(graph, "GradientOfF", lambda x, dy: x + 100 * dy, number=2)
    graph.function_library.add_gradient("F", "GradientOfF")
    inputs = [opkernel.constant([1.0]), opkernel.constant([2.0])]
    np.testing.assert_array_equal(run(graph, symbolic_gradient(graph, "F", inputs)), [[201]])


@pytest.mark.parametrize("by_name", [True, False])
def test_gradients_of_calls_of_functions_whose_gradient_is_recorded(graph, by_name):
    define(graph, "F", lambda x: x * x)
    define(graph, "GradientOfF", lambda x, dy: x + 100 * dy, number=2)
    graph.function_library.add_gradient("F", "GradientOfF")
    x = opkernel.constant([1.0])
    if by_name:
        y = graph.create_op("F", [x]).outputs[0]
    else:
        (y,) = raw_ops.PartitionedCall(args=[x], Tout=["float"], f=NameAttrList(name="F"))
    np.testing.assert_array_equal(run(graph, opkernel.gradients(y * 2, x)), [[201]])


def test_arguments_that_do_not_matter_have_gradients_of_zeros(graph):
    define(graph, "F", lambda x, y: raw_ops.Floor(x=x * 2), number=2)
    inputs = [opkernel.constant(v) for v in ([1.0], [[2.0, 3]], [1.0])]
    found = run(graph, symbolic_gradient(graph, "F", inputs, number=2))
    np.testing.assert_array_equal(found[0], [0])
    np.testing.assert_array_equal(found[1], [[0, 0]])


def test_integers_have_gradients_here(graph):
    define(graph, "F", lambda x: x * x, dtype="int32")
    inputs = [opkernel.constant([3, 4]), opkernel.constant([1, 10])]
    np.testing.assert_array_equal(run(graph, symbolic_gradient(graph, "F", inputs)), [[6, 80]])


def test_casts_have_gradients_of_the_type_of_the_argument(graph):
    define(graph, "F", lambda x: raw_ops.Cast(x=x, DstT=FLOAT), dtype="int32")
    inputs = [opkernel.constant([3, 4]), opkernel.constant([1.5, 2.5])]
    (found,) = run(graph, symbolic_gradient(graph, "F", inputs))
    np.testing.assert_array_equal(found, [1, 2])
    assert found.dtype == np.int32


@pytest.mark.parametrize("op", ["Erf", "Softplus", "Round", "Lgamma", "Prod", "Tile"])
def test_functions_know_fewer_gradients_than_graphs(graph, op):
    def body(x):
        further = {"Prod": {"axis": [0]}, "Tile": {"multiples": [2]}}.get(op, {})
        name = {"Softplus": "features", "Prod": "input", "Tile": "input"}.get(op, "x")
        return getattr(raw_ops, op)(**{name: x}, **further)

    define(graph, "F", body)
    inputs = [opkernel.constant([0.5]), opkernel.constant([1.0])]
    with pytest.raises(NotFoundError, match=f"No gradient defined for op: {op}"):
        run(graph, symbolic_gradient(graph, "F", inputs))


def test_what_a_constant_depends_on_needs_a_gradient_as_well(graph):
    define(graph, "F", lambda x: raw_ops.Floor(x=raw_ops.Erf(x=x)))
    inputs = [opkernel.constant([0.5]), opkernel.constant([1.0])]
    with pytest.raises(NotFoundError, match="Erf"):
        run(graph, symbolic_gradient(graph, "F", inputs))


def test_the_types_of_the_node_are_those_of_the_function(graph):
    define(graph, "F", lambda x: x * x)
    inputs = [opkernel.constant([1.0]), opkernel.constant([1.0])]
    wrong = symbolic_gradient(graph, "F", inputs, tout=["double"])
    with pytest.raises(InternalError, match=r"gives \(float\).*Tout \(double\)"):
        run(graph, wrong)
    with pytest.raises(NotFoundError, match="G"):
        run(graph, symbolic_gradient(graph, "G", inputs))


def test_a_symbolic_gradient_has_no_symbolic_gradient(graph):
    define(graph, "F", lambda x: x * x)

    def gradient(x):
        inner = opkernel.graph.get_default_graph()
        inner.function_library.add_function(graph.function_library["F"])
        return symbolic_gradient(inner, "F", [x, x])[0]

    define(graph, "GradientOfF", gradient)
    inputs = [opkernel.constant([1.0]), opkernel.constant([1.0])]
    with pytest.raises(InvalidArgumentError, match="Can't take gradient of SymbolicGradient"):
        run(graph, symbolic_gradient(graph, "GradientOfF", inputs))


def test_of_a_function_that_reads_a_variable(graph):
    handle = raw_ops.VarHandleOp(dtype=FLOAT, shape=[2])

    def body(handle):
        return raw_ops.ReadVariableOp(resource=handle, dtype=FLOAT) * 3

    define(graph, "F", body, dtype="resource")
    weights = opkernel.constant([1.0, 10])
    found = symbolic_gradient(graph, "F", [handle, weights], tout=["float"])
    with Session(graph) as session:
        session.run(raw_ops.AssignVariableOp(resource=handle, value=[1.0, 1]))
        np.testing.assert_array_equal(session.run(found), [[3, 30]])
