"""The ops that TensorFlow's XLA compiles: which have kernels here, and what these must know at compile time."""

import json

import pytest
from tests.xla.recorded import VECTORS

from opkernel.xla import global_xla_op_registry

pytestmark = [pytest.mark.jax, pytest.mark.shared]

FACTS = VECTORS.parent / "facts" / "tf_xla_ops.jsonl"

WITHOUT_KERNEL = {
    "the compiler makes them itself": "Const ControlTrigger NoOp _Arg _Retval",
    "programs run on one device": (
        "CollectiveAssignGroupV2 CollectiveReduceV2 XlaAllReduce XlaRecv XlaReduceScatter XlaSend"
    ),
    "dimensions have one size": "XlaSetDynamicDimensionSize",
    "they hold code for a compiler of TensorFlow's": "XlaCustomCall XlaCustomCallV2",
    "only a pass of TensorFlow puts it into graphs": "_UnaryOpsComposition",
}

OTHER_CONSTANTS = {
    "DynamicPartition": {"partitions"},  # says how large the outputs are; TensorFlow pads them
}


@pytest.fixture(scope="module")
def facts():
    return {fact["op"]: fact for fact in map(json.loads, FACTS.read_text().splitlines())}


def test_which_ops_have_kernels(facts):
    registry = global_xla_op_registry()
    missing = {op for op in facts if not registry.registrations(op)}
    assert missing == {op for ops in WITHOUT_KERNEL.values() for op in ops.split()}


def test_compile_time_constants(facts):
    registry = global_xla_op_registry()
    compiled = [op for op in facts if registry.registrations(op)]
    expected = {op: set(facts[op]["compile_time_constant_inputs"]) for op in compiled}
    found = {op: set(registry.compile_time_constant_input_arg_names(op)) for op in compiled}
    assert found == expected | OTHER_CONSTANTS


def test_ops_of_shapes_alone(facts):
    registry = global_xla_op_registry()
    compiled = [op for op in facts if registry.registrations(op)]
    found = {op for op in compiled if registry.is_metadata_op(op)}
    assert found == {op for op in compiled if facts[op]["metadata_only"]}
