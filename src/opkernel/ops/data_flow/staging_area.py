"""Staging areas: tensors that one step puts aside for another.

The common part of staging areas and staging maps: their declaration, limits, waiting, and where nodes find them.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/stage_op.cc, map_stage_op.cc.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import ResourceExhaustedError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import OpShapeInferenceFn, no_outputs, register_op, scalar_shape, unknown_shape
from opkernel.ops.data_flow.waiting import (
    Deliver,
    Done,
    Line,
    Steps,
    WaitingKernel,
    WaitingResource,
)
from opkernel.ops.input_checks import require, require_equal, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import InexpensiveKernel, container_of, kept

SOME, ANY = "dtypes: list(type) >= 1", "dtypes: list(type)"
_LIMITS = ("capacity: int >= 0 = 0", "memory_limit: int >= 0 = 0")
_NAMES = ("container: string = ''", "shared_name: string = ''")

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


class Staging(WaitingResource):
    """What staging areas and staging maps have in common; used from any thread.

    Requests that can go on do so, the longest-waiting first.

    Args:
        room: How much it may hold.
    """

    def __init__(self, room: Room) -> None:
        self._putting, self._getting = Line(in_order=False), Line(in_order=False)
        super().__init__(self._putting, self._getting)
        self._room = room

    def clear(self) -> None:
        """Take out everything."""
        with self._changing():
            self._drop_all()
            self._room.clear()

    def _drop_all(self) -> None:
        """Forget all tensors, under the lock."""
        raise NotImplementedError


class SharedStaging(OpKernel):
    """A kernel that uses what nodes of its shared name share, and makes it where there is none.

    Attributes:
        staging_type: The class of it.
    """

    staging_type: type[Staging]

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._limits = construction.get_attr("capacity"), construction.get_attr("memory_limit")

    def create(self, room: Room) -> Staging:
        """A new staging area or map."""
        return self.staging_type(room)

    def find(self, ctx: OpKernelContext) -> Any:
        """The staging area or map, with one more reference, for the caller to give up."""
        info = container_of(self, ctx)
        return info.resource_manager.lookup_or_create(
            info.container, info.name, self.staging_type, lambda: self.create(Room(*self._limits))
        )


def register_quick(
    shared: type[SharedStaging], *ops: str, act: Callable[[Any], int | None]
) -> None:
    """Register a kernel that waits for nothing: `act` uses what is shared; output 0 is what it returns, if anything."""

    def compute(self: SharedStaging, ctx: OpKernelContext) -> None:
        with self.find(ctx) as staging:
            number = act(staging)
        if number is not None:
            ctx.set_output(0, np.int32(number))

    register_kernel(*ops)(type(ops[0], (shared, InexpensiveKernel), {"compute": compute}))


def declare(signature: str, *attrs: str, shape_fn: OpShapeInferenceFn, doc: str) -> None:
    """Declare an op on a staging area or map; `attrs` stand between the limits and the names."""
    register_op(
        signature, attrs=[*_LIMITS, *attrs, *_NAMES], shape_fn=shape_fn, is_stateful=True, doc=doc
    )


declare(
    "Stage(values: dtypes)",
    SOME,
    shape_fn=no_outputs,
    doc="Puts tensors at the end of the staging area; waits while it is full.",
)
declare(
    "Unstage() -> values: dtypes",
    SOME,
    shape_fn=unknown_shape,
    doc="Takes the tensors that were put in first; waits until there are some.",
)
declare(
    "StagePeek(index: int32) -> values: dtypes",
    SOME,
    shape_fn=unknown_shape,
    doc="The tensors that were put in as number `index`, which stay; waits until they are there.",
)
declare(
    "StageSize() -> size: int32",
    ANY,
    shape_fn=scalar_shape,
    doc="How many times tensors were put in that are still there.",
)
declare("StageClear", ANY, shape_fn=no_outputs, doc="Takes out everything.")


class StagingArea(Staging):
    """Tuples of tensors, which leave in the order in which they came."""

    def __init__(self, room: Room) -> None:
        super().__init__(room)
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
        self.start(self._putting, ctx, done, self._put_steps(tensors), name="Stage")

    def get(self, ctx: OpKernelContext, done: Done, deliver: Deliver) -> None:
        """Take out the oldest element, once there is one."""
        self.start(self._getting, ctx, done, self._get_steps(), deliver, name="Unstage")

    def peek(self, index: int, ctx: OpKernelContext, done: Done, deliver: Deliver) -> None:
        """Look at an entry, once it is there."""
        self.start(self._getting, ctx, done, self._peek_steps(index), deliver, name="StagePeek")

    def _drop_all(self) -> None:
        self._entries.clear()

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


class _SharedArea(SharedStaging):
    staging_type = StagingArea


@register_kernel("Stage")
class Stage(_SharedArea, WaitingKernel[StagingArea]):
    """Puts tensors in."""

    forwards_inputs = True

    def access(self, area: StagingArea, ctx: OpKernelContext, done: Done) -> None:
        area.put([ctx.own_input(i) for i in range(ctx.num_inputs)], ctx, done)


@register_kernel("Unstage")
class Unstage(_SharedArea, WaitingKernel[StagingArea]):
    """Takes tensors out."""

    def access(self, area: StagingArea, ctx: OpKernelContext, done: Done) -> None:
        area.get(ctx, done, partial(set_values, ctx))


@register_kernel("StagePeek")
class StagePeek(_SharedArea, WaitingKernel[StagingArea]):
    """Looks at tensors."""

    def access(self, area: StagingArea, ctx: OpKernelContext, done: Done) -> None:
        index = ctx.input(0)
        require_scalar(index, "index must be scalar, but has shape {}")
        require(index >= 0, f"index must not be negative, got {index}")
        area.peek(int(index), ctx, done, partial(set_values, ctx))


register_quick(_SharedArea, "StageSize", act=lambda area: area.size)
register_quick(_SharedArea, "StageClear", act=lambda area: area.clear())
