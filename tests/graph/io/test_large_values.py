"""Constants whose values are read beside the graph: nobody sees a difference."""

import copy
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import DataLossError, OpError
from opkernel.graph import Graph, import_graph_def
from opkernel.graph.io import graph_files, large_values
from opkernel.proto import AttrValue, GraphDef, NodeDef, TensorProto
from opkernel.types import tensor_from_proto, tensor_to_proto

WEIGHTS = np.arange(300_000, dtype=np.float32).reshape(500, 600)


@pytest.fixture
def whole() -> GraphDef:
    """y = x @ weights, with a control edge to the weights."""
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[None, 500], name="x")
        with graph.control_dependencies([raw_ops.NoOp(name="before")]):
            weights = raw_ops.Const(value=WEIGHTS, dtype=opkernel.float32, name="weights")
        raw_ops.MatMul(a=x, b=weights, name="y")
    return graph.as_graph_def()


@pytest.fixture
def path(tmp_path: Path, whole: GraphDef) -> Path:
    """The file of that graph."""
    path = tmp_path / "graph.pb"
    path.write_bytes(whole.SerializeToString())
    return path


def result(graph: Graph, name: str = "y") -> np.ndarray:
    """A step; the first two rows of the weights."""
    with opkernel.Session(graph) as session:
        return session.run(f"{name}:0", {"x:0": np.eye(2, 500, dtype=np.float32)})


def extracted(graph: Graph) -> Graph:
    """A new graph with the product alone."""
    with graph.edit() as edit:
        return edit.extract("y:0")


def test_the_value_is_beside_the_node(path):
    graph_def, values = large_values.parse_with_values(path)
    assert graph_def.ByteSize() < 1000
    np.testing.assert_array_equal(values["weights"], WEIGHTS)
    assert not values["weights"].flags.writeable


def test_messages_of_the_graph_are_whole(path, whole):
    graph = opkernel.load_graph(path)
    (node,) = (node for node in whole.node if node.name == "weights")
    op = graph.get_operation_by_name("weights")
    assert graph.as_graph_def().node == whole.node
    assert op.node_def == node
    assert op.attr["value"] == node.attr["value"]
    assert op.get_attr("value") == node.attr["value"].tensor
    np.testing.assert_array_equal(result(graph), WEIGHTS[:2])


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda graph: pickle.loads(pickle.dumps(graph)),
        lambda graph: extracted(graph),
    ],
    ids=["copy", "deepcopy", "pickle", "extract"],
)
def test_copies_of_the_graph_are_whole(path, again: Callable[[Graph], Graph]):
    graph = again(opkernel.load_graph(path))
    held = graph.get_operation_by_name("weights").get_attr("value")
    np.testing.assert_array_equal(tensor_from_proto(held), WEIGHTS)
    np.testing.assert_array_equal(result(graph), WEIGHTS[:2])


def test_a_graph_outlives_the_one_that_was_loaded(path):
    np.testing.assert_array_equal(result(extracted(opkernel.load_graph(path))), WEIGHTS[:2])


def test_a_changed_constant_keeps_its_value(path):
    graph = opkernel.load_graph(path)
    op = graph.get_operation_by_name("weights")
    op.set_device("/cpu:0")
    assert (op.device, op.node_def.device) == ("/cpu:0", "/cpu:0")
    np.testing.assert_array_equal(result(graph), WEIGHTS[:2])
    op.set_control_inputs(())
    np.testing.assert_array_equal(tensor_from_proto(op.get_attr("value")), WEIGHTS)
    twice = AttrValue(tensor=tensor_to_proto(2 * WEIGHTS))
    op.set_attr("value", twice)
    assert op.attr["value"] == twice
    np.testing.assert_array_equal(result(graph), 2 * WEIGHTS[:2])


def test_an_edit_that_fails_leaves_the_value(path):
    graph = opkernel.load_graph(path)
    with suppress(ZeroDivisionError), graph.edit():
        graph.get_operation_by_name("weights").set_device("/cpu:0")
        raise ZeroDivisionError
    op = graph.get_operation_by_name("weights")
    assert op.device == ""
    np.testing.assert_array_equal(tensor_from_proto(op.get_attr("value")), WEIGHTS)
    np.testing.assert_array_equal(result(graph), WEIGHTS[:2])


def test_the_graph_is_imported_under_another_name(path, whole):
    graph = Graph()
    import_graph_def(opkernel.load_graph(path).as_graph_def(), name="again", graph=graph)
    node = graph.get_operation_by_name("again/weights").node_def
    assert node.attr["value"].tensor.tensor_content == WEIGHTS.tobytes()


CONTENT = WEIGHTS.tobytes()
FLOATS = TensorProto(dtype=opkernel.float32, tensor_content=CONTENT)
FLOATS.tensor_shape.dim.add(size=300_000)


def const(tensor: TensorProto, dtype: int = opkernel.float32, **also: AttrValue) -> NodeDef:
    """A constant."""
    attrs = {"value": AttrValue(tensor=tensor), "dtype": AttrValue(type=dtype)}
    return NodeDef(name="c", op="Const", attr=attrs | also)


def changed(**fields: object) -> TensorProto:
    """The tensor with other fields."""
    tensor = TensorProto()
    tensor.CopyFrom(FLOATS)
    for name, value in fields.items():
        setattr(tensor, name, value)
    return tensor


def of_shape(*sizes: int) -> TensorProto:
    """The tensor with another shape."""
    tensor = changed()
    tensor.ClearField("tensor_shape")
    for size in sizes:
        tensor.tensor_shape.dim.add(size=size)
    return tensor


WITH_FLOATS = changed()
WITH_FLOATS.float_val.append(1)
STRING = TensorProto(dtype=opkernel.string, string_val=[b"x" * 2_000_000])
BOOLS = TensorProto(dtype=opkernel.bool, tensor_content=b"\1" * 1_200_000)
BOOLS.tensor_shape.dim.add(size=1_200_000)
TWOS = TensorProto(dtype=opkernel.bool, tensor_content=b"\2" * 1_200_000)
TWOS.tensor_shape.dim.add(size=1_200_000)
ODD = {
    "plain": [const(FLOATS).SerializeToString()],
    "another shape": [const(of_shape(500, 600)).SerializeToString()],
    "too few elements": [const(of_shape(7)).SerializeToString()],
    "too many elements": [const(of_shape(10**6)).SerializeToString()],
    "a negative size": [const(of_shape(-300_000)).SerializeToString()],
    "of 70 dimensions": [const(of_shape(*[1] * 69, 300_000)).SerializeToString()],
    "an empty shape": [const(of_shape(0)).SerializeToString()],
    "no such type": [const(changed(dtype=99)).SerializeToString()],
    "another type": [const(FLOATS, opkernel.int32).SerializeToString()],
    "a type of as many bytes": [const(changed(dtype=opkernel.int32)).SerializeToString()],
    "a version": [const(changed(version_number=3)).SerializeToString()],
    "values, too": [const(WITH_FLOATS).SerializeToString()],
    "a long string": [const(STRING, opkernel.string).SerializeToString()],
    "bools": [const(BOOLS, opkernel.bool).SerializeToString()],
    "bools of 2": [const(TWOS, opkernel.bool).SerializeToString()],
    "a second large attr": [const(FLOATS, _more=AttrValue(tensor=FLOATS)).SerializeToString()],
    "a large attr elsewhere": [
        NodeDef(name="c", op="NoOp", attr={"_more": AttrValue(tensor=FLOATS)}).SerializeToString()
    ],
    "the value of no constant": [
        NodeDef(name="c", op="NoOp", attr={"value": AttrValue(tensor=FLOATS)}).SerializeToString()
    ],
    "a value that comes twice": [
        const(FLOATS).SerializeToString()
        + NodeDef(attr={"value": AttrValue(tensor=of_shape(500, 600))}).SerializeToString()
    ],
    "a small value behind it": [
        const(FLOATS).SerializeToString()
        + NodeDef(attr={"value": AttrValue(f=1.0)}).SerializeToString()
    ],
    "a name behind it": [const(FLOATS).SerializeToString() + NodeDef(name="d").SerializeToString()],
    "two of one name": [const(FLOATS).SerializeToString()] * 2,
    "unknown fields": [const(FLOATS).SerializeToString() + b"\xf2\x07\x03abc"],
}


def outcome(load: Callable[[], Graph]) -> tuple[object, ...]:
    """The graph and its value, or the kind of the error and what it says."""
    try:
        graph = load()
        (op,) = graph.get_operations()
        with opkernel.Session(graph) as session:
            value = np.asarray(session.run(f"{op.name}:0") if op.outputs else 0)
        return graph.as_graph_def(), value.dtype, value.shape, value.tobytes()
    except OpError as error:
        return type(error), error.message


@pytest.mark.parametrize("nodes", ODD.values(), ids=ODD.keys())
def test_odd_files_are_read_as_without_it(tmp_path: Path, monkeypatch, nodes):
    data = b"".join(field(1, node) for node in nodes)
    path = tmp_path / "graph.pb"
    path.write_bytes(data)
    found = outcome(lambda: opkernel.load_graph(path))
    monkeypatch.setattr(graph_files, "_SMALL", 1 << 60)
    assert found == outcome(lambda: opkernel.load_graph(path))


def field(number: int, content: bytes) -> bytes:
    """A field of a message."""
    size, tag = len(content), bytearray([number << 3 | 2])
    while size > 127:
        tag.append(size & 127 | 128)
        size >>= 7
    return bytes(tag) + bytes([size]) + content


@pytest.mark.parametrize("cut", [1, 3, 100, 1_000_000, 1_199_900])
def test_a_file_that_is_cut_off_is_damaged(path, cut):
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    with pytest.raises(DataLossError):
        opkernel.load_graph(path)


@pytest.mark.parametrize("least", [1, 100, 5000])
@pytest.mark.parametrize("window", [1, 7, 4096])
def test_any_limits_give_the_same_graph(path, whole, monkeypatch, least, window):
    monkeypatch.setattr(large_values, "_LEAST_VALUE", 4096 if least == 1 else least)
    monkeypatch.setattr(large_values, "_WINDOW", window)
    monkeypatch.setattr(large_values, "_PIECE", 100)
    assert opkernel.load_graph(path).as_graph_def().node == whole.node
