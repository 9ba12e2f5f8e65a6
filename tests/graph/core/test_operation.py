"""Operations and tensors: looking at them, finding them, rewiring them."""

import gc
import weakref

import numpy as np
import pytest

from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from opkernel.graph import Graph, GraphImporter, ImportOptions, Operation, Tensor
from opkernel.proto import AttrValue, GraphDef, NodeDef
from opkernel.types import DataType, float32, int32


def const(graph: Graph, value: object = 1.0, name: str = "c") -> Tensor:
    dtype = DataType.DT_FLOAT if isinstance(value, float) else DataType.DT_INT32
    attrs = {"value": np.asarray(value, dtype.numpy_dtype), "dtype": dtype}
    return graph.create_op("Const", name=name, attrs=attrs).outputs[0]


def add(graph: Graph, x: object, y: object, name: str = "sum") -> Operation:
    return graph.create_op("AddV2", [x, y], name=name)


class TestLookingAt:
    def test_names_types_and_identity(self, graph: Graph) -> None:
        split = graph.create_op("Split", [0, const(graph)], attrs={"num_split": 2}, name="s")
        assert [t.name for t in split.outputs] == ["s:0", "s:1"]
        assert split.outputs is split.values()
        assert split.outputs[1].op is split
        assert split.outputs[1].value_index == 1
        assert split.outputs[1].graph is graph
        assert repr(split) == "<opkernel.Operation 's' type=Split>"
        assert repr(split.outputs[0]) == "<opkernel.Tensor 's:0' shape=<unknown> dtype=float32>"

    def test_inputs_and_outputs_by_number_as_the_c_api_names_them(self, graph: Graph) -> None:
        op = add(graph, const(graph), const(graph))
        output, given = op._tf_output(0), op._tf_input(1)
        assert (output.oper, output.index) == (op, 0)
        assert (given.oper, given.index) == (op, 1)
        assert output == op._tf_output(0)
        assert op._tf_output(7).index == 7  # TensorFlow does not check it either

    def test_get_attr_follows_tensorflows_rules(self, graph: Graph) -> None:
        attrs = {
            "dtype": float32,
            "shape": [2, None],
            "_s": b"text",
            "_list": [1, 2],
            "_types": [float32, int32],
            "_empty": [],
            "_f": 0.5,
        }
        op = graph.create_op("Placeholder", attrs=attrs)
        assert op.get_attr("dtype") is float32
        assert [dim.size for dim in op.get_attr("shape").dim] == [2, -1]
        assert op.get_attr("_s") == b"text"
        assert op.get_attr("_list") == [1, 2]
        assert op.get_attr("_types") == [float32, int32]
        assert op.get_attr("_empty") == []
        assert op.get_attr("_f") == 0.5
        with pytest.raises(InvalidArgumentError, match="'Placeholder' has no attr named 'nope'"):
            op.get_attr("nope")

    def test_tensors_have_no_value(self, graph: Graph) -> None:
        tensor = const(graph)
        for use in (np.asarray, bool, len, iter, list):
            with pytest.raises(TypeError, match="'c:0' is a symbolic tensor"):
                use(tensor)

    def test_running_needs_a_session(self, graph: Graph) -> None:
        tensor = const(graph)
        with pytest.raises(FailedPreconditionError, match="no default session"):
            tensor.eval()
        with pytest.raises(FailedPreconditionError, match="no default session"):
            tensor.op.run()

    def test_running_goes_to_the_session_given(self, graph: Graph) -> None:
        class Recorder:
            def run(self, fetches: object, feed_dict: object) -> object:
                return fetches, feed_dict

        tensor = const(graph)
        assert tensor.eval({"a": 1}, Recorder()) == (tensor, {"a": 1})


class TestFinding:
    def test_by_name(self, graph: Graph) -> None:
        tensor = const(graph)
        assert graph.get_operation_by_name("c") is tensor.op
        assert graph.get_tensor_by_name("c:0") is tensor
        assert graph.as_graph_element("c:0") is tensor
        assert graph.as_graph_element("c") is tensor.op
        assert graph.as_graph_element(tensor, allow_operation=False) is tensor

    def test_through_as_graph_element_of_the_object(self, graph: Graph) -> None:
        class Variable:
            def _as_graph_element(self) -> Tensor:
                return tensor

        tensor = const(graph)
        assert graph.as_graph_element(Variable()) is tensor
        assert add(graph, Variable(), tensor).inputs[0] is tensor
        with graph.control_dependencies([Variable()]):
            assert graph.create_op("NoOp").control_inputs == (tensor.op,)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("d", "'d' refers to an Operation not in the graph"),
            ("d:0", "'d:0' refers to a Tensor which does not exist. The operation, 'd', does not"),
            ("c:1", "exists but only has 1 outputs"),
            ("c:" + "9" * 5000, "only has 1 outputs"),
            ("c:x", "does not exist"),
            ("", "not in the graph"),
        ],
    )
    def test_what_does_not_exist(self, graph: Graph, name: str, message: str) -> None:
        const(graph)
        with pytest.raises(NotFoundError, match=message):
            graph.as_graph_element(name)

    def test_what_is_of_the_wrong_kind(self, graph: Graph, make_graph) -> None:
        tensor = const(graph)
        with pytest.raises(InvalidArgumentError, match="'c' refers to an Operation, not a Tensor"):
            graph.get_tensor_by_name("c")
        with pytest.raises(
            InvalidArgumentError, match="'c:0' refers to a Tensor, not an Operation"
        ):
            graph.get_operation_by_name("c:0")
        with pytest.raises(InvalidArgumentError, match="Can not convert a int into a Tensor or Op"):
            graph.as_graph_element(3)
        with pytest.raises(InvalidArgumentError, match="Can not convert a Tensor into a Operation"):
            graph.as_graph_element(tensor, allow_tensor=False)
        with pytest.raises(InvalidArgumentError, match="not an element of this graph"):
            graph.as_graph_element(const(make_graph()))

    def test_of_an_operation_of_an_unregistered_op_nothing_is_found(self) -> None:
        graph_def = GraphDef(node=[NodeDef(name="n", op="Nope")])
        graph = Graph()
        importer = GraphImporter(graph, graph_def, ImportOptions(allow_unregistered=True))
        importer.prepare()
        importer.commit()
        assert graph.get_operation_by_name("n").type == "Nope"
        with pytest.raises(NotFoundError, match=r"Op type not registered 'Nope'[^$]*{{node n}}"):
            graph.get_tensor_by_name("n:0")


class TestConsumers:
    def test_once_for_each_input(self, graph: Graph) -> None:
        c = const(graph)
        twice = add(graph, c, c)
        split = graph.create_op("Split", [0, c], attrs={"num_split": 2})
        user = graph.create_op("Identity", [split.outputs[1]])
        assert c.consumers() == [twice, twice, split]
        assert split.outputs[0].consumers() == []
        assert split.outputs[1].consumers() == [user]

    def test_operations_made_later_are_seen(self, graph: Graph) -> None:
        c = const(graph)
        assert c.consumers() == []
        later = graph.create_op("Identity", [c], control_inputs=[c])
        assert c.consumers() == [later]
        assert c.op.control_outputs == [later]


class TestRewiring:
    def test_update_input(self, graph: Graph) -> None:
        a, b = const(graph, name="a"), const(graph, name="b")
        total = add(graph, a, a)
        assert a.consumers() == [total, total]
        total.update_input(1, b)
        assert total.inputs == (a, b)
        assert list(total.node_def.input) == ["a", "b"]
        assert (a.consumers(), b.consumers()) == ([total], [total])

    def test_update_input_infers_shapes_again(self, graph: Graph) -> None:
        wide = graph.create_op("Placeholder", attrs={"dtype": float32, "shape": [4]}).outputs[0]
        total = add(graph, const(graph), const(graph))
        assert total.outputs[0].shape.as_list() == []
        total.update_input(0, wide)
        assert total.outputs[0].shape.as_list() == [4]

    def test_update_input_refuses_what_does_not_fit(self, graph: Graph, make_graph) -> None:
        total = add(graph, const(graph), const(graph))
        with pytest.raises(InvalidArgumentError, match="'sum' has no input 2: it has 2"):
            total.update_input(2, const(graph))
        with pytest.raises(InvalidArgumentError, match="Input 0 of node sum was passed int32"):
            total.update_input(0, const(graph, 1))
        with pytest.raises(InvalidArgumentError, match="not an element of this graph"):
            total.update_input(0, const(make_graph()))
        assert [t.name for t in total.inputs] == ["c:0", "c_1:0"]

    def test_a_cycle_made_by_hand_has_unknown_shapes(self, graph: Graph) -> None:
        first = graph.create_op("Identity", [const(graph)])
        second = graph.create_op("Identity", [first.outputs[0]])
        first.update_input(0, second.outputs[0])
        assert first.outputs[0].shape.rank in (None, 0)

    def test_add_control_input(self, graph: Graph) -> None:
        c, d = const(graph, name="c"), const(graph, name="d")
        assert d.op.control_outputs == []
        c.op.add_control_input(d.op)
        c.op.add_control_inputs([d.op])
        assert c.op.control_inputs == (d.op,)
        assert d.op.control_outputs == [c.op]
        assert list(c.op.node_def.input) == ["^d"]

    def test_an_operation_takes_as_many_inputs_as_its_op(self, graph: Graph) -> None:
        op = add(graph, const(graph), const(graph))
        for inputs in ((), op.inputs[:1], (*op.inputs, op.inputs[0])):
            with pytest.raises(InvalidArgumentError, match=f"do not match {len(inputs)} inputs"):
                op.set_attrs({}, inputs)
        with pytest.raises(
            InvalidArgumentError, match="'split_dim' of 's' is an Operation; expected"
        ):
            graph.create_op("Split", [op, const(graph)], attrs={"num_split": 2}, name="s")

    def test_attrs_and_inputs_that_go_together(self, graph: Graph) -> None:
        c, i = const(graph), const(graph, 1, name="i")
        both = graph.create_op("IdentityN", [c])
        types = AttrValue(list=AttrValue.ListValue(type=[float32, int32]))
        with pytest.raises(InvalidArgumentError, match="do not match 1 inputs"):
            both.set_attr("T", types)
        both.set_attrs({"T": types}, [c, i])
        assert both.input_types == both.output_types == (float32, int32)
        assert list(both.node_def.input) == ["c", "i"]
        graph.create_op("Identity", [both.outputs[1]])
        for attrs, inputs in (([float32], [c]), ([float32, float32], [c, c])):
            types = AttrValue(list=AttrValue.ListValue(type=attrs))
            with pytest.raises(InvalidArgumentError, match="its outputs are of other types"):
                both.set_attrs({"T": types}, inputs)
        assert both.inputs == (c, i)

    def test_set_attr_changes_the_types(self, graph: Graph) -> None:
        op = graph.create_op("Placeholder", attrs={"dtype": float32})
        op.set_attr("dtype", AttrValue(type=DataType.DT_INT32))
        assert op.outputs[0].dtype == int32
        with pytest.raises(InvalidArgumentError, match="dtype"):
            op.set_attr("dtype", AttrValue(i=3))
        assert op.outputs[0].dtype == int32

    def test_set_device(self, graph: Graph) -> None:
        op = const(graph).op
        op.set_device("/device:CPU:1")
        assert op.device == op.outputs[0].device == op.node_def.device == "/device:CPU:1"


def test_collections(graph: Graph) -> None:
    graph.add_to_collection("losses", 1)
    graph.add_to_collection("losses", 2)
    graph.get_collection("losses").append(3)
    assert graph.get_collection("losses") == [1, 2]
    graph.get_collection_ref("losses").append(3)
    assert graph.get_collection("losses") == [1, 2, 3]
    assert graph.get_collection("none") == []
    assert graph.get_all_collection_keys() == ["losses"]


def test_version_counts_operations(graph: Graph) -> None:
    before = graph.version
    const(graph)
    assert graph.version > before


def test_a_graph_dies_with_its_last_reference(make_graph) -> None:
    graph = make_graph()
    alive = weakref.ref(const(graph).op)
    del graph
    gc.collect()
    assert alive() is None


def test_the_types_of_inputs_and_their_names_in_a_node_def() -> None:
    graph = Graph()
    rows = graph.create_op(
        "Unpack",
        [graph.create_op("Placeholder", attrs={"dtype": float32}).outputs[0]],
        attrs={"num": 2},
        name="rows",
    )
    total = add(graph, rows.outputs[0], rows.outputs[1])
    assert total.input_dtypes == (float32, float32)
    assert [tensor._as_node_def_input() for tensor in total.inputs] == ["rows", "rows:1"]
    assert list(total.node_def.input) == ["rows", "rows:1"]
