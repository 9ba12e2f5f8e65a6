"""Shapes of ops that several devices run together: collectives, distributed tensors, calls of other processes, TPUs.

Of TPUs only what goes into a unit, and embeddings without repeated rows: the other ops have no shape function.

Source: TensorFlow core/ops/collective_ops.cc, nccl_ops.cc, tpu_cross_replica_ops.cc, tpu_ops.cc,
core/tpu/ops/tpu_embedding_ops.cc, sparse_core_preprocess_ops.cc, dtensor/cc/dtensor_ops.cc, dtensor_meta_ops.cc,
dtensor_tpu_ops.cc, distribute/experimental/rpc/kernels/rpc_ops.cc.
"""

from google.protobuf.message import DecodeError

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.opdef import (
    UNKNOWN_DIM,
    InferenceContext,
    OpShapeInferenceFn,
    no_outputs,
    reduce_scatter_shape,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.opdef.common_shapes import random_shape
from opkernel.opdef.common_shapes.rules import (
    check_input_ranks,
    set_outputs,
    shape_rule,
    unknown_from_scalars,
)
from opkernel.ops.input_checks import require, require_equal
from opkernel.proto import TensorProto
from opkernel.types import tensor_from_proto


def _all_to_all(c: InferenceContext) -> None:
    shape = c.input(0)
    if shape.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    count = c.get_attr("split_count")
    _check_groups(c, count)
    concat, split = _axis(c, "concat_dimension"), _axis(c, "split_dimension")
    sizes = [dim.value for dim in shape.dims]
    if UNKNOWN_DIM in (sizes[concat], sizes[split]):
        c.set_output(0, c.unknown_shape())
        return
    sizes[concat] *= count
    message = f"input dimension {sizes[split]} not divisible by split_count {count}"
    require(sizes[split] % count == 0, message)
    sizes[split] //= count
    changed = (concat, split)
    dims = [sizes[i] if i in changed else dim for i, dim in enumerate(shape.dims)]
    c.set_output(0, c.make_shape(dims))


def _check_groups(c: InferenceContext, count: int) -> None:
    groups = c.input(1)
    require(count >= 1, f"split_count {count} must at least be one.")
    if c.rank_known(groups) and c.rank(groups) != 2:
        raise InvalidArgumentError("group_assignment must have rank 2.")
    replicas = c.dim(groups, 1)
    if c.value_known(replicas) and replicas.value != count:
        raise InvalidArgumentError(
            f"split_count {count} must equal the size of the second dimension of "
            f"group_assignment {replicas}"
        )


def _axis(c: InferenceContext, name: str) -> int:
    axis: int = c.get_attr(name)
    rank = c.rank(c.input(0))
    require(0 <= axis < rank, f"{name} {axis} is out of range of input rank {rank}")
    return axis


def _restore_v2(c: InferenceContext) -> None:
    _, names, slices = check_input_ranks(c, 0, 1, 1)
    c.merge(names, slices)
    shapes, layouts = len(c.get_attr("input_shapes")), len(c.get_attr("input_layouts"))
    message = "Size of input_shapes and input_layouts is expected to match, but got"
    message += " {} for input_shapes and {} for input_layouts"
    require_equal(shapes, layouts, message)
    unknown_shape(c)


def _split_dedup_data(c: InferenceContext) -> None:
    """Vectors of the integers and of the floats that the mask counts, by rows (kind, size)."""
    sizes = [0, 0]
    for kind, size in _tuple_mask(c.get_attr("tuple_mask")):
        sizes[kind] += size
    set_outputs(c, [c.vector(size) for size in sizes])


def _tuple_mask(serialized: str) -> list[list[int]]:
    """The rows of the mask, kind 0 for integers and 1 for floats."""
    try:
        proto = TensorProto.FromString(serialized.encode("utf-8", "surrogateescape"))
        mask = tensor_from_proto(proto).reshape(-1, 2)
    except (ValueError, TypeError, OpError, DecodeError):
        raise InvalidArgumentError("Malformed `tuple_mask` attr in SplitDedupData Op.") from None
    if mask.size and not set(mask[:, 0].tolist()) <= {0, 1}:
        raise InvalidArgumentError("Malformed `tuple_mask` attr in SplitDedupData Op.")
    return mask.tolist()


_UNCHANGED = (
    *("CollectivePermute", "CrossReplicaSum", "NcclBroadcast", "NcclReduce", "_NcclReduceRecv"),
    *("CopyToMesh", "CopyToMeshGrad", "DTensorAllReduce", "Relayout", "RelayoutLike"),
)
_REMOTE = (
    "DeleteRpcFutureResource RpcCall RpcCheckStatus RpcClient RpcGetValue RpcServer "
    "RpcServerRegister RpcServerStart"
)
_SCALAR = (
    "ComputeDedupDataSize ComputeDedupDataSizeV2 GlobalIterId MergeDedupData Prelinearize "
    "PrelinearizeTuple"
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_UNCHANGED, unchanged_shape),
    **dict.fromkeys(_REMOTE.split(), unknown_shape),
    **dict.fromkeys(_SCALAR.split(), scalar_shape),
    "AllToAll": _all_to_all,
    "_NcclBroadcastRecv": random_shape,
    "_NcclBroadcastSend": no_outputs,
    "_NcclReduceSend": no_outputs,
    "ConfigureAndInitializeGlobalTPU": shape_rule("-> [?]"),
    "DTensorReduceScatter": reduce_scatter_shape,
    "DTensorRestoreV2": _restore_v2,
    "DTensorSetGlobalTPUArray": unknown_from_scalars(0),
    "ShutdownTPUSystem": shape_rule("-> []"),
    "ComputeDedupDataTupleMask": shape_rule("-> [?, ?]"),
    "ComputeDedupDataTupleMaskV2": shape_rule("-> [?, ?]"),
    "ConvertToCooTensor": shape_rule("-> [?], [?], [?]"),
    "SplitDedupData": _split_dedup_data,
    "UpdateTaskIdAndGlobalCoreArray": unknown_shape,
}
