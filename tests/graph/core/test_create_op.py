"""Making operations: attrs that follow from inputs, constants, checks, shapes."""

import re
import sys
import threading
from typing import Any

import numpy as np
import pytest

from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from opkernel.graph import (
    Graph,
    Tensor,
    get_default_graph,
    import_graph_def,
    reset_default_graph,
)
from opkernel.opdef import InferenceContext, OpRegistry, register_op, unknown_shape
from opkernel.opdef.common_shapes import scalar_shape
from opkernel.proto import AttrValue, GraphDef, NodeDef, OpDef
from opkernel.types import DataType, float32, int32


def placeholder(graph: Graph, dtype: DataType = float32, shape=None, name: str = "x") -> Tensor:
    attrs = {"dtype": dtype, "shape": shape}
    return graph.create_op("Placeholder", name=name, attrs=attrs).outputs[0]


def test_type_attr_comes_from_the_inputs(graph: Graph) -> None:
    x, y = placeholder(graph, int32), placeholder(graph, int32)
    z = graph.create_op("AddV2", [x, y])
    assert z.get_attr("T") == int32
    assert z.outputs[0].dtype == int32
    assert list(z.node_def.input) == ["x", "x_1"]


def test_length_and_type_lists_come_from_the_inputs(graph: Graph) -> None:
    x, y, i = placeholder(graph), placeholder(graph), placeholder(graph, int32)
    total = graph.create_op("AddN", [x, y, x])
    assert (total.get_attr("N"), total.get_attr("T")) == (3, float32)
    both = graph.create_op("IdentityN", [x, i])
    assert both.get_attr("T") == [float32, int32]
    assert both.output_types == (float32, int32)


def test_a_list_argument_may_be_given_as_a_list(graph: Graph) -> None:
    x, y = placeholder(graph), placeholder(graph)
    flat = graph.create_op("ConcatV2", [x, y, 0])
    nested = graph.create_op("ConcatV2", [[x, y], 0])
    assert flat.get_attr("N") == nested.get_attr("N") == 2
    assert [t.dtype for t in nested.inputs] == [float32, float32, int32]


def test_given_attrs_split_flat_inputs(graph: Graph) -> None:
    x = placeholder(graph)
    split = graph.create_op("Split", [0, x], attrs={"num_split": 3})
    assert [t.name for t in split.outputs] == ["Split:0", "Split:1", "Split:2"]


def test_values_become_constants_of_the_wanted_type(graph: Graph) -> None:
    x = placeholder(graph)
    z = graph.create_op("AddV2", [x, 3], name="z")
    constant = z.inputs[1].op
    assert (constant.name, constant.type) == ("z/y", "Const")
    assert constant.get_attr("dtype") == float32
    assert graph.create_op("AddN", [[x, 1.0]], name="s").inputs[1].name == "s/inputs_1:0"


def test_values_alone_have_their_natural_type(graph: Graph) -> None:
    assert graph.create_op("Identity", [1]).output_types == (int32,)
    assert graph.create_op("Identity", [2.5]).output_types == (float32,)
    assert graph.create_op("Identity", ["text"]).output_types == (DataType.DT_STRING,)
    assert graph.create_op("Identity", [np.float64(1)]).output_types == (DataType.DT_DOUBLE,)


def test_attrs_may_be_python_values_or_messages(graph: Graph) -> None:
    x = placeholder(graph, shape=[2, 2])
    product = graph.create_op("MatMul", [x, x], attrs={"transpose_b": True, "_note": "here"})
    assert product.get_attr("transpose_b") is True
    assert product.get_attr("transpose_a") is False
    assert product.get_attr("_note") == b"here"
    message = {"dtype": AttrValue(type=DataType.DT_FLOAT)}
    assert graph.create_op("Placeholder", attrs=message).output_types == (float32,)


def test_control_inputs(graph: Graph) -> None:
    x = placeholder(graph)
    first = graph.create_op("NoOp", control_inputs=[x, x.op])
    assert first.control_inputs == (x.op,)
    assert list(first.node_def.input) == ["^x"]


def test_shapes_are_inferred_at_once(graph: Graph) -> None:
    x = placeholder(graph, shape=[None, 3])
    z = graph.create_op("AddV2", [x, np.ones(3, np.float32)])
    assert z.outputs[0].shape.as_list() == [None, 3]


def test_shapes_that_disagree_leave_no_node(graph: Graph) -> None:
    x, y = placeholder(graph, shape=[2]), placeholder(graph, shape=[3])
    with pytest.raises(InvalidArgumentError, match="must be equal, but are 2 and 3") as caught:
        graph.create_op("AddV2", [x, y], name="z")
    assert (caught.value.node, caught.value.op) == ("z", "AddV2")
    assert [op.name for op in graph.get_operations()] == ["x", "x_1"]
    assert x.consumers() == []


def test_an_error_of_a_shape_function_names_the_node(graph: Graph) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"shape function of Fails failed: IndexError.*'f'"
    ):
        graph.create_op("Fails", name="f")


def test_an_op_of_its_own(graph: Graph) -> None:
    op_def = OpDef(name="Mine", input_arg=[OpDef.ArgDef(name="a", type=int32)])
    op = graph.create_op("Mine", [1], op_def=op_def)
    assert (op.type, op.op_def) == ("Mine", op_def)


@pytest.mark.parametrize(
    ("op", "inputs", "options", "message"),
    [
        ("AddV2", [1.0, np.int64(1)], {}, "'x' of .* expected int64, got 1.0 of type 'float'"),
        ("AddV2", [1.0], {}, "do not match the 1 inputs given"),
        ("AddV2", [1.0, 2.0, 3.0], {}, "do not match the 3 inputs given"),
        ("AddV2", ["a", "b"], {}, "not in the list of allowed values"),
        ("AddV2", [1.0, "b"], {}, r"'y' of 'AddV2' expected float, got 'b' of type 'str'"),
        ("AddN", [[]], {}, "type variable 'T' from empty input list passed to input 'inputs'"),
        ("AddN", [[1.0, 2.0]], {"attrs": {"N": 3}}, "length 2 that does not match length 3"),
        ("MatMul", [1.0, 2.0], {"attrs": {"transpose": True}}, "has no attr named 'transpose'"),
        ("MatMul", [1.0, 2.0], {"attrs": {"transpose_a": "yes"}}, "'yes' is not a value"),
        ("Identity", [1.0], {"dtypes": ["int32"]}, r"output types \['float'\], not \['int32'\]"),
        ("Identity", [1.0], {"input_types": ["int32"]}, r"input types \['float'\], not"),
        ("Const", [], {}, "NodeDef missing attr"),
    ],
)
def test_wrong_requests(graph: Graph, op, inputs, options, message) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        graph.create_op(op, inputs, **options)


def test_unknown_op(graph: Graph) -> None:
    with pytest.raises(NotFoundError, match="Op type not registered 'Nope' in binary running on"):
        graph.create_op("Nope")


def test_a_value_is_no_reference(graph: Graph) -> None:
    variable = graph.create_op("Variable", attrs={"dtype": float32}, name="v").outputs[0]
    assert variable.dtype == DataType.DT_FLOAT_REF
    assert graph.create_op("Identity", [variable]).output_types == (float32,)
    assert graph.create_op("Assign", [variable, 1.0]).input_types[0] == DataType.DT_FLOAT_REF
    with pytest.raises(InvalidArgumentError, match=r"passed float from .* expected float_ref"):
        graph.create_op("Assign", [placeholder(graph), 1.0])


def test_tensors_of_other_graphs_are_refused(graph: Graph, make_graph) -> None:
    with pytest.raises(InvalidArgumentError, match="'x' cannot be a input of 'Identity'"):
        graph.create_op("Identity", [placeholder(make_graph())])


def test_a_finalized_graph_cannot_change(graph: Graph) -> None:
    x = placeholder(graph)
    graph.finalize()
    assert graph.finalized
    for change in (
        lambda: graph.create_op("NoOp"),
        lambda: x.op.add_control_input(x.op),
        lambda: x.op.set_device("/cpu:0"),
        lambda: graph.add_to_collection("a", 1),
    ):
        with pytest.raises(FailedPreconditionError, match="Graph is finalized"):
            change()


def test_the_site_is_the_callers_line(graph: Graph) -> None:
    traceback = graph.create_op("NoOp").traceback
    assert traceback is not None
    assert traceback[-1].filename == __file__
    assert traceback[-1].line == 'traceback = graph.create_op("NoOp").traceback'


def test_the_site_tells_where_the_function_begins(graph: Graph) -> None:
    begins = sys._getframe().f_code.co_firstlineno
    op = graph.create_op("NoOp")
    traceback, lines = op.traceback, op.traceback_with_start_lines
    assert traceback is not None
    assert lines is not None
    (file, line, function, text, start), frame = lines[-1], traceback[-1]
    assert (file, line, function, text) == (frame.filename, frame.lineno, frame.name, frame.line)
    assert (file, function, start) == (
        __file__,
        "test_the_site_tells_where_the_function_begins",
        begins,
    )
    assert text == 'op = graph.create_op("NoOp")'
    import_graph_def(GraphDef(node=[NodeDef(name="n", op="NoOp")]), graph=graph)
    assert graph.get_operation_by_name("import/n").traceback_with_start_lines is None


def test_the_default_graph(graph: Graph) -> None:
    reset_default_graph()
    default = get_default_graph()
    assert get_default_graph() is default
    with graph.as_default() as inner:
        assert get_default_graph() is inner is graph
        with default.as_default():
            assert get_default_graph() is default
        assert get_default_graph() is graph
    reset_default_graph()
    assert get_default_graph() is not default


def test_the_node_is_what_tensorflow_writes(graph: Graph) -> None:
    x = placeholder(graph)
    two = graph.create_op("Two")
    z = graph.create_op("AddV2", [x, two.outputs[0]], control_inputs=[two], name="z")
    expected = NodeDef(name="z", op="AddV2", input=["x", "Two", "^Two"])
    expected.attr["T"].type = DataType.DT_FLOAT
    assert z.node_def == expected


def test_an_op_that_is_declared_anew_counts_from_then_on() -> None:
    registry = OpRegistry()
    register_op("Mine", outputs=["o: float"], shape_fn=scalar_shape, registry=registry)
    graph = Graph(registry)
    old = graph.create_op("Mine")
    register_op("Mine", outputs=["o: int32", "p: float"], shape_fn=unknown_shape, registry=registry)
    new = graph.create_op("Mine")
    assert [old.output_types, new.output_types] == [(float32,), (int32, float32)]


def test_threads_see_the_same_tensors(graph: Graph) -> None:
    ops = [graph.create_op("Two") for _ in range(50)]
    seen: set[Tensor] = set()
    threads = [
        threading.Thread(target=lambda: seen.update(op.outputs[1] for op in ops)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 50


def beyond(c: InferenceContext) -> None:
    c.set_output(1, c.input(0))


def from_beyond(c: InferenceContext) -> None:
    c.set_output(0, c.input(2))


def no_handle(c: InferenceContext) -> None:
    c.set_output(0, (2, 3))  # type: ignore[arg-type]  # the mistake of this test


def misnamed(c: InferenceContext) -> None:
    c.set_output(0, c.input("q")[0])


@pytest.mark.parametrize(
    ("shape_fn", "message"),
    [
        (beyond, "has no output 1: it has 1 output, number 0 for '{{node n}}"),
        (from_beyond, "has no input 2: it has 2 inputs, numbers 0 to 1"),
        (
            no_handle,
            "Output 0 must have exactly 1 shape, a ShapeHandle as make_shape gives, not (2",
        ),
        (misnamed, "Unknown input name: q; inputs are x, y"),
    ],
)
def test_errors_of_shape_functions_are_in_the_terms_of_the_op(shape_fn: Any, message: str) -> None:
    name = f"Told{shape_fn.__name__.title().replace('_', '')}InTests"
    specs = ["x: float", "y: float"]
    register_op(name, inputs=specs, outputs=["z: float"], shape_fn=shape_fn)
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        Graph().create_op(name, [1.0, 2.0], name="n")


def test_what_a_shape_function_raises_is_told_with_its_line() -> None:
    line = failing.__code__.co_firstlineno + 1
    register_op("DividesInTests", shape_fn=failing)
    with pytest.raises(InvalidArgumentError, match=rf"ZeroDivisionError.*{__file__}:{line} \(node"):
        Graph().create_op("DividesInTests")


def failing(c: InferenceContext) -> None:
    1 / 0  # noqa: B018  # as a mistake would
