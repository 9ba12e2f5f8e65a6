"""Reductions, broadcasts, gathers and the like, of groups that are named by a key.

In the first version of the ops the keys are attrs, in the second they are inputs.
Source: TensorFlow core/ops/collective_ops.cc, core/kernels/collective_ops.cc.

NcclAllReduce, of which TensorFlow has a kernel for GPUs alone.

Source: TensorFlow core/ops/nccl_ops.cc, core/kernels/nccl_ops.cc.
"""

from typing import Any

import opkernel.gradients as g
from opkernel.errors import InternalError, InvalidArgumentError, UnimplementedError
from opkernel.kernel import CollectiveType, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import (
    InferenceContext,
    OpHandle,
    OpShapeInferenceFn,
    explicit_shape,
    register_op,
    unchanged_shape,
)
from opkernel.opdef.common_shapes.rules import defined_shape, shape_held_by
from opkernel.ops.collective.kernel import (
    FINAL_OPS,
    MERGE_OPS,
    CollectiveKernel,
    Instance,
    scalar,
)
from opkernel.ops.registration import register_kernel

_KEYS = ("group_size", "group_key", "instance_key")


class GroupKernel(CollectiveKernel):
    """Takes part in a collective of the group that its attrs or inputs name."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._instance: Instance | None = None
        if construction.has_attr("group_key"):
            self._instance = Instance(*map(construction.get_attr, _KEYS))

    def instance(self, ctx: OpKernelContext) -> Instance:
        if self._instance is not None:
            return self._instance
        return Instance(*(scalar(ctx, name) for name in _KEYS))


class Reduce(GroupKernel):
    """The inputs of all members merged into one."""

    collective_type = CollectiveType.REDUCTION_COLLECTIVE

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.merge_op = MERGE_OPS[construction.get_attr("merge_op")]
        self.final_op = FINAL_OPS[construction.get_attr("final_op")]


class ReduceScatter(Reduce):
    """A part of the inputs of all members merged into one."""

    collective_type = CollectiveType.REDUCE_SCATTER_COLLECTIVE


class Gather(GroupKernel):
    """The inputs of all members, one after the other."""

    collective_type = CollectiveType.GATHER_COLLECTIVE

    def shape(self, ctx: OpKernelContext, group_size: int) -> tuple[int, ...]:
        shape = super().shape(ctx, group_size)
        if not shape:
            raise InvalidArgumentError("input should have rank > 0, received 0")
        check_allocation((shape[0] * group_size, *shape[1:]), self.data_type)
        return shape


class AllToAll(GroupKernel):
    """The rows of all members' inputs that are meant for this one."""

    collective_type = CollectiveType.ALL_TO_ALL_COLLECTIVE


class Broadcast(GroupKernel):
    """One end of a broadcast, of the shape that the attr or input `shape` says, if there is one."""

    collective_type = CollectiveType.BROADCAST_COLLECTIVE

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._shape: tuple[int, ...] | None = None
        if construction.has_attr("shape"):
            self._shape = defined_shape(construction.get_attr("shape")).as_tensor_shape().dims


class BcastSend(Broadcast):
    """The input, which the other members get too."""

    is_source = True

    def shape(self, ctx: OpKernelContext, group_size: int) -> tuple[int, ...]:
        shape = super().shape(ctx, group_size)
        if self._shape not in (None, shape):
            raise InternalError(
                f"Declared shape of op {self.name} does not match shape of input: "
                f"{list(self._shape or ())} and {list(shape)}"
            )
        return shape


class BcastRecv(Broadcast):
    """The receiving side of a broadcast."""

    def tensor(self, ctx: OpKernelContext) -> Any:
        return None

    def shape(self, ctx: OpKernelContext, group_size: int) -> tuple[int, ...]:
        shape = self._shape
        if shape is None:
            shape = self.make_shape(ctx.input("shape")).dims
        check_allocation(shape, self.data_type)
        return shape


def gather_shape(c: InferenceContext) -> None:
    """The shape of the input, its first dimension as often as the group has members."""
    shape = c.with_rank_at_least(c.input(0), 1)
    rows = c.dim(shape, 0)
    gathered = c.get_attr("group_size") * rows.value if c.value_known(rows) else None
    c.set_output(0, c.concatenate(c.vector(gathered), c.subshape(shape, 1)))


def group_of_unknown_size_shape(c: InferenceContext) -> None:
    """The shape of the input, the first dimension unknown."""
    shape = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, c.replace_dim(shape, 0, c.unknown_dim()))


_SUMMED = "T: {bfloat16, float, half, double, int32, int64}"
_GATHERED = "T: {float, half, double, int32, int64}"
_SENT = "T: {bool, float, half, double, int32, int64}"
_KEY_ATTRS = ("group_size: int", "group_key: int", "instance_key: int")
_KEY_INPUTS = ("group_size: int32", "group_key: int32", "instance_key: int32")
_TOKENS = "ordering_token: Nordering_token * resource"
_WAY = ("communication_hint: string = 'auto'", "timeout_seconds: float = 0")
_MERGE = ("merge_op: {'Min', 'Max', 'Mul', 'Add'}", "final_op: {'Id', 'Div'}")
_STATELESS = ("is_stateless: bool = false", "Nordering_token: int >= 0 = 0")
_SUBDIVISIONS = "max_subdivs_per_device: int = -1"
_ALL_REDUCE = "The inputs of all members of the group, merged into one."
_GATHER = "The inputs of all members of the group, one after the other."
_SEND = "The input, which the other members of the group get too."
_RECEIVE = "The input of the member of the group that sends."


def _register(
    name: str,
    kernel: type[CollectiveKernel],
    inputs: tuple[str, ...],
    attrs: tuple[str, ...],
    shape_fn: OpShapeInferenceFn,
    doc: str,
) -> OpHandle:
    op = register_op(
        name,
        inputs=inputs,
        outputs=["data: T"],
        attrs=attrs,
        shape_fn=shape_fn,
        traits="any_order" if _TOKENS not in inputs else "",
        is_stateful=True,
        is_distributed_communication=True,
        doc=doc,
    )
    register_kernel(op)(kernel)
    return op


COLLECTIVE_REDUCE = _register(
    "CollectiveReduce",
    Reduce,
    ("input: T",),
    (
        _SUMMED,
        *_KEY_ATTRS,
        *_MERGE,
        "subdiv_offsets: list(int)",
        "wait_for: list(int) = []",
        *_WAY,
    ),
    unchanged_shape,
    _ALL_REDUCE,
)
COLLECTIVE_REDUCE_V2 = _register(
    "CollectiveReduceV2",
    Reduce,
    ("input: T", *_KEY_INPUTS, _TOKENS),
    (_SUMMED, *_MERGE, *_WAY, *_STATELESS, _SUBDIVISIONS),
    unchanged_shape,
    _ALL_REDUCE,
)
COLLECTIVE_REDUCE_SCATTER_V2 = _register(
    "CollectiveReduceScatterV2",
    ReduceScatter,
    ("input: T", *_KEY_INPUTS, _TOKENS),
    (_SUMMED, *_MERGE, *_WAY, *_STATELESS, _SUBDIVISIONS),
    group_of_unknown_size_shape,
    "This member's part of the inputs of all members of the group, merged into one.",
)
COLLECTIVE_GATHER = _register(
    "CollectiveGather",
    Gather,
    ("input: T",),
    (_GATHERED, *_KEY_ATTRS, "shape: shape", *_WAY),
    gather_shape,
    _GATHER,
)
COLLECTIVE_GATHER_V2 = _register(
    "CollectiveGatherV2",
    Gather,
    ("input: T", *_KEY_INPUTS, _TOKENS),
    (_GATHERED, *_WAY, *_STATELESS),
    group_of_unknown_size_shape,
    _GATHER,
)
COLLECTIVE_ALL_TO_ALL_V2 = _register(
    "CollectiveAllToAllV2",
    AllToAll,
    ("input: T", *_KEY_INPUTS, _TOKENS),
    (_SUMMED, *_WAY, *_STATELESS),
    unchanged_shape,
    "Of the input of each member of the group the row of this member's number.",
)
COLLECTIVE_BCAST_SEND = _register(
    "CollectiveBcastSend",
    BcastSend,
    ("input: T",),
    (_SENT, *_KEY_ATTRS, "shape: shape", *_WAY),
    explicit_shape,
    _SEND,
)
COLLECTIVE_BCAST_SEND_V2 = _register(
    "CollectiveBcastSendV2",
    BcastSend,
    ("input: T", *_KEY_INPUTS),
    (_SENT, *_WAY),
    unchanged_shape,
    _SEND,
)
COLLECTIVE_BCAST_RECV = _register(
    "CollectiveBcastRecv",
    BcastRecv,
    (),
    (_SENT, *_KEY_ATTRS, "shape: shape", *_WAY),
    explicit_shape,
    _RECEIVE,
)
COLLECTIVE_BCAST_RECV_V2 = _register(
    "CollectiveBcastRecvV2",
    BcastRecv,
    (*_KEY_INPUTS, "shape: Tshape"),
    (_SENT, "Tshape: {int32, int64} = DT_INT32", *_WAY),
    shape_held_by(3),
    _RECEIVE,
)


NCCL_ALL_REDUCE = register_op(
    "NcclAllReduce",
    inputs=["input: T"],
    outputs=["data: T"],
    attrs=[
        "reduction: {'min', 'max', 'prod', 'sum'}",
        "T: {half, float, double, int32, int64}",
        "num_devices: int",
        "shared_name: string",
    ],
    shape_fn=unchanged_shape,
    traits="any_order",
    is_stateful=True,
    doc="The inputs of all `num_devices` nodes of one `shared_name`, reduced to one.",
)

_REDUCTIONS = {
    "max": MERGE_OPS["Max"],
    "min": MERGE_OPS["Min"],
    "prod": MERGE_OPS["Mul"],
    "sum": MERGE_OPS["Add"],
}


@register_kernel(NCCL_ALL_REDUCE)
class NcclAllReduce(CollectiveKernel):
    """The inputs of all members merged into one."""

    collective_type = CollectiveType.REDUCTION_COLLECTIVE

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.merge_op = _REDUCTIONS[construction.get_attr("reduction")]
        num_devices = construction.get_attr("num_devices")
        if num_devices <= 0:
            raise InvalidArgumentError(f"num_devices must be positive but is {num_devices}")
        shared_name = construction.get_attr("shared_name")
        self._instance = Instance(num_devices, f"NcclAllReduce {shared_name}", shared_name)

    def instance(self, ctx: OpKernelContext) -> Instance:
        return self._instance


@g.register_gradient("NcclAllReduce")
def nccl_all_reduce_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The gradients of all members, added up: each member's gradient needs those of all others."""
    if op.get_attr("reduction") != b"sum":
        raise UnimplementedError("NcclAllReduce has a gradient only where it is a sum")
    return g.nodes.NcclAllReduce(
        grad,
        shared_name=op.get_attr("shared_name") + b"_grad",
        **g.attrs_of(op, "reduction", "num_devices"),
    )
