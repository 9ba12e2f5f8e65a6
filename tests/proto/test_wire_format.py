"""The messages against files that TensorFlow wrote (tests/data), and against protobuf's rules."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from google.protobuf.unknown_fields import UnknownFieldSet

from opkernel import proto
from opkernel.proto import (
    POOL,
    AttrValue,
    DecodeError,
    GraphDef,
    KernelList,
    MetaGraphDef,
    NodeDef,
    OpDef,
    OpList,
    SavedModel,
    TensorProto,
    message_class,
)

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"

SAMPLES: dict[str, Any] = {
    "graph_with_functions.pb": GraphDef,
    "kernel_list.pb": KernelList,
    "meta_graph.pb": MetaGraphDef,
    "op_list.pb": OpList,
    "saved_model.pb": SavedModel,
}


def read(name):
    return SAMPLES[name].FromString((DATA / name).read_bytes())


def unknown_fields(message):
    """The numbers of fields that the message's type does not declare, at any depth."""
    own: Any = UnknownFieldSet(message)
    found = [field.field_number for field in own]
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None or descriptor.message_type.full_name.startswith(
            "google."
        ):
            continue
        values = value if hasattr(value, "__len__") else [value]
        if hasattr(value, "items"):
            values = [item for item in value.values() if hasattr(item, "ListFields")]
        for each in values:
            found += unknown_fields(each)
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_what_tensorflow_wrote_is_known_in_full_and_survives_a_round_trip(name):
    message = read(name)
    assert message.ByteSize() > 1000
    assert unknown_fields(message) == []
    again = type(message).FromString(message.SerializeToString(deterministic=True))
    assert again == message


def test_a_list_of_op_defs_is_written_byte_for_byte_as_tensorflow_writes_it():
    data = (DATA / "op_list.pb").read_bytes()
    assert OpList.FromString(data).SerializeToString() == data


def test_a_graph_reads_the_same_from_binary_and_text():
    text = (DATA / "graph_with_functions.pbtxt").read_text()
    graph = read("graph_with_functions.pb")
    assert text_format.Parse(text, GraphDef()) == graph
    assert text_format.MessageToString(graph) == text


def test_fields_of_a_graph():
    graph = read("graph_with_functions.pb")
    nodes = {node.name: node for node in graph.node}
    assert nodes["x"].op == "Placeholder"
    assert [d.size for d in nodes["x"].attr["shape"].shape.dim] == [-1, 3]
    assert list(nodes["repeated"].attr["value"].tensor.int_val) == [7]
    assert list(nodes["strings"].attr["value"].tensor.string_val) == [b"\x00\xff", "snö".encode()]
    assert nodes["strings"].attr["value"].WhichOneof("value") == "tensor"
    assert any(f.signature.name.startswith("__inference_clipped") for f in graph.library.function)
    assert graph.versions.producer == 2474


def test_fields_of_op_defs():
    ops = {op.name: op for op in read("op_list.pb").op}
    padding = next(attr for attr in ops["Conv2D"].attr if attr.name == "padding")
    assert list(padding.allowed_values.list.s) == [b"SAME", b"VALID", b"EXPLICIT"]
    reserve = ops["TensorListReserve"].output_arg[0].experimental_full_type
    full_types = POOL.FindEnumTypeByName("tensorflow.FullTypeId").values_by_name
    assert reserve.type_id == full_types["TFT_ARRAY"].number == 1001
    assert reserve.args[0].args[0].s == "element_dtype"
    assert ops["VarHandleOp"].is_stateful


def test_fields_of_a_saved_model():
    saved = read("saved_model.pb")
    assert saved.saved_model_schema_version == 1
    meta = saved.meta_graphs[0]
    assert list(meta.meta_info_def.tags) == ["serve"]
    assert meta.meta_info_def.tensorflow_version == "2.21.0"
    assert meta.signature_def["serving_default"].inputs["x"].dtype == 1
    assert meta.object_graph_def.nodes[0].user_object.identifier == "_generic_user_object"


def test_fields_of_a_meta_graph():
    meta = read("meta_graph.pb")
    assert list(meta.collection_def["answers"].int64_list.value) == [42]
    assert meta.saver_def.restore_op_name == "save/restore_all"


def test_fields_that_the_schema_lacks_survive_a_round_trip():
    # Field 999 as a varint, as bytes and as a fixed 32-bit number, beside `name` and inside a node.
    extra = b"\xb8\x3e\x05" + b"\xba\x3e\x03abc" + b"\xbd\x3e\x01\x02\x03\x04"
    node = b"\x0a\x01n" + extra
    data = b"\x0a" + bytes([len(node)]) + node + extra
    graph = GraphDef.FromString(data)
    assert graph.node[0].name == "n"
    assert unknown_fields(graph) == [999] * 6
    assert graph.SerializeToString() == data
    copy = GraphDef()
    copy.CopyFrom(graph)
    assert copy.SerializeToString() == data


def test_unknown_enum_values_survive():
    value = AttrValue(type=4242)
    assert AttrValue.FromString(value.SerializeToString()).type == 4242


@pytest.mark.parametrize("data", [b"\x0a\xff", b"\x0a\x05ab", b"\xff\xff\xff", b"<html>"])
def test_what_is_not_a_message_is_refused(data):
    with pytest.raises(DecodeError):
        GraphDef.FromString(data)


def test_messages_carry_tensorflows_full_names():
    assert OpDef.DESCRIPTOR.full_name == "tensorflow.OpDef"
    assert OpDef.DESCRIPTOR.file.name == "tensorflow/core/framework/op_def.proto"
    assert POOL.FindMessageTypeByName("tensorflow.OpDef") is OpDef.DESCRIPTOR
    assert POOL.FindEnumTypeByName("tensorflow.DataType").values_by_name["DT_HALF"].number == 19


def test_a_message_type_has_one_class():
    node = NodeDef.DESCRIPTOR
    assert message_class(node) is NodeDef
    assert type(GraphDef(node=[NodeDef()]).node[0]) is NodeDef
    assert message_class(AttrValue.DESCRIPTOR.nested_types_by_name["ListValue"]) is (
        AttrValue.ListValue
    )


def test_the_needed_messages_are_there():
    needed = """OpDef OpList OpDeprecation AttrValue NameAttrList NodeDef KernelDef KernelList
        GraphDef VersionDef FunctionDefLibrary FunctionDef GradientDef TensorProto TensorShapeProto
        VariantTensorDataProto ResourceHandleProto FullTypeDef ApiDef ApiDefs SavedModel
        MetaGraphDef SignatureDef TensorInfo CollectionDef SaverDef SavedObjectGraph
        TrackableObjectGraph VariableDef"""
    assert set(needed.split()) <= set(proto.__all__)


def test_a_tensor_in_text():
    text = "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1.5 float_val: -2"
    tensor = text_format.Parse(text, TensorProto())
    assert list(tensor.float_val) == [1.5, -2.0]
    assert text_format.MessageToString(tensor, as_one_line=True) == (
        "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1.5 float_val: -2.0"
    )


def test_protobufs_python_implementation_serves_too():
    """Where protobuf has no compiled core (free-threaded Python), the slow one must do."""
    code = """
from google.protobuf.internal import api_implementation
from opkernel.proto import GraphDef, NodeDef, message_class
import sys
assert api_implementation.Type() == "python"
graph = GraphDef.FromString(open(sys.argv[1], "rb").read())
assert type(graph.node[0]) is NodeDef is message_class(NodeDef.DESCRIPTOR)
assert GraphDef.FromString(graph.SerializeToString()) == graph
print(len(graph.node))
"""
    environment = {
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
        "PYTHONPATH": str(ROOT / "src"),
    }
    sample = DATA / "graph_with_functions.pb"
    done = subprocess.run(
        [sys.executable, "-c", code, str(sample)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("6", "")
