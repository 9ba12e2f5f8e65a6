"""The kernels of the catalogue keep the rules: on recorded calls, and some on drawn ones."""

import functools
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkernel.graph import Graph, Operation, import_graph_def
from opkernel.kernel import (
    REFERENCE,
    get_registered_kernels_for_op,
    global_kernel_registry,
    registered_providers,
)
from opkernel.opdef import global_op_registry
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.ops.declared.nn import QUANTIZED_CONVOLUTIONS, QUANTIZED_MATMULS
from opkernel.ops.loader import load_all_ops
from opkernel.proto import GraphDef
from opkernel.runtime import Session
from opkernel.testing import OpCall, check_provider_on_call, examine_op
from opkernel.testing.check_kernels import Checker

CALLS = Path(__file__).parent.parent / "data" / "op_calls.pb.xz"

# One of each kind: of data, of shapes, of indices, with lists, windows, strings, many types.
DRAWN = ["AddN", "ArgMax", "BroadcastTo", "Cast", "ConcatV2", "Conv2D", "Cumsum", "DynamicStitch"]
DRAWN += ["Equal", "Fill", "GatherNd", "MatMul", "Mean", "OneHot", "Pad", "Pow", "Range", "Relu"]
DRAWN += ["Reshape", "SelectV2", "Slice", "SoftmaxCrossEntropyWithLogits", "StridedSlice"]
DRAWN += ["StringJoin", "TopKV2", "Transpose", "UnsortedSegmentSum", "Where", "ZerosLike"]

# TensorFlow 2.21 does the same: shape function and kernel differ, or the kernel serves no node.
CONTRADICTS_ITSELF = {
    "MaxPool": "a stride over the depth is inferred, and not taken",
    "MaxPoolV2": "a stride over the depth is inferred, and not taken",
    "TileGrad": "the kernel has a constraint on an attr that the op lacks",
    "TopK": "the kernel has a constraint on an attr that the op lacks",
}


LEAVES_OUTPUTS = {"QuantizedConcatV2", *QUANTIZED_CONVOLUTIONS, *QUANTIZED_MATMULS}
LEAVES_OUTPUTS.add("QuantizedConv2D")  # with some types


@functools.cache
def session() -> Session:
    graph = Graph()
    with graph.as_default():
        import_graph_def(GraphDef.FromString(lzma.decompress(CALLS.read_bytes())), name="")
    return Session(graph)


@functools.cache
def recorded() -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for op in session().graph.get_operations():
        if get_registered_kernels_for_op(op.type).kernel and op.type not in (
            "Const",
            "Placeholder",
        ):
            found.setdefault(op.type, []).append(op)
    return found


def as_array(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value
    array = np.empty((), object)
    array[()] = value
    return array


def as_kernels_take(value: Any) -> Any:
    """The array: of a quantised tensor its integers."""
    array = as_array(value)
    fields = array.dtype.fields
    return array if fields is None else array.view(next(iter(fields.values()))[0])


NOT_RECORDED = {
    "Dilation2DBackpropInput",
    "DivNoNan",
    "FloorMod",
    "Reciprocal",
    "SoftplusGrad",
    "TruncateDiv",
}
"""Ops of which no call is recorded with a type that each provider takes: floats, or half numbers (loops/test_half)."""


@pytest.mark.parametrize("name", sorted(set(MODULE_OF_OP) - LEAVES_OUTPUTS))
def test_kernels_keep_the_rules_on_recorded_calls(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    registration = global_op_registry().look_up(name)
    checker = Checker(global_op_registry(), global_kernel_registry())
    providers = [
        one
        for one in registered_providers()
        if one.name != REFERENCE and one.kernels.registrations_for(name)
    ]
    taken_by: Counter[str] = Counter()
    for op in recorded().get(name, ()):
        if not registration.op_def.HasField("deprecation"):
            inputs = tuple(map(as_kernels_take, session().run(list(op.inputs))))
            call = OpCall(registration, op.node_def, inputs)
            taken = checker.check(call)
            if not taken and not any("func" in attr.type for attr in registration.op_def.attr):
                session().run(list(op.outputs))  # tells why
                raise AssertionError(op.name)
            for provider in providers:
                taken_by[provider.name] += check_provider_on_call(provider, call)
    if (
        name not in NOT_RECORDED
        and recorded().get(name)
        and not registration.op_def.HasField("deprecation")
    ):
        assert all(taken_by[one.name] for one in providers)  # each has kernels of some types


@pytest.mark.parametrize("name", DRAWN)
def test_kernels_keep_the_rules_on_drawn_calls(name: str) -> None:
    report = examine_op(name, max_examples=20)
    assert report.failure is None, str(report.failure)
    assert report.ran > 5


@pytest.mark.parametrize("name", CONTRADICTS_ITSELF)
def test_what_contradicts_itself_is_found(name: str) -> None:
    assert any(examine_op(name, max_examples=300 * tries).failure for tries in (1, 4))


def test_element_wise_kernels_give_parts_for_parts() -> None:
    """All that claim it: what they compute of parts of their inputs are parts of the whole."""
    load_all_ops()
    registrations = global_kernel_registry().registrations()
    claiming = {one.kernel_def.op for one in registrations if one.contract.elementwise}
    assert len(claiming) > 90
    reports = [examine_op(name, max_examples=10) for name in sorted(claiming)]
    assert [str(report.failure) for report in reports if report.failure is not None] == []
    assert sum(report.ran > 5 for report in reports) > 90


def test_kernels_of_the_catalogue_claim_that_their_outputs_are_as_declared() -> None:
    load_all_ops()
    unclaimed = [
        f"{one.owner}: {one.class_name}"
        for one in global_kernel_registry().registrations()
        if one.owner.startswith("opkernel.")
        and not one.contract.outputs_as_declared
        and one.kernel_def.op not in LEAVES_OUTPUTS
    ]
    assert unclaimed == []
