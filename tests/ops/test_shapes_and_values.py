"""What a shape function states, whatever it is told, never contradicts what the kernel gives."""

import functools
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Operation, import_graph_def
from opkernel.kernel import get_registered_kernels_for_op
from opkernel.opdef import InferenceContext, ShapeHandle, global_op_registry, run_shape_fn
from opkernel.opdef.core.op_traits import OpTraits
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.ops.declared.nn import QUANTIZED_CONVOLUTIONS, QUANTIZED_MATMULS
from opkernel.ops.loader import traits_of_op
from opkernel.proto import GraphDef, OpDef
from opkernel.runtime import Session
from opkernel.types import DataType

CALLS = Path(__file__).parent.parent / "data" / "op_calls.pb.xz"
# Of values alone they cannot be called, or give none: see the tests of graphs and of their own.
WITHOUT_VALUES = {"Const", "Placeholder", "Enter", "Exit", "LoopCond", "Merge", "NextIteration"} | {
    *("RefEnter", "RefExit", "RefMerge", "RefNextIteration", "RefSwitch", "Switch", "_SwitchN"),
    *("NcclAllReduce", "Recv", "Send", "_HostRecv", "_HostSend", "_Recv", "_Send"),
    *("_Arg", "_DeviceArg", "_DeviceRetval", "_Retval", "TensorArrayConcatV2"),
    *("ConsumeMutexLock", "DeleteSessionTensor", "GetSessionHandle", "GetSessionTensor"),
    *("Stage", "StageClear", "StagePeek", "StageSize", "Unstage", "RemoteCall"),
    *("_ArrayToList", "_ListToArray", "ParseSequenceExample", "DecodeJxl", "DecodeWebP"),
    # Their shape functions ask for what the handle data of the variant say.
    *("CSRSparseMatrixComponents", "CSRSparseMatrixToDense", "CSRSparseMatrixToSparseTensor"),
    *("DenseToCSRSparseMatrix", "SparseTensorToCSRSparseMatrix", "SparseMatrixMatMul"),
    *("SparseMatrixNNZ", "SparseMatrixOrderingAMD", "SparseMatrixSparseCholesky"),
    *("SparseMatrixSparseMatMul", "SparseMatrixTranspose"),
    *("AddManySparseToTensorsMap", "AddSparseToTensorsMap", "TakeManySparseFromTensorsMap"),
    *("For", "HostConst", "SyncDevice", "Unbatch", "UnbatchGrad"),
    *("KMC2ChainInitialization", "KmeansPlusPlusInitialization", "NearestNeighbors"),
    *("SdcaFprint", "SdcaOptimizer", "SdcaOptimizerV2"),
    *("DtypeWithDefaultOp", "FileSystemSetConfiguration", "Abort", "MapDefun"),
    *("CustomAggregator", "EagerPyFunc", "PyFunc", "PyFuncStateless"),
    *("CheckPinned", "DebugNanCount", "DebugNumericSummary"),
    # TensorFlow's passes and eager calls make them of other ops.
    *("_EagerConst", "_HostCast", "_If", "_ParallelConcatStart", "_ParallelConcatUpdate"),
    *("_TensorToHashBucketFast", "_UnaryOpsComposition", "_While", "_QuantizedMaxPool3D"),
    *("_ScopedAllocator", "_ScopedAllocatorConcat", "_ScopedAllocatorSplit"),
    *(
        f"{order}Map{deed}"
        for order in ("", "Ordered")
        for deed in ("Clear", "IncompleteSize", "Peek", "Size", "Stage", "Unstage", "UnstageNoKey")
    ),
}
# As in TensorFlow, its shape function takes a sound of unknown length for an empty one.
WITHOUT_VALUES |= {"AudioMicrofrontend"}
# As in TensorFlow, kernels of ops that only oneDNN computes set no output.
WITHOUT_VALUES |= {"QuantizedConcatV2", *QUANTIZED_CONVOLUTIONS, *QUANTIZED_MATMULS}
# Run by the plan itself, on values.
FUNCTIONAL = {"Case", "If", "PartitionedCall", "StatefulPartitionedCall", "While"} | {
    *("StatelessCase", "StatelessIf", "StatelessWhile")
}
# TensorFlow 2.21 does the same: its rule takes something unknown (-1) for a size.
REFUSES_THE_UNKNOWN = {
    "ApproxTopK": "an operand of unknown rank",
    "BatchToSpaceND": "a block_shape of unknown rank",
    "Dequantize": "an input of unknown rank beside an axis",
    "FusedPadConv2D": "paddings of unknown shape",
    "FusedResizeAndPadConv2D": "paddings of unknown shape",
    "MatrixDiagV2": "diagonals of unknown number",
    "MatrixDiagV3": "diagonals of unknown number",
    "ParallelConcat": "inputs of unknown shape",
    "RandomIndexShuffle": "a seed of unknown size",
    "SpaceToBatchND": "a block_shape of unknown rank",
    "SplitV": "sizes that do not fit the last axis where the axis is unknown",
    "Substr": "an unknown size of pos beside a known one of len",
}


class Knowledge(NamedTuple):
    """What a shape function is told: a shape for each input, values, and values as shapes."""

    shapes: tuple[Any, ...]
    values: tuple[Any, ...]
    as_shapes: tuple[Any, ...]

    def replace(self, field: str, index: int, item: Any) -> "Knowledge":
        items = list(getattr(self, field))
        items[index] = item
        return self._replace(**{field: tuple(items)})


@functools.cache
def session() -> Session:
    graph = Graph()
    with graph.as_default():
        import_graph_def(GraphDef.FromString(lzma.decompress(CALLS.read_bytes())), name="")
    return Session(graph)


@functools.cache
def calls() -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for op in session().graph.get_operations():
        if op.type != "Const":
            found.setdefault(op.type, []).append(op)
    return found


def fully_known(values: list[Any]) -> Knowledge:
    shapes = tuple(list(np.shape(value)) for value in values)
    return Knowledge(shapes, tuple(values), tuple(map(as_shape, values)))


def as_shape(value: Any) -> list[int] | None:
    """The shape that a value may stand for, where it is one."""
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype not in (np.int32, np.int64) or array.min(initial=0) < 0:
        return None
    return array.tolist()


def with_one_thing_hidden(known: Knowledge) -> Iterator[Knowledge]:
    for i, shape in enumerate(known.shapes):
        untold = known.replace("values", i, None).replace("as_shapes", i, None)
        yield untold
        yield untold.replace("shapes", i, None)
        for axis in range(len(shape)):
            hidden = [*shape[:axis], None, *shape[axis + 1 :]]
            yield untold.replace("shapes", i, hidden)
        for element in range(len(known.as_shapes[i] or ())):
            hidden = list(known.as_shapes[i])
            hidden[element] = None
            yield untold.replace("as_shapes", i, hidden)


def ways_to_tell(known: Knowledge) -> Iterator[Knowledge]:
    """Everything, everything but one thing, and nothing."""
    yield known
    yield from with_one_thing_hidden(known)
    nothing = (None,) * len(known.shapes)
    yield Knowledge(nothing, nothing, nothing)
    yield known._replace(values=nothing, as_shapes=nothing)


def inferred(op: Operation, told: Knowledge) -> list[ShapeHandle | None]:
    registration = global_op_registry().look_up(op.type)
    context = InferenceContext(
        registration.op_def,
        op.node_def,
        [handle(shape) for shape in told.shapes],
        [None if value is None else np.asarray(value) for value in told.values],
        [None if shape is None else handle(shape) for shape in told.as_shapes],
    )
    run_shape_fn(registration, context)
    return [shape or ShapeHandle() for shape in context.reliable_outputs()]


def handle(shape: list[int | None] | None) -> ShapeHandle:
    return ShapeHandle() if shape is None else InferenceContext.make_shape(shape)


def agrees(shape: ShapeHandle | None, value: Any) -> bool:
    assert shape is not None, "the shape function set no shape"
    if shape.dims is None:
        return True
    sizes = [dim.value for dim in shape.dims]
    real = np.shape(value)
    return len(sizes) == len(real) and all(s in (-1, r) for s, r in zip(sizes, real, strict=True))


def ops_that_run() -> list[str]:
    """The ops of the catalogue that graphs of today may hold, and that compute something."""
    with_kernels = {op for op in MODULE_OF_OP if get_registered_kernels_for_op(op).kernel}
    op_defs = [global_op_registry().look_up_op_def(op) for op in MODULE_OF_OP]
    gone = {op.name for op in op_defs if op.HasField("deprecation")}
    not_alone = {op.name for op in op_defs if op.is_distributed_communication or has_state(op)}
    with_files = {op for op in MODULE_OF_OP if opens_files(traits_of_op(op))}
    of_datasets = {op for op, module in MODULE_OF_OP.items() if module.startswith("data.")}
    left_out = gone | not_alone | with_files | of_datasets | WITHOUT_VALUES
    return sorted((with_kernels | FUNCTIONAL) - left_out)


def opens_files(traits: OpTraits) -> bool:
    """Whether the values of an op come from files, or go into them."""
    return (traits.reads_files or traits.writes_files) and traits.file_attr != "debug_urls"


def has_state(op: OpDef) -> bool:
    """Whether an op works on a resource, or on what a reference refers to."""
    args = [*op.input_arg, *op.output_arg]
    return any(arg.is_ref or arg.type == DataType.DT_RESOURCE for arg in args)


@pytest.mark.parametrize("name", ops_that_run())
def test_the_shape_function_agrees_with_the_kernel(name: str) -> None:
    refused = False
    for op in calls()[name]:
        inputs, outputs = session().run([list(op.inputs), list(op.outputs)])
        everything = fully_known(inputs)
        for told in ways_to_tell(everything):
            try:
                shapes = inferred(op, told)
            except InvalidArgumentError:
                assert told is not everything
                refused = True
                continue
            wrong = [i for i, value in enumerate(outputs) if not agrees(shapes[i], value)]
            assert not wrong, (op.name, told, shapes, [np.shape(value) for value in outputs])
    assert refused == (name in REFUSES_THE_UNKNOWN)
