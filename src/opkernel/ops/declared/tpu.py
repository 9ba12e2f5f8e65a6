"""Shapes of ops of tensor processing units, without embeddings and sparse cores.

Source: TensorFlow core/ops/tpu_*_ops.cc, core/tpu/ops/*.cc.
"""

import math
from collections.abc import Sequence
from functools import partial

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    explicit_shape,
    no_outputs,
    scalar_shape,
    unknown_shape,
)
from opkernel.ops.declared.rules import (
    check_scalars,
    defined_shape,
    each_output_as_its_input,
    fixed_shapes,
    outputs_as_inputs,
    scalar_inputs_and_outputs,
    set_outputs,
    unknown_from_scalars,
)
from opkernel.types import DataType, PartialTensorShape

# Infeed and outfeed


def _set_shapes(c: InferenceContext, shapes: Sequence[PartialTensorShape]) -> None:
    set_outputs(c, map(c.make_shape_from_partial_shape, shapes[: c.num_outputs()]))


def _infeed_dequeue_tuple(c: InferenceContext) -> None:
    _set_shapes(c, c.get_attr("shapes"))


def _outfeed_dequeue_tuple(c: InferenceContext) -> None:
    if len(c.get_attr("shapes")) != len(c.get_attr("dtypes")):
        raise InvalidArgumentError("Incorrect number of output shapes specified")
    _set_shapes(c, c.get_attr("shapes"))


def _outfeed_dequeue_tuple_v2(c: InferenceContext) -> None:
    if c.rank(c.input(0)) != 0:
        raise InvalidArgumentError("device ordinal must be a scalar.")
    _outfeed_dequeue_tuple(c)


# Replication


def _replicated_input(c: InferenceContext) -> None:
    count = c.num_inputs()
    shape = c.input(count - 1)
    for i in reversed(range(count - 1)):
        try:
            shape = c.merge(c.input(i), shape)
        except OpError as error:
            message = f"{error.message}\n\tFrom merging shape {i} with other shapes."
            raise type(error)(message) from None
    c.set_output(0, shape)
    if c.get_attr("T") == DataType.DT_RESOURCE:
        _unify_handles(c)


def _unify_handles(c: InferenceContext) -> None:
    held = None
    for i in reversed(range(c.num_inputs())):
        if held is None:
            held = c.input_handle_shapes_and_types(i)
        else:
            c.merge_input_handle_shapes_and_types(i, held)
    if held is not None:
        c.set_output_handle_shapes_and_types(0, held)


def _replicated_output(c: InferenceContext) -> None:
    set_outputs(c, [c.input(0)] * c.num_outputs())


def _partitioned_output(c: InferenceContext) -> None:
    """An even part of input 0 along one axis; all of it for axis -1."""
    shape, axis = c.input(0), c.get_attr("partition_dim")
    _refuse_resources(c)
    if axis < -1 or (c.rank_known(shape) and axis >= c.rank(shape)):
        raise InvalidArgumentError(f"Cannot partition dim {axis} of rank {c.rank(shape)} tensor.")
    if axis >= 0:
        part = c.divide(c.dim(shape, axis), c.get_attr("num_splits"), evenly_divisible=True)
        shape = c.replace_dim(shape, axis, part)
    set_outputs(c, [shape] * c.num_outputs())


def _partitioned_output_v2(c: InferenceContext) -> None:
    """An even part of input 0 along all axes."""
    shape, parts = c.input(0), c.get_attr("partition_dims")
    _refuse_resources(c)
    if math.prod(parts) != c.get_attr("num_splits"):
        raise InvalidArgumentError(f"Expected {math.prod(parts)} splits.")
    if c.rank(shape) > len(parts):
        raise InvalidArgumentError(f"Expected at least {c.rank(shape)} partition dimensions.")
    for axis in range(c.rank(shape)):
        part = c.divide(c.dim(shape, axis), parts[axis], evenly_divisible=True)
        shape = c.replace_dim(shape, axis, part)
    set_outputs(c, [shape] * c.num_outputs())


def _refuse_resources(c: InferenceContext) -> None:
    if c.get_attr("T") == DataType.DT_RESOURCE:
        raise UnimplementedError("Not implemented.")


def _dummy_input(c: InferenceContext) -> None:
    c.set_output(0, c.make_shape_from_partial_shape(defined_shape(c.get_attr("shape"))))


# Compiling and executing


def _compile(program: int, c: InferenceContext) -> None:
    """A status, then keys of `program` elements and a flag for each computation."""
    count = c.get_attr("num_computations")
    keys = [c.vector(program) for _ in range(count)]
    flags = [c.scalar() for _ in range(c.num_outputs() - 1 - count)]
    set_outputs(c, [c.scalar(), *keys, *flags])


def _execute(c: InferenceContext) -> None:
    key = c.with_rank(c.input(c.num_inputs() - 1), 1)
    c.with_value(c.dim(key, 0), 3)
    unknown_shape(c)


def _wait_for_system(c: InferenceContext) -> None:
    for i in range(c.num_inputs()):
        c.with_rank(c.input(i), 1)
    c.set_output(0, c.scalar())


def _vector_from_scalar(c: InferenceContext) -> None:
    check_scalars(c, 0)
    c.set_output(0, c.vector(None))


_UNKNOWN = (
    "ConfigureDistributedTPU",
    "ShutdownDistributedTPU",
    "TPUCompileSucceededAssert",
    "TPUPartitionedCall",
    "TPUReplicateMetadata",
    "TPUReshardVariables",
    "UpdateTaskIdAndGlobalCoreArray",
    "_DisconnectHostFromDistributedTPUSystem",
    "_ShutdownDistributedTPU",
    "_TPUReplicate",
)
_SCALAR = (
    "GetTpuTaskId",
    "IsTPUEmbeddingInitialized",
    "Prelinearize",
    "PrelinearizeTuple",
    "TPUCompilationResult",
    "TPURoundRobin",
)
_NO_OUTPUTS = (
    "InfeedEnqueue",
    "InfeedEnqueuePrelinearizedBuffer",
    "InfeedEnqueueTuple",
    "OutfeedEnqueue",
    "OutfeedEnqueueTuple",
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_NO_OUTPUTS, no_outputs),
    **dict.fromkeys(_SCALAR, scalar_shape),
    **dict.fromkeys(_UNKNOWN, unknown_shape),
    "InfeedDequeue": explicit_shape,
    "InfeedDequeueTuple": _infeed_dequeue_tuple,
    "OutfeedDequeue": explicit_shape,
    "OutfeedDequeueTuple": _outfeed_dequeue_tuple,
    "OutfeedDequeueTupleV2": _outfeed_dequeue_tuple_v2,
    "OutfeedDequeueV2": explicit_shape,
    "TPUAnnotateTensorsWithDynamicShape": each_output_as_its_input,
    "TPUCompile": partial(_compile, 3),
    "TPUCopyWithDynamicShape": each_output_as_its_input,
    "TPUDummyInput": _dummy_input,
    "TPUEmbeddingActivations": outputs_as_inputs(1),
    "TPUExecute": _execute,
    "TPUExecuteAndUpdateVariables": _execute,
    "TPUOrdinalSelector": fixed_shapes((None,)),
    "TPUPartitionedOutput": _partitioned_output,
    "TPUPartitionedOutputV2": _partitioned_output_v2,
    "TPUReplicatedInput": _replicated_input,
    "TPUReplicatedOutput": _replicated_output,
    "TpuHandleToProtoKey": _vector_from_scalar,
    "_ConfigureDistributedTPU": scalar_inputs_and_outputs,
    "_InitializeHostForDistributedTPU": _vector_from_scalar,
    "_SetGlobalTPUArray": unknown_from_scalars(0),
    "_TPUCompileMlir": partial(_compile, 3),
    "_WaitForDistributedTPU": _wait_for_system,
    "_XlaCompileMlirPlaceholderProgramKey": fixed_shapes((3,)),
}
