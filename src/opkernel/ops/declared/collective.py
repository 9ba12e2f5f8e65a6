"""Shapes of collective ops without kernels, which several devices run together.

Source: TensorFlow core/ops/collective_ops.cc, nccl_ops.cc, tpu_cross_replica_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    UNKNOWN_DIM,
    InferenceContext,
    OpShapeInferenceFn,
    no_outputs,
    unchanged_shape,
)
from opkernel.opdef.common_shapes import random_shape


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
    if sizes[split] % count:
        raise InvalidArgumentError(
            f"input dimension {sizes[split]} not divisible by split_count {count}"
        )
    sizes[split] //= count
    changed = (concat, split)
    dims = [sizes[i] if i in changed else dim for i, dim in enumerate(shape.dims)]
    c.set_output(0, c.make_shape(dims))


def _check_groups(c: InferenceContext, count: int) -> None:
    groups = c.input(1)
    if count < 1:
        raise InvalidArgumentError(f"split_count {count} must at least be one.")
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
    if not 0 <= axis < rank:
        raise InvalidArgumentError(f"{name} {axis} is out of range of input rank {rank}")
    return axis


_UNCHANGED = (
    "CollectivePermute",
    "CrossReplicaSum",
    "NcclBroadcast",
    "NcclReduce",
    "_NcclReduceRecv",
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_UNCHANGED, unchanged_shape),
    "AllToAll": _all_to_all,
    "_NcclBroadcastRecv": random_shape,
    "_NcclBroadcastSend": no_outputs,
    "_NcclReduceSend": no_outputs,
}
