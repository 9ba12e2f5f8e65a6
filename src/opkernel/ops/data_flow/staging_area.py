"""Staging areas: tensors that one step puts aside for another.

The common part of staging areas and staging maps: limits, and where nodes find them.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/stage_op.cc, map_stage_op.cc.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import OpKernelConstruction, OpKernelContext, ResourceBase
from opkernel.opdef import no_outputs, register_op, scalar_shape, unknown_shape
from opkernel.ops.data_flow.waiting import (
    Attempt,
    Deliver,
    Done,
    Line,
    Steps,
    WaitingKernel,
    WaitingResource,
    finish_all,
)
from opkernel.ops.input_checks import require_equal, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import container_of
from opkernel.ops.step_resources import InexpensiveKernel, kept

__all__ = ["LIMITS", "NAMES", "NodeResource", "Room", "set_values"]


R = TypeVar("R", bound=ResourceBase)

LIMITS = ("capacity: int >= 0 = 0", "memory_limit: int >= 0 = 0")
NAMES = ("container: string = ''", "shared_name: string = ''")

_BYTES_OF_A_STRING = 24  # beyond its characters, in TensorFlow


class Room:
    """How much a staging area holds, and may hold.

    Args:
        capacity: The most entries; 0 for any number.
        memory_limit: The most bytes; 0 for any number.
    """

    def __init__(self, capacity: int, memory_limit: int) -> None:
        self._capacity = capacity
        self._memory_limit = memory_limit
        self._bytes = 0

    def check(self, tensors: Sequence[Any]) -> None:
        """Raise ResourceExhaustedError for tensors that there will never be room for."""
        size = _size_of(tensors)
        if 0 < self._memory_limit < size:
            raise ResourceExhaustedError(
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging "
                f"Area with a memory limit of '{self._memory_limit}'."
            )

    def has_memory(self, tensors: Sequence[Any]) -> bool:
        """Whether there is memory for these tensors now."""
        return not self._memory_limit or self._bytes + _size_of(tensors) <= self._memory_limit

    def is_full(self, num_entries: int) -> bool:
        """Whether there are as many entries as there may be."""
        return 0 < self._capacity <= num_entries

    def add(self, tensors: Sequence[Any]) -> None:
        """Count tensors that were put in."""
        self._bytes += _size_of(tensors)

    def remove(self, tensors: Sequence[Any]) -> None:
        """Count tensors that were taken out."""
        self._bytes -= _size_of(tensors)

    def clear(self) -> None:
        """Everything was taken out."""
        self._bytes = 0


def _size_of(tensors: Sequence[Any]) -> int:
    """The bytes of tensors."""
    return sum(map(_bytes_of, tensors))


def _bytes_of(tensor: Any) -> int:
    if tensor.dtype != object:
        return int(tensor.nbytes)
    return sum(
        _BYTES_OF_A_STRING + (len(value) if isinstance(value, bytes) else 0)
        for value in tensor.reshape(-1)
    )


def set_values(ctx: OpKernelContext, tensors: Sequence[Any]) -> None:
    """Set the output `values`.

    Raises:
        InvalidArgumentError: the node has another number of outputs.
    """
    start, stop = ctx.kernel.output_range("values")
    require_equal(len(tensors), stop - start, "Mismatch stage/unstage: {} vs. {}")
    ctx.set_output_list("values", tensors)


class NodeResource(Generic[R]):
    """Finds the resource that nodes of one shared name share, or makes it.

    Args:
        construction: Of the kernel.
        resource_type: The class that the resource is found by.
        create: Makes it, given the room that it has.
    """

    def __init__(
        self,
        construction: OpKernelConstruction,
        resource_type: type[R],
        create: Callable[[Room], R],
    ) -> None:
        self._capacity: int = construction.get_attr("capacity")
        self._memory_limit: int = construction.get_attr("memory_limit")
        self._resource_type = resource_type
        self._create = create

    def find(self, ctx: OpKernelContext) -> R:
        """The resource, with one more reference, for the caller to give up."""
        info = container_of(ctx.kernel, ctx)
        return info.resource_manager.lookup_or_create(
            info.container,
            info.name,
            self._resource_type,
            lambda: self._create(Room(self._capacity, self._memory_limit)),
        )


for _name, _inputs, _outputs, _dtypes, _shape_fn, _doc in (
    (
        "Stage",
        ["values: dtypes"],
        [],
        "dtypes: list(type) >= 1",
        no_outputs,
        "Puts tensors at the end of the staging area; waits while it is full.",
    ),
    (
        "Unstage",
        [],
        ["values: dtypes"],
        "dtypes: list(type) >= 1",
        unknown_shape,
        "Takes the tensors that were put in first; waits until there are some.",
    ),
    (
        "StagePeek",
        ["index: int32"],
        ["values: dtypes"],
        "dtypes: list(type) >= 1",
        unknown_shape,
        "The tensors that were put in as number `index`, which stay; waits until they are there.",
    ),
    (
        "StageSize",
        [],
        ["size: int32"],
        "dtypes: list(type)",
        scalar_shape,
        "How many times tensors were put in that are still there.",
    ),
    (
        "StageClear",
        [],
        [],
        "dtypes: list(type)",
        no_outputs,
        "Takes out everything.",
    ),
):
    register_op(
        _name,
        inputs=_inputs,
        outputs=_outputs,
        attrs=[*LIMITS, _dtypes, *NAMES],
        shape_fn=_shape_fn,
        is_stateful=True,
        doc=_doc,
    )


class StagingArea(WaitingResource):
    """Tuples of tensors, which leave in the order in which they came; used from any thread.

    Requests that can go on do so, the longest-waiting first.
    """

    def __init__(self, room: Room) -> None:
        self._putting, self._getting = Line(in_order=False), Line(in_order=False)
        super().__init__(self._putting, self._getting)
        self._room = room
        self._entries: deque[Sequence[Any]] = deque()

    def debug_string(self) -> str:
        """How many entries it has."""
        return f"Staging size: {self.size}"

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self._entries)

    def put(self, tensors: Sequence[Any], ctx: OpKernelContext, done: Done) -> None:
        """Put tensors in, once there is room.

        Raises:
            ResourceExhaustedError: there never will be.
        """
        self._room.check(tensors)
        self.start(self._putting, Attempt(ctx, done, self._put_steps(tensors), name="Stage"))

    def get(self, ctx: OpKernelContext, done: Done, deliver: Deliver) -> None:
        """Take out the oldest element, once there is one."""
        self.start(self._getting, Attempt(ctx, done, self._get_steps(), deliver, name="Unstage"))

    def peek(self, index: int, ctx: OpKernelContext, done: Done, deliver: Deliver) -> None:
        """Look at an entry, once it is there."""
        steps = self._peek_steps(index)
        self.start(self._getting, Attempt(ctx, done, steps, deliver, name="StagePeek"))

    def clear(self) -> None:
        """Take out everything."""
        with self._lock:
            self._entries.clear()
            self._room.clear()
            self._changed()
            over = self._resume_all()
        finish_all(over)

    def _put_steps(self, tensors: Sequence[Any]) -> Steps:
        while self._room.is_full(self.size) or not self._room.has_memory(tensors):
            yield
        self._room.add(tensors)
        self._entries.append(tensors)
        self._changed()

    def _get_steps(self) -> Steps:
        while not self._entries:
            yield
        tensors = self._entries.popleft()
        self._room.remove(tensors)
        self._changed()
        return tensors

    def _peek_steps(self, index: int) -> Steps:
        while index >= self.size:
            yield
        return [kept(tensor) for tensor in self._entries[index]]


class _WaitingStageKernel(WaitingKernel[StagingArea]):
    """A kernel that may wait for the staging area."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._area = NodeResource(construction, StagingArea, StagingArea)

    def find(self, ctx: OpKernelContext) -> StagingArea:
        return self._area.find(ctx)


@register_kernel("Stage")
class Stage(_WaitingStageKernel):
    """Puts tensors in."""

    forwards_inputs = True

    def access(self, area: StagingArea, ctx: OpKernelContext, done: Done) -> None:
        area.put([ctx.own_input(i) for i in range(ctx.num_inputs)], ctx, done)


@register_kernel("Unstage")
class Unstage(_WaitingStageKernel):
    """Takes tensors out."""

    def access(self, area: StagingArea, ctx: OpKernelContext, done: Done) -> None:
        area.get(ctx, done, partial(set_values, ctx))


@register_kernel("StagePeek")
class StagePeek(_WaitingStageKernel):
    """Looks at tensors."""

    def access(self, area: StagingArea, ctx: OpKernelContext, done: Done) -> None:
        index = ctx.input(0)
        require_scalar(index, "index must be scalar, but has shape {}")
        if index < 0:
            raise InvalidArgumentError(f"index must not be negative, got {index}")
        area.peek(int(index), ctx, done, partial(set_values, ctx))


class _StageKernel(InexpensiveKernel):
    """A kernel that does not wait for the staging area."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._area = NodeResource(construction, StagingArea, StagingArea)


@register_kernel("StageSize")
class StageSize(_StageKernel):
    """The number of entries."""

    def compute(self, ctx: OpKernelContext) -> None:
        with self._area.find(ctx) as area:
            ctx.set_output(0, np.int32(area.size))


@register_kernel("StageClear")
class StageClear(_StageKernel):
    """Takes everything out."""

    def compute(self, ctx: OpKernelContext) -> None:
        with self._area.find(ctx) as area:
            area.clear()
