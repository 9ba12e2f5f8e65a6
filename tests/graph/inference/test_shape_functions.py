"""Calls of functions are followed into the bodies, with what is known of the arguments."""

import numpy as np
import pytest
from tests.graph.shape_builders import (
    constant,
    dims,
    element,
    function,
    known_dims,
    op,
    placeholder,
    v1_loop,
    while_loop,
)

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Tensor, func, function_def, import_graph_def, node_def
from opkernel.opdef import InferenceContext, OpRegistry, ShapeAndType, register_op
from opkernel.proto import NameAttrList
from opkernel.types import PartialTensorShape, float32, int32, resource


@pytest.fixture
def graph() -> Graph:
    return Graph()


def call(graph: Graph, target: NameAttrList, *arguments: Tensor, types=(float32,)) -> Tensor:
    attrs = {"f": target, "Tout": list(types)}
    return graph.create_op("PartitionedCall", [list(arguments)], attrs=attrs).outputs[0]


def flattened(graph: Graph, x: Tensor) -> Tensor:
    """`x` with all dimensions but the first as one."""
    shape = op(graph, "Shape", x)
    rest = op(graph, "StridedSlice", shape, [1], [0], [1], end_mask=1)
    sizes = op(graph, "Pack", [element(graph, shape, 0), op(graph, "Prod", rest, 0)])
    return op(graph, "Reshape", x, sizes)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [([2, 3, 4], [2, 12]), ([None, 3, 4], [None, 12]), ([None, 3, None], [None, None])],
)
def test_the_body_is_inferred_for_the_arguments(graph: Graph, shape, expected) -> None:
    flatten = function(graph, "flatten", [float32], flattened)
    result = call(graph, flatten, placeholder(graph, shape))
    assert result.shape.as_list() == expected
    assert dims(graph, result) == expected
    direct = op(graph, "flatten", placeholder(graph, shape))
    assert direct.shape.as_list() == expected


def test_dimensions_stay_the_same_through_calls(graph: Graph) -> None:
    relu = function(graph, "relu", [float32], lambda g, v: op(g, "Relu", v))
    tensors = []
    for _ in range(2):  # the second call is answered from what the first one found
        x = placeholder(graph, [None, 3])
        tensors += [x, call(graph, relu, x)]
    first, first_result, second, second_result = (
        dimensions[0] for dimensions in known_dims(graph, *tensors)
    )
    assert first_result is first
    assert second_result is second
    assert first is not second


def test_values_go_into_bodies_and_come_out(graph: Graph) -> None:
    fill = function(graph, "fill", [int32], lambda g, v: op(g, "Fill", v, 1.0))
    assert call(graph, fill, constant(graph, [2, 5])).shape.as_list() == [2, 5]
    assert call(graph, fill, constant(graph, [3])).shape.as_list() == [3]
    assert call(graph, fill, placeholder(graph, [3], int32)).shape.as_list() == [None] * 3

    halved = function(
        graph, "halved", [float32], lambda g, v: op(g, "FloorDiv", op(g, "Shape", v), 2)
    )
    sizes = call(graph, halved, placeholder(graph, [6, None, 4]), types=[int32])
    assert op(graph, "Fill", sizes, 1.0).shape.as_list() == [3, None, 2]


def test_bodies_that_call_others(graph: Graph) -> None:
    inner = function(graph, "inner", [float32], flattened)
    outer = function(graph, "outer", [float32], lambda g, v: call(g, inner, op(g, "Relu", v)))
    assert call(graph, outer, placeholder(graph, [2, 3, 4])).shape.as_list() == [2, 12]


def test_many_calls_in_many_levels_take_no_exponential_time(graph: Graph) -> None:
    """Each function calls the one below it twice: 2**20 calls, were they not kept."""
    below = function(graph, "f0", [float32], lambda g, v: op(g, "Relu", v))
    for level in range(1, 21):
        below = function(
            graph, f"f{level}", [float32], lambda g, v, f=below: call(g, f, call(g, f, v))
        )
    assert call(graph, below, placeholder(graph, [None, 3])).shape.as_list() == [None, 3]


def test_a_function_that_calls_itself(graph: Graph) -> None:
    f, types = func("endless"), [float32]
    again = node_def("y", "PartitionedCall", ["x"], f=f, Tin=types, Tout=types)
    definition = function_def("endless", ["x: float"], ["y: float"], [again])
    graph.function_library.add_function(definition)
    result = call(graph, NameAttrList(name="endless"), placeholder(graph, [2]))
    assert result.shape.rank is None
    assert graph.infer_shapes().why_unknown(result) == [
        "the function that PartitionedCall 'PartitionedCall' calls"
    ]


def test_a_function_that_is_not_there(graph: Graph) -> None:
    result = call(graph, NameAttrList(name="absent"), placeholder(graph, [2]))
    assert result.shape.rank is None


def test_calls_that_do_not_fit_their_function_are_of_unknown_shape(graph: Graph) -> None:
    """The step that makes the call tells the error."""
    relu = function(graph, "relu", [float32], lambda g, v: op(g, "Relu", v))
    two = function(graph, "two", [float32], lambda g, v: [v, op(g, "Relu", v)])
    x = placeholder(graph, [2])
    assert call(graph, relu, x, x).shape.rank is None
    assert call(graph, two, x).shape.rank is None
    assert call(graph, relu, x).shape.as_list() == [2]
    assert call(graph, relu, x, types=(float32, float32)).shape.rank is None


def test_a_contradiction_in_a_body_names_its_node_and_the_call(graph: Graph) -> None:
    bad = function(
        graph, "bad", [float32], lambda g, v: op(g, "MatMul", v, np.ones([4, 4], np.float32))
    )
    with pytest.raises(
        InvalidArgumentError, match=r"but are 3 and 4 for .*node MatMul.*'PartitionedCall' calls"
    ) as caught:
        call(graph, bad, placeholder(graph, [2, 3]))
    assert caught.value.node == "MatMul"


def test_calls_can_be_left_aside(graph: Graph) -> None:
    relu = function(graph, "relu", [float32], lambda g, v: op(g, "Relu", v))
    attrs = {"f": relu, "Tout": [float32], "_disable_call_shape_inference": True}
    x = placeholder(graph, [2])
    assert graph.create_op("PartitionedCall", [[x]], attrs=attrs).outputs[0].shape.rank is None


def test_shapes_that_are_declared_for_arguments(graph: Graph) -> None:
    """An attr `_output_shapes` of the argument adds to what the caller knows."""
    relu = function(graph, "relu", [float32], lambda g, v: op(g, "Relu", v))
    declared = graph.function_library["relu"]
    declared.arg_attr[0].attr["_output_shapes"].list.shape.append(
        PartialTensorShape([None, 8]).to_proto()
    )
    assert call(graph, relu, placeholder(graph)).shape.as_list() == [None, 8]
    assert call(graph, relu, placeholder(graph, [5, None])).shape.as_list() == [5, 8]
    assert call(graph, relu, placeholder(graph, [3, 3])).shape.as_list() == [3, 3]


def variables() -> OpRegistry:
    """A registry with a variable that says what it holds, and the ops that functions consist of."""
    registry = OpRegistry()

    def make(c: InferenceContext) -> None:
        c.set_output(0, c.scalar())
        c.set_output_handle_shapes_and_types(0, [ShapeAndType(c.matrix(2, 3), float32)])

    def read(c: InferenceContext) -> None:
        held = c.input_handle_shapes_and_types(0)
        c.set_output(0, held[0].shape if held else c.unknown_shape())

    register_op("Make", outputs=["r: resource"], shape_fn=make, registry=registry)
    register_op(
        "Read", inputs=["r: resource"], outputs=["v: float"], shape_fn=read, registry=registry
    )
    return registry


def test_what_resources_hold_goes_into_bodies() -> None:
    graph = Graph(variables())
    function(graph, "read", [resource], lambda g, r: op(g, "Read", r))
    function(graph, "pass", [resource], lambda g, r: r)
    made = op(graph, "Make")
    assert op(graph, "read", made).shape.as_list() == [2, 3]
    assert op(graph, "Read", op(graph, "pass", made)).shape.as_list() == [2, 3]


def test_variables_are_read_in_bodies_and_loops(graph: Graph) -> None:
    variable = op(graph, "VarHandleOp", dtype=float32, shape=PartialTensorShape([None, 3]))

    def read(g: Graph, handle: Tensor) -> Tensor:
        return op(g, "ReadVariableOp", handle, dtype=float32)

    assert read(graph, variable).shape.as_list() == [None, 3]
    target = function(graph, "read", [resource], read)
    assert call(graph, target, variable).shape.as_list() == [None, 3]
    results = while_loop(
        graph, [variable, read(graph, variable)], lambda g, handle, _: (handle, read(g, handle))
    )
    assert dims(graph, results[1]) == [None, 3]
    seen = []

    def body(handle: Tensor) -> Tensor:
        seen.append(read(graph, handle))
        return handle

    v1_loop(graph, [variable], body)
    assert dims(graph, seen[0]) == [None, 3]


def test_what_is_declared_that_an_argument_holds() -> None:
    graph = Graph(variables())
    function(graph, "read", [resource], lambda g, r: op(g, "Read", r))
    declared = graph.function_library["read"].signature.input_arg[0].handle_data.add()
    declared.dtype = float32
    declared.shape.CopyFrom(PartialTensorShape([7, None]).to_proto())
    unknown = op(graph, "_Arg", T=resource, index=0, name="a")
    assert op(graph, "read", unknown).shape.as_list() == [7, None]
    assert op(graph, "read", op(graph, "Make")).shape.as_list() == [2, 3]


def test_an_imported_call_is_inferred_when_it_is_asked_for(graph: Graph) -> None:
    flatten = function(graph, "flatten", [float32], flattened)
    result = call(graph, flatten, placeholder(graph, [2, 3, 4]))
    imported = Graph()
    import_graph_def(graph.as_graph_def(), graph=imported, name="")
    assert imported.get_tensor_by_name(result.name).shape.as_list() == [2, 12]
