"""Calls that no recording has, written out: on variables, generators, stacks and TensorArrays, and with other attrs."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import opkernel
from opkernel import raw_ops
from opkernel.graph import Graph, Operation
from opkernel.opdef import global_op_registry
from opkernel.ops.registration import INTEGERS
from opkernel.proto import NodeDef
from opkernel.types import DataType

__all__ = ["written_calls"]

_FLOAT = DataType.DT_FLOAT
_RNG = np.random.default_rng(5)
_VALUE = _RNG.uniform(0.5, 1.5, (2, 3)).astype(np.float32)
_SCALARS = {"lr_power": -0.5, "l1": 0.01, "l2": 0.01, "epsilon": 1e-3}
_GENERATOR = np.array([3, 5, 7], np.int64)


def written_calls() -> list[list[NodeDef]]:
    """The nodes of each call; what is called stands last."""
    found = [*_on_variables(), *_on_generators(), *_on_lists(), *_on_numbers()]
    return [_nodes(op) for op in found]


def _nodes(called: Operation) -> list[NodeDef]:
    others = [op.node_def for op in called.graph.get_operations() if op is not called]
    return [*others, called.node_def]


def _on_variables() -> Iterator[Operation]:
    for name in global_op_registry().names():
        if name.startswith(("ResourceApply", "ResourceScatter", "ResourceGather")):
            yield _on_variable(name)
    for name in ("AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp"):
        yield _on_variable(name)
    for name in ("ReadVariableOp", "VarIsInitializedOp", "VariableShape"):
        yield _on_variable(name)


def _on_variable(name: str) -> Operation:
    """A call on variables that are made before it and read after it."""
    op_def = global_op_registry().look_up_op_def(name)
    types = {arg.type_attr for arg in op_def.input_arg}
    attrs: dict[str, Any] = {}
    if "dtype" not in types and any(attr.name == "dtype" for attr in op_def.attr):
        attrs["dtype"] = _FLOAT
    with Graph().as_default() as graph:
        resources = [arg.name for arg in op_def.input_arg if arg.type == DataType.DT_RESOURCE]
        handles = {
            one: raw_ops.VarHandleOp(dtype=_FLOAT, shape=[2, 3], shared_name=one)
            for one in resources
        }
        made = [raw_ops.AssignVariableOp(resource=one, value=_VALUE) for one in handles.values()]
        others = {arg.name: opkernel.constant(_input(name, arg.name)) for arg in op_def.input_arg}
        with graph.control_dependencies(made):
            getattr(raw_ops, name)(**(others | handles), **attrs, name="called")
        called = graph.get_operation_by_name("called")
        with graph.control_dependencies([called]):
            for handle in handles.values():
                raw_ops.ReadVariableOp(resource=handle, dtype=_FLOAT)
    return called


def _input(op: str, name: str) -> Any:
    """A value for an argument that is no variable."""
    if name == "indices":
        return np.array([[1], [0]] if "Nd" in op else [1, 0], np.int32)
    if name in ("delta", "grad", "updates", "value"):
        return _RNG.uniform(-1, 1, _VALUE.shape).astype(np.float32)
    if name == "global_step":
        return np.int64(1)
    return np.float32(_SCALARS.get(name, 0.5))


def _on_generators() -> Iterator[Operation]:
    shape = {"algorithm": np.int64(1), "shape": np.array([4, 3], np.int32)}
    calls: dict[str, dict[str, Any]] = {
        "StatefulStandardNormalV2": shape,
        "StatefulTruncatedNormal": shape,
        "StatefulUniform": shape,
        "StatefulUniformFullInt": shape,
        "StatefulUniformInt": {**shape, "minval": np.int64(-3), "maxval": np.int64(9)},
        "RngSkip": {"algorithm": np.int64(1), "delta": np.int64(5)},
        "RngReadAndSkip": {"alg": np.int32(1), "delta": np.uint64(5)},
    }
    for name, inputs in calls.items():
        graph = Graph()
        with graph.as_default():
            handle = raw_ops.VarHandleOp(
                dtype=DataType.DT_INT64, shape=[3], shared_name="generator"
            )
            made = raw_ops.AssignVariableOp(resource=handle, value=_GENERATOR)
            given = {key: opkernel.constant(value) for key, value in inputs.items()}
            with graph.control_dependencies([made]):
                getattr(raw_ops, name)(resource=handle, **given, name="called")
            called = graph.get_operation_by_name("called")
            with graph.control_dependencies([called]):
                raw_ops.ReadVariableOp(resource=handle, dtype=DataType.DT_INT64)
        yield called


def _on_lists() -> Iterator[Operation]:
    """Lists of several kinds; each call is the end of a chain of operations on one."""
    for build in (_gather, _read, _concat, _size, _scatter, _split, _stack):
        with Graph().as_default() as graph:
            build()
        yield graph.get_operation_by_name("called")


def _array() -> tuple[Any, Any]:
    return raw_ops.TensorArrayV3(size=2, dtype=_FLOAT)


def _written() -> tuple[Any, Any]:
    handle, flow = _array()
    for index in range(2):
        flow = raw_ops.TensorArrayWriteV3(
            handle=handle, index=index, value=_VALUE + index, flow_in=flow
        )
    return handle, flow


def _gathered(handle: Any, flow: Any) -> None:
    indices = np.array([0, 1], np.int32)
    raw_ops.TensorArrayGatherV3(
        handle=handle, indices=indices, flow_in=flow, dtype=_FLOAT, name="called"
    )


def _gather() -> None:
    _gathered(*_written())


def _read() -> None:
    handle, flow = _written()
    raw_ops.TensorArrayReadV3(handle=handle, index=1, flow_in=flow, dtype=_FLOAT, name="called")


def _concat() -> None:
    handle, flow = _written()
    raw_ops.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=_FLOAT, name="called")


def _size() -> None:
    handle, flow = _written()
    raw_ops.TensorArraySizeV3(handle=handle, flow_in=flow, name="called")


def _scatter() -> None:
    handle, flow = _array()
    places = np.array([1, 0], np.int32)
    flow = raw_ops.TensorArrayScatterV3(handle=handle, indices=places, value=_VALUE, flow_in=flow)
    _gathered(handle, flow)


def _split() -> None:
    handle, flow = _array()
    lengths = np.array([1, 1], np.int64)
    flow = raw_ops.TensorArraySplitV3(handle=handle, value=_VALUE, lengths=lengths, flow_in=flow)
    _gathered(handle, flow)


def _stack() -> None:
    handle = raw_ops.StackV2(max_size=3, elem_type=_FLOAT)
    pushed = raw_ops.StackPushV2(handle=handle, elem=_VALUE)
    again = raw_ops.StackPushV2(handle=handle, elem=pushed + 1.0)
    with again.graph.control_dependencies([again.op]):
        raw_ops.StackPopV2(handle=handle, elem_type=_FLOAT, name="called")


_IMAGE = _RNG.uniform(-1, 1, (2, 5, 6, 4)).astype(np.float32)
_MATRIX = _RNG.uniform(-1, 1, (5, 4)).astype(np.float32)
_BIAS = _RNG.uniform(-1, 1, 4).astype(np.float32)
_WINDOW = _RNG.uniform(-1, 1, (3, 3, 4, 4)).astype(np.float32)


def _on_numbers() -> Iterator[Operation]:
    """Calls with attrs that the recorded ones have not: batch dimensions, activations."""
    rows = np.array([[2, 0], [1, 1]], np.int32)
    strides = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    relu = {"fused_ops": ["BiasAdd", "Relu"]}
    statistics = {name: np.abs(_BIAS) for name in ("scale", "offset", "mean", "variance")}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("GatherV2", {"params": _IMAGE[:, :, 0], "indices": rows, "axis": 1, "batch_dims": 1}),
        ("GatherV2", {"params": _IMAGE[:, :, 0], "indices": rows, "axis": 1}),
        ("Cast", {"x": _MATRIX > 0, "DstT": _FLOAT}),
        ("Prod", {"input": _MATRIX, "axis": np.array([0], np.int32)}),
        ("LogSoftmax", {"logits": _MATRIX}),
        ("Softmax", {"logits": _MATRIX}),
        ("Conv3D", {
            "input": _IMAGE[:, :, :, None], "filter": _WINDOW[:, :, None],
            "strides": [1] * 5, "padding": "SAME",
        }),
        ("_FusedMatMul", {"a": _MATRIX, "b": _MATRIX[:4], "args": [_BIAS], **relu}),
        ("_FusedBatchNormEx", {"x": _IMAGE, **statistics, "side_input": [], "is_training": False,
                               "activation_mode": "Relu"}),
        ("_FusedConv2D", {"input": _IMAGE, "filter": _WINDOW, "args": [_BIAS], "host_args": [], "num_args": 1,
                          **strides, **relu}),
        ("_FusedDepthwiseConv2dNative", {"input": _IMAGE, "filter": _WINDOW[..., :1],
                                         "args": [_BIAS], **strides, **relu}),
    ]  # fmt: skip
    calls += [
        ("Cast", {"x": _MATRIX.astype(source), "DstT": target})
        for source in ("float16", "float32", "float64")
        for target in INTEGERS
    ]
    for name, arguments in calls:
        with Graph().as_default() as graph:
            getattr(raw_ops, name)(**arguments, name="called")
        yield graph.get_operation_by_name("called")
