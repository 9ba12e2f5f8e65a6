"""Collectives of a communicator: a resource that holds one member's place in a group.

Source: TensorFlow core/ops/collective_ops.cc, core/kernels/collective_ops.cc.
"""

import itertools
import threading
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import (
    CollectiveType,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    create_resource,
    handle_from_input,
    lookup_resource,
    make_resource_handle,
)
from opkernel.opdef import scalar_shape, unchanged_shape
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.collective.collectives import (
    ALL_REDUCE,
    ALL_TO_ALL,
    MERGE_OPS,
    SUMMED,
    CollectiveKernel,
    Instance,
    register_collective,
    scalar,
)
from opkernel.ops.input_checks import require_rank
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_CONTAINER = "collective_op_group"


class CollectiveGroup(ResourceBase):
    """A member's place in a group; numbers the collectives that it takes part in."""

    def __init__(self, group_key: int, rank: int, group_size: int, timeout_seconds: float) -> None:
        self.group_key = group_key
        self.rank = rank
        self.group_size = group_size
        self.timeout_seconds = timeout_seconds
        self._instance_keys = itertools.count()
        self._lock = threading.Lock()

    def next_instance(self) -> Instance:
        """The next collective."""
        with self._lock:
            return Instance(
                self.group_size, self.group_key, str(next(self._instance_keys)), self.rank
            )

    def debug_string(self) -> str:
        return (
            f"Collective Group with group_key = {self.group_key}, "
            f"group_size = {self.group_size}, rank = {self.rank}"
        )


COLLECTIVE_INITIALIZE_COMMUNICATOR = register_collective(
    "CollectiveInitializeCommunicator(group_key: int32, rank: int32, group_size: int32) "
    "-> communicator: resource",
    attrs=["communication_hint: string = 'auto'", "timeout_seconds: float = 0"],
    shape_fn=scalar_shape,
    traits="any_order",
    doc="A place in a group; waits until all places are taken.",
)
COLLECTIVE_REDUCE_V3 = register_collective(
    "CollectiveReduceV3(input: T, communicator: resource, group_assignment: int32) -> data: T",
    attrs=[SUMMED, "reduction: {'Min', 'Max', 'Mul', 'Add'}", "timeout_seconds: float = 0"],
    shape_fn=unchanged_shape,
    doc=ALL_REDUCE,
)
COLLECTIVE_ALL_TO_ALL_V3 = register_collective(
    "CollectiveAllToAllV3(input: T, communicator: resource, group_assignment: int32) -> data: T",
    attrs=[SUMMED, "timeout_seconds: float = 0"],
    shape_fn=unchanged_shape,
    doc=ALL_TO_ALL,
)
COLLECTIVE_ASSIGN_GROUP_V2 = register_collective(
    "CollectiveAssignGroupV2(group_assignment: int32, device_index: int32, base_key: int32) "
    "-> group_size: int32, group_key: int32",
    shape_fn=shape_rule("-> [], []"),
    traits="any_order",
    doc="The size and the key of the group, a row of `group_assignment`, that a device is in.",
)


@register_kernel(COLLECTIVE_INITIALIZE_COMMUNICATOR)
class InitializeCommunicator(CollectiveKernel):
    """Gathers the ranks of all members, so that it ends when the group is complete."""

    collective_type = CollectiveType.GATHER_COLLECTIVE

    @property
    def data_type(self) -> DataType:
        return DataType.DT_INT32

    def instance(self, ctx: OpKernelContext) -> Instance:
        group_key, rank, group_size = (
            scalar(ctx, name) for name in ("group_key", "rank", "group_size")
        )
        instance = Instance(group_size, group_key, "communicator", rank)
        if rank < 0:
            raise InvalidArgumentError(f"rank must be non-negative integer but got {rank}")
        if rank >= group_size:
            raise InvalidArgumentError(
                f"rank must be less than group size but got {rank} >= {group_size}"
            )
        return instance

    def tensor(self, ctx: OpKernelContext) -> Any:
        return np.atleast_1d(ctx.input("rank"))

    def shape(self, ctx: OpKernelContext, group_size: int) -> tuple[int, ...]:
        return (1,)

    def set_result(self, ctx: OpKernelContext, result: Any) -> None:
        group_size = len(result)
        if result.tolist() != list(range(group_size)):
            raise InvalidArgumentError(
                f"the ranks of a group of {group_size} must all differ, but are {result.tolist()}"
            )
        group_key, rank = scalar(ctx, "group_key"), scalar(ctx, "rank")
        name = f"{group_key}:r{rank:04d}"
        handle = make_resource_handle(_CONTAINER, name, self.device, CollectiveGroup)
        group = CollectiveGroup(group_key, rank, group_size, self.timeout_seconds)
        create_resource(ctx, handle, group)
        ctx.set_output(0, np.array(handle, object))


class CommunicatorKernel(CollectiveKernel):
    """Takes part in the next collective of its communicator."""

    def instance(self, ctx: OpKernelContext) -> Instance:
        if np.size(ctx.input("group_assignment")):
            raise UnimplementedError("Group assignments are not supported yet.")
        handle = handle_from_input(ctx.input("communicator"))
        with lookup_resource(ctx, handle, CollectiveGroup) as group:
            return group.next_instance()


@register_kernel(COLLECTIVE_REDUCE_V3)
class ReduceV3(CommunicatorKernel):
    """The inputs of all members merged into one."""

    collective_type = CollectiveType.REDUCTION_COLLECTIVE

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.merge_op = MERGE_OPS[construction.get_attr("reduction")]


@register_kernel(COLLECTIVE_ALL_TO_ALL_V3)
class AllToAllV3(CommunicatorKernel):
    """The rows of all members' inputs that are meant for this one."""

    collective_type = CollectiveType.ALL_TO_ALL_COLLECTIVE


@register_kernel(COLLECTIVE_ASSIGN_GROUP_V2)
def collective_assign_group(
    group_assignment: Any, device_index: Any, base_key: Any
) -> tuple[Any, Any]:
    """The keys of the groups are `base_key` and the integers after it."""
    for name, value, rank, wanted in (
        ("device_index", device_index, 0, "a scalar"),
        ("group_assignment", group_assignment, 2, "a 2-d Tensor"),
        ("base_key", base_key, 0, "a scalar"),
    ):
        require_rank(value, rank, f"{name} must be {wanted}, but received tensor of shape: {{}}")
    groups = group_assignment.tolist()
    for group, members in enumerate(groups):
        key = np.asarray(int(base_key) + group).astype(np.int32)[()]  # wraps around
        if key == 0:
            raise InvalidArgumentError(
                "Using the reserved group_key = 0 is not allowed: "
                f"group_id = {group}, base_key = {base_key}"
            )
        for member in members:
            if not 0 <= member < group_assignment.size:
                raise InvalidArgumentError(
                    f"Not all items in group_assignment {groups} is within [0, number of devices)"
                )
            if member == device_index:
                return np.int32(len(members)), key
    raise InvalidArgumentError(
        f"device_index {device_index} is not found in group_assignment {groups}"
    )
