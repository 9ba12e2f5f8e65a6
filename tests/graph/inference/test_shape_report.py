"""`Graph.infer_shapes`: the shapes of a graph, with some given, and where unknown ones come from."""

import numpy as np
import pytest
from tests.graph.shape_builders import (
    constant,
    element,
    function,
    op,
    placeholder,
    v1_loop,
    while_loop,
)

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import Graph, GraphImporter, ImportOptions, Tensor, import_graph_def
from opkernel.opdef import InferenceContext, OpRegistry, register_op, unknown_shape
from opkernel.types import DataType, PartialTensorShape, TensorShape, float32, int32, int64


@pytest.fixture
def graph() -> Graph:
    return Graph()


class TestGivenShapes:
    def test_the_graph_stays_as_it_is(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3], name="x")
        y = op(graph, "Relu", x, name="y")
        shapes = graph.infer_shapes({"x:0": [2, 3]})
        assert shapes["y:0"].as_list() == shapes[y].as_list() == [2, 3]
        assert y.shape.as_list() == [None, 3]
        assert "_output_shapes" not in y.op.node_def.attr
        assert graph.infer_shapes()[y].as_list() == [None, 3]

    def test_they_can_be_kept(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3])
        y = op(graph, "Relu", x)
        graph.infer_shapes({x: [2, None]}, update=True)
        assert y.shape.as_list() == [2, 3]
        assert op(graph, "Relu", y).shape.as_list() == [2, 3]

    @pytest.mark.parametrize("shape", [(2, 3), TensorShape([2, 3]), PartialTensorShape([2, None])])
    def test_they_add_to_what_is_known(self, graph: Graph, shape) -> None:
        x = placeholder(graph, [None, 3])
        assert graph.infer_shapes({x: shape})[x].as_list() == [2, 3]

    def test_of_any_tensor(self, graph: Graph) -> None:
        where = op(graph, "Where", placeholder(graph, [None]))
        result = op(graph, "Cast", where, DstT=float32)
        assert graph.infer_shapes({where: [5, None]})[result].as_list() == [5, 1]

    def test_wrong_ones(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3], name="x")
        with pytest.raises(InvalidArgumentError, match=r"\[2,4\].*'x:0' disagrees.*\[\?,3\]") as e:
            graph.infer_shapes({x: [2, 4]})
        assert e.value.node == "x"
        with pytest.raises(InvalidArgumentError, match=r"for 'x:0' is no shape.*-5"):
            graph.infer_shapes({x: [-5, 3]})
        with pytest.raises(InvalidArgumentError, match="'x:0'"):
            graph.infer_shapes({x: [2**62, 2**62]})
        with pytest.raises(NotFoundError, match="'z:0'"):
            graph.infer_shapes({"z:0": [2]})
        with pytest.raises(InvalidArgumentError, match="not an element of this graph"):
            graph.infer_shapes({placeholder(Graph()): [2]})

    def test_what_follows_may_contradict(self, graph: Graph) -> None:
        x = placeholder(graph, [None, None], name="x")
        op(graph, "MatMul", x, np.ones([3, 4], np.float32), name="product")
        with pytest.raises(
            InvalidArgumentError, match=r"but are 5 and 3 for '{{node product}}"
        ) as e:
            graph.infer_shapes({"x:0": [2, 5]})
        assert (e.value.node, e.value.op) == ("product", "MatMul")


class TestResult:
    def test_is_a_mapping_of_all_tensors(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3])
        split = graph.create_op("Unpack", [x], attrs={"num": 3, "axis": 1})
        graph.create_op("NoOp")
        shapes = graph.infer_shapes()
        assert list(shapes) == [x, *split.outputs]
        assert len(shapes) == 4
        assert x in shapes
        assert placeholder(Graph()) not in shapes
        assert [shapes[part].as_list() for part in split.outputs] == [[None]] * 3
        assert shapes.num_known == 0
        assert graph.infer_shapes({x: [2, 3]}).num_known == 4

    def test_holds_the_names_of_tensors_too(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3], name="x")
        shapes = graph.infer_shapes()
        keys: list[object] = ["x:0", "x:1", "y:0", "x", x.op]
        assert [key in shapes for key in keys] == [True, False, False, False, False]
        assert shapes.get("x:0") == shapes[x]
        assert shapes.get("y:0") is None

    def test_a_shape_that_no_tensor_can_have(self, graph: Graph) -> None:
        big = op(graph, "Fill", np.array([2**62, 4]), np.float32(1), name="big")
        for ask in (lambda: big.shape, lambda: graph.infer_shapes()[big]):
            with pytest.raises(InvalidArgumentError, match="'big:0' can have no such shape") as e:
                ask()
            assert (e.value.node, e.value.op) == ("big", "Fill")

    def test_is_written_into_the_nodes(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3], name="x")
        op(graph, "Relu", x, name="y")
        written = graph.infer_shapes({x: [2, 3]}).as_graph_def()
        sizes = [[d.size for d in n.attr["_output_shapes"].list.shape[0].dim] for n in written.node]
        assert sizes == [[2, 3], [2, 3]]
        read = Graph()
        import_graph_def(written, graph=read, name="")
        assert read.get_tensor_by_name("y:0").shape.as_list() == [2, 3]
        again = read.infer_shapes().as_graph_def()
        assert [len(n.attr["_output_shapes"].list.shape) for n in again.node] == [1, 1]

    def test_an_empty_graph(self, graph: Graph) -> None:
        shapes = graph.infer_shapes()
        assert (len(shapes), shapes.num_known) == (0, 0)

    def test_imported_nodes_in_any_order(self, graph: Graph) -> None:
        x = placeholder(graph, [2], name="x")
        op(graph, "Relu", x, name="y")
        text = graph.as_graph_def()
        nodes = list(text.node)
        del text.node[:]
        text.node.extend(reversed(nodes))
        read = Graph()
        import_graph_def(text, graph=read, name="")
        assert read.infer_shapes()["y:0"].as_list() == [2]


def why(graph: Graph, tensor: Tensor) -> list[str]:
    return graph.infer_shapes().why_unknown(tensor)


class TestSourcesOfTheUnknown:
    def test_known_shapes_have_none(self, graph: Graph) -> None:
        assert why(graph, placeholder(graph, [2])) == []

    def test_placeholders(self, graph: Graph) -> None:
        x = placeholder(graph, [None, None], name="x")
        z = placeholder(graph, name="z")
        assert why(graph, x) == ["placeholder 'x' dim 0", "placeholder 'x' dim 1"]
        assert why(graph, op(graph, "Relu", z)) == ["placeholder 'z'"]

    def test_dimensions_of_inputs_that_matter(self, graph: Graph) -> None:
        x = placeholder(graph, [None, None, None, 3], name="x")
        weights = np.ones([3, 3, 3, 8], np.float32)
        attrs = {"strides": [1, 2, 2, 1], "padding": "VALID"}
        image = op(graph, "Conv2D", x, weights, **attrs)
        assert why(graph, image) == [f"placeholder 'x' dim {axis}" for axis in range(3)]
        rows = op(graph, "Sum", image, [0, 2])
        assert why(graph, rows) == ["placeholder 'x' dim 1"]
        both = op(graph, "MatMul", op(graph, "Sum", image, [0, 3]), placeholder(graph, [None, 5]))
        assert why(graph, both) == ["placeholder 'x' dim 1"]

    def test_values(self, graph: Graph) -> None:
        n = placeholder(graph, [], int32, name="n")
        sizes = op(graph, "Pack", [op(graph, "AddV2", n, 1), constant(graph, 3)])
        assert why(graph, op(graph, "Fill", sizes, 1.0)) == ["the value of placeholder 'n'"]

    def test_sizes_that_come_from_dimensions(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3], name="x")
        rows = element(graph, op(graph, "Shape", x), 0)
        doubled = op(graph, "Pack", [op(graph, "Mul", rows, 2)])
        assert why(graph, op(graph, "Fill", doubled, 1.0)) == ["placeholder 'x' dim 0"]

    def test_data(self, graph: Graph) -> None:
        condition = constant(graph, [True, False], DataType.DT_BOOL)
        where = op(graph, "Where", condition, name="w")
        assert why(graph, op(graph, "Neg", where)) == ["Where 'w': the data decides"]

    def test_ops_that_do_not_tell(self, graph: Graph) -> None:
        registry = OpRegistry()
        register_op("Silent", outputs=["y: float"], shape_fn=unknown_shape, registry=registry)
        own = Graph(registry)
        assert why(own, op(own, "Silent", name="s")) == [
            "op Silent has no shape function that tells (node 's')"
        ]
        text = graph.as_graph_def()
        text.node.add(name="m", op="Mystery")
        text.node.add(name="use", op="Other", input=["m"])
        read = Graph()
        from_file = import_unregistered(read, text)
        assert why(read, from_file) == ["op Mystery is not registered (node 'm')"]

    def test_loops_and_branches(self, graph: Graph) -> None:
        x = placeholder(graph, [2, 8])

        def grow(v: Tensor) -> Tensor:
            return op(graph, "ConcatV2", [v, v], 0)

        (result,) = v1_loop(graph, [x], grow, frame="loop")
        assert why(graph, result) == ["Merge 'loop/Merge': the loop changes it"]
        (second,) = while_loop(graph, [x], lambda g, v: op(g, "ConcatV2", [v, v], 0))
        assert why(graph, second) == ["StatelessWhile 'StatelessWhile': the loop changes it"]
        branches = {
            "then_branch": function(graph, "then", [float32], lambda g, v: op(g, "Relu", v)),
            "else_branch": function(graph, "else", [float32], lambda g, v: op(g, "Sum", v, 0)),
        }
        condition = placeholder(graph, [], DataType.DT_BOOL)
        third = op(graph, "StatelessIf", condition, [x], Tout=[float32], name="if", **branches)
        assert why(graph, third) == ["StatelessIf 'if': its branches differ"]

    def test_no_more_than_three_are_named(self, graph: Graph) -> None:
        parts = [placeholder(graph, [None], name=f"p{i}") for i in range(5)]
        both = op(graph, "ConcatV2", parts, 0)
        assert why(graph, both) == [f"placeholder 'p{i}' dim 0" for i in range(3)]

    def test_of_several_unknown_inputs_only_those_that_decide_are_named(self, graph: Graph) -> None:
        rows = placeholder(graph, [None], name="rows")
        x = placeholder(graph, [None, None], name="x")
        product = op(graph, "MatMul", x, placeholder(graph, [3, None], name="y"))
        assert why(graph, op(graph, "Sum", product, 0)) == ["placeholder 'y' dim 1"]
        assert why(graph, op(graph, "Pack", [rows, rows])) == ["placeholder 'rows' dim 0"]

    def test_a_rank_that_an_axis_leaves_open(self, graph: Graph) -> None:
        z = placeholder(graph, name="z")
        axis = placeholder(graph, [1], int32, name="axis")
        assert why(graph, op(graph, "ExpandDims", z, 0)) == ["placeholder 'z'"]
        x = placeholder(graph, [2, 3], name="x")
        assert why(graph, op(graph, "Sum", x, axis)) == ["the value of placeholder 'axis'"]

    def test_what_variables_and_lists_hold(self, graph: Graph) -> None:
        variable = op(graph, "VarHandleOp", dtype=float32, shape=[None, 2], name="v")
        value = op(graph, "ReadVariableOp", variable, dtype=float32)
        assert why(graph, value) == ["VarHandleOp 'v' does not say what it holds"]
        rows = placeholder(graph, [], int32, name="n")
        shape = op(graph, "Pack", [rows, constant(graph, 2)])
        held = op(graph, "TensorListReserve", shape, 3, element_dtype=float32, shape_type=int32)
        item = op(graph, "TensorListGetItem", held, 0, [-1, -1], element_dtype=float32, name="get")
        assert why(graph, item) == [
            "TensorListReserve 'TensorListReserve' does not say what it holds"
        ]

    def test_functions(self, graph: Graph) -> None:
        x = placeholder(graph, [None], name="x")
        same = function(graph, "same", [float32], lambda g, v: op(g, "Relu", v))
        called = op(graph, "PartitionedCall", [x], f=same, Tout=[float32])
        assert why(graph, called) == ["placeholder 'x' dim 0"]
        where = function(graph, "where", [float32], lambda g, v: op(g, "Where", v))
        found = op(graph, "PartitionedCall", [constant(graph, [1.0], float32)], f=where,
                   Tout=[int64], name="call")  # fmt: skip
        assert why(graph, found) == ["the function that PartitionedCall 'call' calls"]

    def test_loops_and_branches_over_unknown_shapes(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 2], name="x")
        y = placeholder(graph, [None, 2], name="y")
        first, second = while_loop(graph, [x, y], lambda g, v, w: [op(g, "Relu", v), w])
        assert why(graph, first) == ["placeholder 'x' dim 0"]
        assert why(graph, second) == ["placeholder 'y' dim 0"]
        merged = op(graph, "Merge", [x, y], name="merged")
        assert why(graph, merged) == ["placeholder 'x' dim 0", "placeholder 'y' dim 0"]
        known = op(graph, "Merge", [placeholder(graph, [2]), placeholder(graph, [3])], name="m")
        assert why(graph, known) == ["Merge 'm': its branches differ"]

    def test_values_through_operations(self, graph: Graph) -> None:
        n = placeholder(graph, [1], int32, name="n")
        x = placeholder(graph, [None], name="x")
        assert why(graph, op(graph, "Fill", op(graph, "Mul", n, n), 1.0)) == [
            "the value of placeholder 'n'"
        ]
        both = op(graph, "ConcatV2", [op(graph, "Shape", x), op(graph, "Neg", n)], 0)
        assert why(graph, op(graph, "Fill", both, 1.0)) == [
            "placeholder 'x' dim 0", "the value of placeholder 'n'"
        ]  # fmt: skip
        noise = op(graph, "RandomUniformInt", [1], 0, 9, name="noise")
        assert why(graph, op(graph, "Fill", noise, 1.0)) == [
            "the value of 'noise:0' (RandomUniformInt)"
        ]

    def test_shapes_of_several_tensors(self, graph: Graph) -> None:
        x, y = placeholder(graph, [None], name="x"), placeholder(graph, [None], name="y")
        shapes = graph.create_op("ShapeN", [[x, y]]).outputs
        assert why(graph, op(graph, "Fill", shapes[1], 1.0)) == ["placeholder 'y' dim 0"]

    def test_a_long_chain(self, graph: Graph) -> None:
        """Each convolution makes new dimensions; they all come from the placeholder."""
        x = placeholder(graph, [1, None, 64, 2], name="x")
        weights = constant(graph, np.ones([3, 3, 2, 2]), float32)
        for _ in range(1500):
            x = op(graph, "Conv2D", x, weights, strides=[1, 1, 1, 1], padding="SAME")
            x = op(graph, "Pad", x, [[0, 0], [1, 1], [0, 0], [0, 0]])
        assert why(graph, x) == ["placeholder 'x' dim 1"]


def import_unregistered(graph: Graph, text) -> Tensor:
    importer = GraphImporter(graph, text, ImportOptions(allow_unregistered=True))
    importer.prepare()
    importer.commit()
    return graph.get_tensor_by_name("m:0")


class TestFaultyShapeFunctions:
    @pytest.mark.parametrize(
        "error",
        [KeyError("k"), ZeroDivisionError(), RuntimeError("r"), AssertionError(), OSError()],
    )
    def test_whatever_they_raise_names_op_and_node(self, error: Exception) -> None:
        def fail(c: InferenceContext) -> None:
            raise error

        registry = OpRegistry()
        register_op("Faulty", outputs=["y: float"], shape_fn=fail, registry=registry)
        with pytest.raises(InvalidArgumentError, match=r"function of Faulty failed.*'f'") as e:
            op(Graph(registry), "Faulty", name="f")
        assert (e.value.node, e.value.op) == ("f", "Faulty")
        assert e.value.__cause__ is error

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ([-2], "-2"),
            ([[1, 2]], "rank 1"),
        ],
    )
    def test_values_that_are_no_shape(self, graph: Graph, value, message: str) -> None:
        sizes = constant(graph, value, int64)
        with pytest.raises(InvalidArgumentError, match=message) as e:
            op(graph, "BroadcastTo", 1.0, sizes, name="b")
        assert e.value.node == "b"

    def test_more_elements_than_there_can_be(self, graph: Graph) -> None:
        """Made, as TensorFlow makes it; the shape cannot be asked for."""
        sizes = constant(graph, [2**62, 4], int64)
        tensor = op(graph, "BroadcastTo", 1.0, sizes, name="b")
        with pytest.raises(InvalidArgumentError, match=r"'b:0'.*4611686018427387904") as e:
            graph.infer_shapes()[tensor]
        assert e.value.node == "b"

    def test_a_variable_must_have_the_type_that_is_read(self, graph: Graph) -> None:
        variable = op(graph, "VarHandleOp", dtype=float32, shape=PartialTensorShape([2]))
        with pytest.raises(
            InvalidArgumentError, match=r"Expected float got int32.*{{node r}}"
        ) as e:
            op(graph, "ReadVariableOp", variable, dtype=int32, name="r")
        assert e.value.node == "r"

    def test_a_negative_dimension_names_the_node(self, graph: Graph) -> None:
        attrs = {"strides": [1, 1, 1, 1], "padding": "VALID"}
        x = placeholder(graph, [1, 2, 2, 1])
        with pytest.raises(InvalidArgumentError, match=r"Negative dimension size.*3 from 2") as e:
            op(graph, "Conv2D", x, np.ones([3, 3, 1, 1], np.float32), name="c", **attrs)
        assert e.value.node == "c"

    def test_what_a_list_holds_must_fit(self, graph: Graph) -> None:
        held = op(graph, "TensorListReserve", [2], 3, element_dtype=float32, shape_type=int32)
        with pytest.raises(InvalidArgumentError, match="get") as e:
            op(graph, "TensorListGetItem", held, 0, [5], element_dtype=float32, name="get")
        assert e.value.node == "get"
