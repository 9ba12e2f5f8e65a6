"""Staging maps: tensors that one step puts aside under a key for another; in parts, if need be.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/map_stage_op.cc.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction, OpKernelContext
from opkernel.opdef import no_outputs, scalar_shape, unknown_shape
from opkernel.ops.data_flow.staging_area import (
    ANY,
    SOME,
    Room,
    SharedStaging,
    Staging,
    declare,
    register_quick,
    set_values,
)
from opkernel.ops.data_flow.waiting import Deliver, Done, Steps, WaitingKernel
from opkernel.ops.input_checks import require
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import kept
from opkernel.types import TensorShape

_OF_INDEX = 40
"""The bytes of a number as a value of Python."""

for _kind in ("Map", "OrderedMap"):
    declare(
        f"{_kind}Stage(key: int64, indices: int32, values: fake_dtypes)",
        ANY,
        "fake_dtypes: list(type) >= 1",
        shape_fn=no_outputs,
        doc="Puts tensors under a key, as its tensors of these indices; waits while it is full.",
    )
    declare(
        f"{_kind}Peek(key: int64, indices: int32) -> values: dtypes",
        SOME,
        shape_fn=unknown_shape,
        doc="Tensors of a key, which stay; waits until the key has all.",
    )
    declare(
        f"{_kind}Unstage(key: int64, indices: int32) -> values: dtypes",
        SOME,
        shape_fn=unknown_shape,
        doc="Takes tensors of a key out; waits until the key has all.",
    )
    declare(
        f"{_kind}UnstageNoKey(indices: int32) -> key: int64, values: dtypes",
        SOME,
        shape_fn=unknown_shape,
        doc="Takes tensors of any key out; of an ordered map, of the smallest.",
    )
    declare(
        f"{_kind}Size() -> size: int32",
        ANY,
        shape_fn=scalar_shape,
        doc="The number of complete keys.",
    )
    declare(
        f"{_kind}IncompleteSize() -> size: int32",
        ANY,
        shape_fn=scalar_shape,
        doc="The number of keys that lack tensors.",
    )
    declare(f"{_kind}Clear", ANY, shape_fn=no_outputs, doc="Takes out everything.")


class StagingMap(Staging):
    """Tensors by key and index.

    Args:
        num_values: How many tensors a key has.
        room: How much the map may hold.
    """

    def __init__(self, num_values: int, room: Room) -> None:
        super().__init__(room)
        self._num_values = num_values
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
        self, key: int, indices: list[int], tensors: list[Any], ctx: OpKernelContext, done: Done
    ) -> None:
        """Put tensors of a key in, once there is room.

        Raises:
            InvalidArgumentError: the indices are not in order, or there are none such.
            ResourceExhaustedError: there will never be room.
        """
        self._check(key, indices)
        self._room.check(tensors)
        steps = self._put_steps(key, dict(zip(indices, tensors, strict=True)))
        self.start(self._putting, ctx, done, steps, name="MapStage")

    def get(
        self,
        key: int | None,
        indices: list[int],
        ctx: OpKernelContext,
        done: Done,
        deliver: Deliver,
        *,
        stays: bool,
    ) -> None:
        """Take tensors of a key out, of any if that is None, or look at them; gives the key and the tensors."""
        self._check(key, indices)
        steps = self._get_steps(key, indices, stays)
        name = "MapPeek" if stays else "MapUnstage"
        self.start(self._getting, ctx, done, steps, deliver, name=name)

    def next_key(self) -> int:
        """The key that is taken where none is asked for; there is one."""
        newest: int = next(reversed(self._complete))
        return newest

    def _drop_all(self) -> None:
        self._complete.clear()
        self._incomplete.clear()

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

    def _get_steps(self, key: int | None, indices: list[int], stays: bool) -> Steps:
        while not self._complete if key is None else key not in self._complete:
            yield
        found = self.next_key() if key is None else key
        entry = self._complete[found]
        for index in indices:
            if index not in entry:
                raise InvalidArgumentError(
                    f"Tensor at index '{index}' for key '{found}' has already been removed."
                )
        if stays:
            return found, [kept(entry[index]) for index in indices]
        tensors = [entry.pop(index) for index in indices]
        if not entry:
            del self._complete[found]
        self._room.remove(tensors)
        self._changed()
        return found, tensors

    def _check(self, key: int | None, indices: list[int]) -> None:
        require(indices, "Indices are empty")
        require(not any(a >= b for a, b in pairwise(indices)), "Indices are not strictly ordered")
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


class _SharedMap(SharedStaging):
    staging_type: type[StagingMap]

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        is_ordered = self.type_string.startswith("Ordered")
        self.staging_type = OrderedStagingMap if is_ordered else StagingMap
        self._num_values = len(construction.get_attr("dtypes"))

    def create(self, room: Room) -> StagingMap:
        return self.staging_type(self._num_values, room)


def _key(ctx: OpKernelContext) -> int:
    key: Any = ctx.input("key")
    require(key.size, "key must not be empty")
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


@register_kernel("MapStage", "OrderedMapStage")
class MapStage(_SharedMap, WaitingKernel[StagingMap]):
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


@register_kernel(
    "MapPeek",
    "MapUnstage",
    "MapUnstageNoKey",
    "OrderedMapPeek",
    "OrderedMapUnstage",
    "OrderedMapUnstageNoKey",
)
class MapGet(_SharedMap, WaitingKernel[StagingMap]):
    """Takes tensors of a key out, or looks at them; without an input for it, of some key."""

    def access(self, staging_map: StagingMap, ctx: OpKernelContext, done: Done) -> None:
        key = None if self.type_string.endswith("NoKey") else _key(ctx)

        def deliver(found: tuple[int, list[Any]]) -> None:
            if key is None:
                ctx.set_output("key", np.int64(found[0]))
            set_values(ctx, found[1])

        stays = self.type_string.endswith("Peek")
        staging_map.get(key, _indices(ctx), ctx, done, deliver, stays=stays)


register_quick(_SharedMap, "MapSize", "OrderedMapSize", act=lambda found: found.size)
register_quick(_SharedMap, "MapClear", "OrderedMapClear", act=lambda found: found.clear())
register_quick(
    _SharedMap,
    "MapIncompleteSize",
    "OrderedMapIncompleteSize",
    act=lambda found: found.incomplete_size,
)
