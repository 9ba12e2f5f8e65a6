"""What the campaign against TensorFlow lets pass, and what not."""

from functools import partial

import numpy as np
import pytest
from tools.campaigns.freedom import flush_subnormals, free_outputs, is_free
from tools.campaigns.ways import Outcome

from opkernel.errors import Code, InvalidArgumentError, NotFoundError
from opkernel.proto import GraphDef, NodeDef
from opkernel.types import tensor_from_proto, tensor_to_proto


def call(op, *values, **attrs):
    graph_def = GraphDef()
    for number, value in enumerate(values):
        constant = graph_def.node.add(name=f"c{number}", op="Const")
        constant.attr["value"].tensor.CopyFrom(tensor_to_proto(value))
    node = NodeDef(name="call", op=op, input=[f"c{i}" for i in range(len(values))])
    for name, value in attrs.items():
        node.attr[name].b = value
    graph_def.node.append(node)
    return graph_def


f32 = partial(np.array, dtype=np.float32)
IMAGE = np.ones((1, 1, 1, 1), np.float32)


@pytest.mark.parametrize(
    ("graph_def", "free"),
    [
        (call("FusedBatchNormV3", IMAGE, is_training=False), {3, 4, 5}),
        (call("FusedBatchNormV3", IMAGE, is_training=True), set()),
        (call("FusedBatchNormV3", IMAGE), set()),  # by default it trains
        (call("BlockLSTM", np.int64(1), np.ones((2, 1, 1), np.float32)), {0, 2, 3, 4, 5}),
        (call("BlockLSTM", np.int64(2), np.ones((2, 1, 1), np.float32)), set()),
        (call("NthElement", f32([1, np.nan]), np.int32(0)), {0, 1}),
        (call("NthElement", f32([1, 2]), np.int32(0)), set()),
        (call("Neg", f32([1, np.nan])), set()),
    ],
)
def test_outputs_are_free_only_where_nothing_writes_them(graph_def, free):
    assert free_outputs(graph_def) == free


def test_subnormals_are_flushed_and_nothing_else():
    graph_def = call("Neg", f32([1e-40, 1e-30, -1e-40, np.nan]))
    assert flush_subnormals(graph_def)
    flushed = tensor_from_proto(graph_def.node[0].attr["value"].tensor)
    np.testing.assert_array_equal(flushed, f32([0, 1e-30, 0, np.nan]))
    assert not flush_subnormals(graph_def)


def test_a_status_code_is_free_only_beside_its_reason():
    missing, invalid = Outcome(None, NotFoundError("")), Outcome(None, InvalidArgumentError(""))
    placer = (Code.INVALID_ARGUMENT, "No OpKernel was registered to support Op 'Imag'")
    assert is_free(missing, placer, call("Imag"))
    assert not is_free(invalid, placer, call("Imag"))
    assert not is_free(missing, (Code.INVALID_ARGUMENT, "Shape must be rank 1"), call("Imag"))
    assert not is_free(Outcome((1,), None), [1], call("AvgPoolGrad"))
