"""Staging maps: tensors that one step puts aside under a key for another; in parts, if need be.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/map_stage_op.cc.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction, OpKernelContext
from opkernel.opdef import no_outputs, register_op, scalar_shape, unknown_shape
from opkernel.ops.data_flow.staging_area import LIMITS, NAMES, NodeResource, Room, set_values
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
from opkernel.ops.registration import register_kernel
from opkernel.ops.step_resources import InexpensiveKernel, kept
from opkernel.types import TensorShape

_OF_INDEX = 40
"""The bytes of a number as a value of Python."""

_KEY, _INDICES, _VALUES = "key: int64", "indices: int32", "values: dtypes"
_SOME, _ANY = "dtypes: list(type) >= 1", "dtypes: list(type)"

for _kind in ("Map", "OrderedMap"):
    for _name, _inputs, _outputs, _dtypes, _shape_fn, _doc in (
        (
            "Stage",
            [_KEY, _INDICES, "values: fake_dtypes"],
            [],
            [_ANY, "fake_dtypes: list(type) >= 1"],
            no_outputs,
            "Puts tensors under a key, as its tensors of these indices; waits while it is full.",
        ),
        (
            "Peek",
            [_KEY, _INDICES],
            [_VALUES],
            [_SOME],
            unknown_shape,
            "Tensors of a key, which stay; waits until the key has all.",
        ),
        (
            "Unstage",
            [_KEY, _INDICES],
            [_VALUES],
            [_SOME],
            unknown_shape,
            "Takes tensors of a key out; waits until the key has all.",
        ),
        (
            "UnstageNoKey",
            [_INDICES],
            [_KEY, _VALUES],
            [_SOME],
            unknown_shape,
            "Takes tensors of any key out; of an ordered map, of the smallest.",
        ),
        ("Size", [], ["size: int32"], [_ANY], scalar_shape, "The number of complete keys."),
        (
            "IncompleteSize",
            [],
            ["size: int32"],
            [_ANY],
            scalar_shape,
            "The number of keys that lack tensors.",
        ),
        ("Clear", [], [], [_ANY], no_outputs, "Takes out everything."),
    ):
        register_op(
            f"{_kind}{_name}",
            inputs=_inputs,
            outputs=_outputs,
            attrs=[*LIMITS, *_dtypes, *NAMES],
            shape_fn=_shape_fn,
            is_stateful=True,
            doc=_doc,
        )


class StagingMap(WaitingResource):
    """Tensors by key and index; used from any thread.

    Requests that can go on do so, the longest-waiting first.

    Args:
        num_values: How many tensors a key has.
        room: How much the map may hold.
    """

    def __init__(self, num_values: int, room: Room) -> None:
        self._putting, self._getting = Line(in_order=False), Line(in_order=False)
        super().__init__(self._putting, self._getting)
        self._num_values = num_values
        self._room = room
        self._complete: dict[int, dict[int, Any]] = {}
        self._incomplete: dict[int, dict[int, Any]] = {}

    def debug_string(self) -> str:
        """A description."""
        return "StagingMap"

    @property
    def size(self) -> int:
        """The number of complete keys."""
        return len(self._complete)

    @property
    def incomplete_size(self) -> int:
        """The number of keys that lack tensors."""
        return len(self._incomplete)

    def put(
        self,
        key: int,
        indices: Sequence[int],
        tensors: Sequence[Any],
        ctx: OpKernelContext,
        done: Done,
    ) -> None:
        """Put tensors of a key in, once there is room.

        Raises:
            InvalidArgumentError: the indices are not in order, or there are none such.
            ResourceExhaustedError: there will never be room.
        """
        self._check(key, indices)
        self._room.check(tensors)
        steps = self._put_steps(key, dict(zip(indices, tensors, strict=True)))
        self.start(self._putting, Attempt(ctx, done, steps, name="MapStage"))

    def pop(
        self,
        key: int | None,
        indices: Sequence[int],
        ctx: OpKernelContext,
        done: Done,
        deliver: Deliver,
    ) -> None:
        """Take tensors of a key out, of any if that is None; gives the key and the tensors."""
        self._check(key, indices)
        steps = self._pop_steps(key, indices)
        self.start(self._getting, Attempt(ctx, done, steps, deliver, name="MapUnstage"))

    def peek(
        self,
        key: int,
        indices: Sequence[int],
        ctx: OpKernelContext,
        done: Done,
        deliver: Deliver,
    ) -> None:
        """Look at tensors of a key; gives the key and the tensors."""
        self._check(key, indices)
        steps = self._peek_steps(key, indices)
        self.start(self._getting, Attempt(ctx, done, steps, deliver, name="MapPeek"))

    def clear(self) -> None:
        """Take out everything."""
        with self._lock:
            self._complete.clear()
            self._incomplete.clear()
            self._room.clear()
            self._changed()
            over = self._resume_all()
        finish_all(over)

    def next_key(self) -> int:
        """The key that is taken where none is asked for; there is one."""
        newest: int = next(reversed(self._complete))
        return newest

    def _put_steps(self, key: int, tensors: dict[int, Any]) -> Steps:
        is_complete, values = len(tensors) == self._num_values, list(tensors.values())
        while (is_complete and self._room.is_full(self.size)) or not self._room.has_memory(values):
            yield
        entry = tensors if is_complete else self._completed(key, tensors)
        if len(entry) == self._num_values:
            self._complete.setdefault(key, entry)  # tensors that are there stay, as in TensorFlow
        self._room.add(values)
        self._changed()

    def _completed(self, key: int, tensors: dict[int, Any]) -> dict[int, Any]:
        """The entry of a key with further tensors; it is complete once it has all."""
        entry = self._incomplete.setdefault(key, {})
        for index in tensors:
            if index in entry:
                raise InvalidArgumentError(
                    f"The tensor for index '{index}' for key '{key}' was already initialized "
                    f"'{self._num_values}'."
                )
        entry |= tensors
        if len(entry) == self._num_values:
            del self._incomplete[key]
        return entry

    def _pop_steps(self, key: int | None, indices: Sequence[int]) -> Steps:
        while not self._complete if key is None else key not in self._complete:
            yield
        found = self.next_key() if key is None else key
        tensors = self._tensors(found, indices)
        left = self._complete[found]
        for index in indices:
            del left[index]
        if not left:
            del self._complete[found]
        self._room.remove(tensors)
        self._changed()
        return found, tensors

    def _peek_steps(self, key: int, indices: Sequence[int]) -> Steps:
        while key not in self._complete:
            yield
        return key, [kept(tensor) for tensor in self._tensors(key, indices)]

    def _tensors(self, key: int, indices: Sequence[int]) -> list[Any]:
        entry = self._complete[key]
        for index in indices:
            if index not in entry:
                raise InvalidArgumentError(
                    f"Tensor at index '{index}' for key '{key}' has already been removed."
                )
        return [entry[index] for index in indices]

    def _check(self, key: int | None, indices: Sequence[int]) -> None:
        if not indices:
            raise InvalidArgumentError("Indices are empty")
        if any(a >= b for a, b in pairwise(indices)):
            raise InvalidArgumentError("Indices are not strictly ordered")
        for index in indices:
            if not 0 <= index < self._num_values:
                raise InvalidArgumentError(
                    f"Index '{index}' for key '{key}' was out of bounds '{self._num_values}'."
                )


class OrderedStagingMap(StagingMap):
    """A staging map that the smallest key leaves first."""

    def next_key(self) -> int:
        """The smallest key."""
        return min(self._complete)


def _node_map(construction: OpKernelConstruction) -> NodeResource[StagingMap]:
    """The map of a node."""
    is_ordered = construction.node_def.op.startswith("Ordered")
    map_type = OrderedStagingMap if is_ordered else StagingMap
    num_values = len(construction.get_attr("dtypes"))
    return NodeResource(construction, map_type, lambda room: map_type(num_values, room))


def _key(ctx: OpKernelContext) -> int:
    key: Any = ctx.input("key")
    if key.size == 0:
        raise InvalidArgumentError("key must not be empty")
    if key.size != 1:
        raise InvalidArgumentError(
            f"key must be an int64 scalar, got tensor with shape: {TensorShape(key.shape)}"
        )
    return int(key.item())


def _indices(ctx: OpKernelContext) -> list[int]:
    indices: Any = ctx.input("indices")
    with making_bytes("indices", _OF_INDEX * indices.size):
        found: list[int] = indices.reshape(-1).tolist()
    return found


def _set_values(ctx: OpKernelContext, found: tuple[int, Sequence[Any]]) -> None:
    set_values(ctx, found[1])


def _set_key_and_values(ctx: OpKernelContext, found: tuple[int, Sequence[Any]]) -> None:
    ctx.set_output("key", np.int64(found[0]))
    set_values(ctx, found[1])


class _WaitingMapKernel(WaitingKernel[StagingMap]):
    """A kernel that may wait for the map."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._map = _node_map(construction)

    def find(self, ctx: OpKernelContext) -> StagingMap:
        return self._map.find(ctx)


@register_kernel("MapStage", "OrderedMapStage")
class MapStage(_WaitingMapKernel):
    """Puts tensors in."""

    forwards_inputs = True

    def access(self, staging_map: StagingMap, ctx: OpKernelContext, done: Done) -> None:
        key, indices = _key(ctx), _indices(ctx)
        start, stop = self.input_range("values")
        if len(indices) != stop - start and indices:
            raise InvalidArgumentError(
                f"The number of values must equal that of indices, got {stop - start} and {len(indices)}"
            )
        tensors = [ctx.own_input(i) for i in range(start, stop)] if indices else []
        staging_map.put(key, indices, tensors, ctx, done)


@register_kernel("MapPeek", "OrderedMapPeek")
class MapPeek(_WaitingMapKernel):
    """Looks at tensors."""

    def access(self, staging_map: StagingMap, ctx: OpKernelContext, done: Done) -> None:
        staging_map.peek(_key(ctx), _indices(ctx), ctx, done, partial(_set_values, ctx))


@register_kernel("MapUnstage", "OrderedMapUnstage")
class MapUnstage(_WaitingMapKernel):
    """Takes tensors of a key out."""

    def access(self, staging_map: StagingMap, ctx: OpKernelContext, done: Done) -> None:
        staging_map.pop(_key(ctx), _indices(ctx), ctx, done, partial(_set_values, ctx))


@register_kernel("MapUnstageNoKey", "OrderedMapUnstageNoKey")
class MapUnstageNoKey(_WaitingMapKernel):
    """Takes tensors of some key out."""

    def access(self, staging_map: StagingMap, ctx: OpKernelContext, done: Done) -> None:
        staging_map.pop(None, _indices(ctx), ctx, done, partial(_set_key_and_values, ctx))


class _MapKernel(InexpensiveKernel):
    """A kernel that does not wait for the map."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._map = _node_map(construction)


@register_kernel("MapSize", "OrderedMapSize")
class MapSize(_MapKernel):
    """The number of complete keys."""

    def compute(self, ctx: OpKernelContext) -> None:
        with self._map.find(ctx) as staging_map:
            ctx.set_output(0, np.int32(staging_map.size))


@register_kernel("MapIncompleteSize", "OrderedMapIncompleteSize")
class MapIncompleteSize(_MapKernel):
    """The number of keys that lack tensors."""

    def compute(self, ctx: OpKernelContext) -> None:
        with self._map.find(ctx) as staging_map:
            ctx.set_output(0, np.int32(staging_map.incomplete_size))


@register_kernel("MapClear", "OrderedMapClear")
class MapClear(_MapKernel):
    """Takes everything out."""

    def compute(self, ctx: OpKernelContext) -> None:
        with self._map.find(ctx) as staging_map:
            staging_map.clear()
