"""Shapes of ops on distributed tensors, and of ops that call other processes.

Source: TensorFlow dtensor/cc/dtensor_ops.cc, dtensor_meta_ops.cc, dtensor_tpu_ops.cc,
distribute/experimental/rpc/kernels/rpc_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    reduce_scatter_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.opdef.common_shapes.rules import check_input_ranks, unknown_from_scalars
from opkernel.opdef.common_shapes.shape_rule import shape_rule


def _restore_v2(c: InferenceContext) -> None:
    _, names, slices = check_input_ranks(c, 0, 1, 1)
    c.merge(names, slices)
    shapes, layouts = len(c.get_attr("input_shapes")), len(c.get_attr("input_layouts"))
    if shapes != layouts:
        raise InvalidArgumentError(
            f"Size of input_shapes and input_layouts is expected to match, but got {shapes} for "
            f"input_shapes and {layouts} for input_layouts"
        )
    unknown_shape(c)


_UNCHANGED = ("CopyToMesh", "CopyToMeshGrad", "DTensorAllReduce", "Relayout", "RelayoutLike")
_UNKNOWN = (
    "DeleteRpcFutureResource",
    "RpcCall",
    "RpcCheckStatus",
    "RpcClient",
    "RpcGetValue",
    "RpcServer",
    "RpcServerRegister",
    "RpcServerStart",
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_UNCHANGED, unchanged_shape),
    **dict.fromkeys(_UNKNOWN, unknown_shape),
    "ConfigureAndInitializeGlobalTPU": shape_rule("-> [?]"),
    "DTensorReduceScatter": reduce_scatter_shape,
    "DTensorRestoreV2": _restore_v2,
    "DTensorSetGlobalTPUArray": unknown_from_scalars(0),
    "ShutdownTPUSystem": shape_rule("-> []"),
}
