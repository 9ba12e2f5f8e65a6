"""The messages beside TensorFlow's own: same schemas, each reads the other's, one process."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import descriptor_pool, text_format

from opkernel import proto
from opkernel.proto import POOL, GraphDef, OpDef

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.tensorflow

GONE = POOL.FindFileByName("tensorflow/core/framework/op_gen_overrides.proto")  # after 1.3
NO_MESSAGES = {"POOL", "DecodeError", "Message", "message_class", *GONE.message_types_by_name}
MESSAGES = sorted(set(proto.__all__) - NO_MESSAGES)
FILES = sorted(
    path
    for path in (ROOT / "protos" / "tensorflow").rglob("*.proto")
    if path.name != Path(GONE.name).name
)


def field_facts(field):
    """All that a reader or writer of the field depends on."""
    return {
        "number": field.number,
        "type": field.type,
        "repeated": field.is_repeated,
        "packed": field.is_packed,
        "presence": field.has_presence,
        "oneof": field.containing_oneof and field.containing_oneof.name,
        "message": field.message_type and field.message_type.full_name,
        "enum": field.enum_type and field.enum_type.full_name,
        "json": field.json_name,
    }


def message_facts(descriptor):
    """A message type with everything declared inside it."""
    return {
        "name": descriptor.full_name,
        "fields": {field.name: field_facts(field) for field in descriptor.fields},
        "messages": {m.name: message_facts(m) for m in descriptor.nested_types},
        "enums": {e.name: enum_facts(e) for e in descriptor.enum_types},
        "map entry": descriptor.GetOptions().map_entry,
    }


def enum_facts(descriptor):
    return {value.name: value.number for value in descriptor.values}


@pytest.fixture(scope="module")
def tensorflow_pool(tf):
    """The default pool, with TensorFlow's schemas of our files in it."""
    for file in FILES:
        module = file.relative_to(ROOT / "protos").with_suffix("")
        importlib.import_module(".".join(module.parts) + "_pb2")
    return descriptor_pool.Default()


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_has_tensorflows_schema(name, tensorflow_pool):
    ours = getattr(proto, name).DESCRIPTOR
    theirs = tensorflow_pool.FindMessageTypeByName(ours.full_name)
    assert message_facts(ours) == message_facts(theirs)


def test_top_level_enums_are_tensorflows(tensorflow_pool):
    for file in FILES:
        path = str(file.relative_to(ROOT / "protos"))
        ours, theirs = POOL.FindFileByName(path), tensorflow_pool.FindFileByName(path)
        assert {n: enum_facts(e) for n, e in ours.enum_types_by_name.items()} == {
            n: enum_facts(e) for n, e in theirs.enum_types_by_name.items()
        }
        assert sorted(ours.message_types_by_name) == sorted(theirs.message_types_by_name)


def doubling_graph():
    graph = GraphDef()
    graph.versions.producer = 2474
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = 1
    x.attr["shape"].shape.dim.add(size=-1)
    two = graph.node.add(name="two", op="Const")
    two.attr["dtype"].type = 1
    two.attr["value"].tensor.dtype = 1
    two.attr["value"].tensor.tensor_shape.SetInParent()
    two.attr["value"].tensor.float_val.append(2)
    y = graph.node.add(name="y", op="Mul", input=["x", "two"])
    y.attr["T"].type = 1
    return graph


def run_in_tensorflow(tf, graph_def):
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with tf.compat.v1.Session(graph=graph) as session:
            return session.run("y:0", {"x:0": [1.5, -3.0]})


def test_tensorflow_runs_a_graph_of_ours(tf):
    graph_def = tf.compat.v1.GraphDef.FromString(doubling_graph().SerializeToString())
    np.testing.assert_array_equal(run_in_tensorflow(tf, graph_def), [3.0, -6.0])


def test_tensorflow_runs_a_graph_of_ours_in_text(tf):
    text = text_format.MessageToString(doubling_graph())
    graph_def = text_format.Parse(text, tf.compat.v1.GraphDef())
    np.testing.assert_array_equal(run_in_tensorflow(tf, graph_def), [3.0, -6.0])


def test_every_op_def_of_tensorflow_reads_and_writes_unchanged(tf):
    registry = importlib.import_module("tensorflow.python.framework.op_def_registry")
    names = [name for name in dir(tf.raw_ops) if not name.startswith("_")]
    op_defs = [op_def for op_def in map(registry.get, names) if op_def is not None]
    assert len(op_defs) > 1000
    for op_def in op_defs:
        data = op_def.SerializeToString()
        ours = OpDef.FromString(data)
        assert ours.SerializeToString() == data
        assert text_format.MessageToString(ours) == text_format.MessageToString(op_def)


@pytest.mark.parametrize("order", ["tensorflow opkernel.proto", "opkernel.proto tensorflow"])
def test_both_live_in_one_process(order):
    first, second = order.split()
    code = f"""
import {first}
import {second}
from opkernel.proto import OpDef
from tensorflow.core.framework import op_def_pb2
theirs = op_def_pb2.OpDef(name="A")
theirs.input_arg.add(name="x", type=1)
ours = OpDef.FromString(theirs.SerializeToString())
assert type(ours) is not type(theirs) and str(ours) == str(theirs)
assert op_def_pb2.OpDef.FromString(ours.SerializeToString()) == theirs
print("both")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "both", done.stderr
