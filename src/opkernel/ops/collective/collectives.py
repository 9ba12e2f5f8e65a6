"""Reductions, broadcasts, gathers and the like: nodes take part in a group that a key names, and wait for the others.

In the first version of the ops the keys are attrs, in the second they are inputs.
TensorFlow has a kernel of NcclAllReduce for GPUs only.

Source: TensorFlow core/ops/collective_ops.cc, core/kernels/collective_ops.cc, core/ops/nccl_ops.cc,
core/kernels/nccl_ops.cc.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InternalError, InvalidArgumentError, OpError, UnimplementedError
from opkernel.kernel import (
    AsyncOpKernel,
    CollectiveMember,
    CollectiveParams,
    CollectiveType,
    OpKernelConstruction,
    OpKernelContext,
    check_allocation,
)
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    explicit_shape,
    register_op,
    unchanged_shape,
)
from opkernel.opdef.common_shapes.rules import defined_shape, shape_held_by, shape_rule
from opkernel.ops.input_checks import require, require_scalar
from opkernel.ops.math.arithmetic import truncated_quotient
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

MERGE_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
}


def _div(merged: Any, group_size: int) -> Any:
    """The mean; of integers it is rounded towards 0."""
    divide = truncated_quotient if merged.dtype.kind == "i" else np.divide
    return divide(merged, np.asarray(group_size, merged.dtype))


FINAL_OPS: dict[str, Callable[[Any, int], Any] | None] = {"Id": None, "Div": _div}


@dataclass(frozen=True, slots=True)
class Instance:
    """Which collective a node takes part in, and as which member of the group.

    Attributes:
        group_size: The number of members.
        group_key: Names the group.
        instance_key: Names this among the collectives of the group.
        rank: The node's place in the group; -1 where the node does not say.
    """

    group_size: int
    group_key: int | str
    instance_key: int | str
    rank: int = -1

    def __post_init__(self) -> None:
        if self.group_size <= 0:
            raise InvalidArgumentError(
                f"group_size must be positive integer but got {self.group_size}"
            )


class CollectiveKernel(AsyncOpKernel):
    """Takes part in a collective with the first input; the output is what the collective gives.

    Attributes:
        collective_type: The kind of the collective.
        is_source: Whether the input is what a broadcast is of.
        merge_op: Merges two tensors (reductions only).
        final_op: Completes what merging gave; None for no change.
        timeout_seconds: For how long the node waits for the others; 0 for no limit.
    """

    collective_type: ClassVar[CollectiveType]
    is_source: ClassVar[bool] = False

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.merge_op: Callable[[Any, Any], Any] | None = None
        self.final_op: Callable[[Any, int], Any] | None = None
        self.timeout_seconds: float = 0.0
        if construction.has_attr("timeout_seconds"):
            self.timeout_seconds = construction.get_attr("timeout_seconds")

    @abstractmethod
    def instance(self, ctx: OpKernelContext) -> Instance:
        """Which collective the node takes part in."""

    def tensor(self, ctx: OpKernelContext) -> Any:
        """The tensor that the node brings; None where it only receives."""
        return ctx.input(0)

    def shape(self, ctx: OpKernelContext, group_size: int) -> tuple[int, ...]:
        """The sizes that all members must agree on: by default those of the input."""
        return np.shape(ctx.input(0))

    def set_result(self, ctx: OpKernelContext, result: Any) -> None:
        """Take what the collective gives to this member."""
        ctx.set_output(0, result)

    @property
    def data_type(self) -> DataType:
        """The type of the tensors."""
        return self.output_types[0]

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        """Take part; `done` is called when all have."""
        executor = ctx.collective_executor
        if executor is None:
            raise InternalError(
                f"Failed to get CollectiveExecutor from OpKernelContext for Op {self.name}"
            )
        instance = self.instance(ctx)
        member = CollectiveMember(
            self.device.name, ctx.session_handle, ctx.step_id, self.name, instance.rank
        )
        params = CollectiveParams(
            type=self.collective_type,
            group_key=instance.group_key,
            group_size=instance.group_size,
            instance_key=instance.instance_key,
            data_type=self.data_type,
            shape=self.shape(ctx, instance.group_size),
            merge_op=self.merge_op,
            final_op=self.final_op,
            frame_iter=ctx.frame_iter,
            is_source=self.is_source,
            timeout_seconds=self.timeout_seconds,
        )

        def finish(error: OpError | None, result: Any) -> None:
            try:
                if error is None:
                    self.set_result(ctx, result)
            except OpError as wrong:
                error = wrong
            ctx.set_status(error)
            done()

        executor.execute_async(member, params, self.tensor(ctx), finish, ctx.cancellation_manager)


def scalar(ctx: OpKernelContext, name: str) -> int:
    """The value of an input that must be a scalar."""
    value = ctx.input(name)
    require_scalar(value, f"Unexpected dimensions on input {name}, got {{}}")
    return int(value)


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
        require(shape, "input should have rank > 0, received 0")
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


group_of_unknown_size_shape = shape_rule("[?, ...] -> [?, ...]")


register_collective = partial(register_op, is_stateful=True, is_distributed_communication=True)

SUMMED = "T: {bfloat16, float, half, double, int32, int64}"
_GATHERED = "T: {float, half, double, int32, int64}"
_SENT = "T: {bool, float, half, double, int32, int64}"
_KEY_ATTRS = ("group_size: int", "group_key: int", "instance_key: int")
_KEYED = "group_size: int32, group_key: int32, instance_key: int32"
_ORDERED = f"{_KEYED}, ordering_token: Nordering_token * resource"
_WAY = ("communication_hint: string = 'auto'", "timeout_seconds: float = 0")
_MERGE = ("merge_op: {'Min', 'Max', 'Mul', 'Add'}", "final_op: {'Id', 'Div'}")
_STATELESS = ("is_stateless: bool = false", "Nordering_token: int >= 0 = 0")
_SUBDIVISIONS = "max_subdivs_per_device: int = -1"
ALL_REDUCE = "The inputs of all members of the group, merged into one."
ALL_TO_ALL = "Of the input of each member of the group the row of this member's number."
_GATHER = "The inputs of all members of the group, one after the other."
_SEND = "The input, which the other members of the group get too."
_RECEIVE = "The input of the member of the group that sends."


def _register(
    signature: str,
    kernel: type[CollectiveKernel],
    shape_fn: OpShapeInferenceFn,
    *attrs: str,
    doc: str,
) -> None:
    op = register_collective(
        f"{signature} -> data: T",
        attrs=attrs,
        shape_fn=shape_fn,
        traits="any_order" if _ORDERED not in signature else "",
        doc=doc,
    )
    register_kernel(op)(kernel)


_register(
    "CollectiveReduce(input: T)",
    Reduce,
    unchanged_shape,
    *(SUMMED, *_KEY_ATTRS, *_MERGE, "subdiv_offsets: list(int)", "wait_for: list(int) = []"),
    *_WAY,
    doc=ALL_REDUCE,
)
_MERGED = (SUMMED, *_MERGE, *_WAY, *_STATELESS, _SUBDIVISIONS)
_register(
    f"CollectiveReduceV2(input: T, {_ORDERED})", Reduce, unchanged_shape, *_MERGED, doc=ALL_REDUCE
)
_register(
    f"CollectiveReduceScatterV2(input: T, {_ORDERED})",
    ReduceScatter,
    group_of_unknown_size_shape,
    *_MERGED,
    doc="This member's part of the inputs of all members of the group, merged into one.",
)
_PLACED = (*_KEY_ATTRS, "shape: shape", *_WAY)
_register("CollectiveGather(input: T)", Gather, gather_shape, _GATHERED, *_PLACED, doc=_GATHER)
_register(
    f"CollectiveGatherV2(input: T, {_ORDERED})",
    Gather,
    group_of_unknown_size_shape,
    *(_GATHERED, *_WAY, *_STATELESS),
    doc=_GATHER,
)
_register(
    f"CollectiveAllToAllV2(input: T, {_ORDERED})",
    AllToAll,
    unchanged_shape,
    *(SUMMED, *_WAY, *_STATELESS),
    doc=ALL_TO_ALL,
)
_register("CollectiveBcastSend(input: T)", BcastSend, explicit_shape, _SENT, *_PLACED, doc=_SEND)
_register(
    f"CollectiveBcastSendV2(input: T, {_KEYED})",
    BcastSend,
    unchanged_shape,
    _SENT,
    *_WAY,
    doc=_SEND,
)
_register("CollectiveBcastRecv()", BcastRecv, explicit_shape, _SENT, *_PLACED, doc=_RECEIVE)
_register(
    f"CollectiveBcastRecvV2({_KEYED}, shape: Tshape)",
    BcastRecv,
    shape_held_by(3),
    *(_SENT, "Tshape: {int32, int64} = DT_INT32", *_WAY),
    doc=_RECEIVE,
)


NCCL_ALL_REDUCE = register_op(
    "NcclAllReduce(input: T) -> data: T",
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
