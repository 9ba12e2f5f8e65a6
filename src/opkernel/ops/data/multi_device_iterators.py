"""Iterators whose elements are dealt to several devices in turn.

The element number i is for shard i modulo the number of devices. Elements that other shards have not asked for yet
wait in a buffer. A shard of an earlier pass (another incarnation) gets an error.

Source: TensorFlow core/kernels/data/multi_device_iterator_ops.cc.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import numpy as np

from opkernel.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    Step,
    lookup_resource,
    tensor_of_handle,
)
from opkernel.opdef import full_type
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element, Turns, dataset_of, held
from opkernel.ops.data.dataset_op import declare
from opkernel.ops.data.handles import (
    DeleteResourceOp,
    OwnedHandleOp,
    ToStringHandleOp,
    handle_of_bytes,
)
from opkernel.ops.data.iterators import OfElements
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import (
    InexpensiveKernel,
    RefCountingHandleOp,
    ResourceOpKernel,
    resource_of_handle,
)

_TYPE_FNS = {
    "MultiDeviceIteratorFromStringHandle": full_type.decode(FullTypeId.TFT_STRING, 0),
    "MultiDeviceIteratorToStringHandle": full_type.encode(FullTypeId.TFT_STRING, 0),
}
for _name, _doc in {
    "AnonymousMultiDeviceIterator": "A new iterator for several devices, and what deletes it.",
    "AnonymousMultiDeviceIteratorV3": "A new iterator for several devices, which lives as long as its handle.",
    "DeleteMultiDeviceIterator": "Deletes an iterator for several devices.",
    "MultiDeviceIterator": "The iterator for several devices of a name.",
    "MultiDeviceIteratorFromStringHandle": "The handle that a string stands for.",
    "MultiDeviceIteratorGetNextFromShard": "The next element for a device; an OutOfRangeError at the end.",
    "MultiDeviceIteratorInit": "Lets an iterator begin a pass; the number of the pass.",
    "MultiDeviceIteratorToStringHandle": "A string that stands for a handle.",
}.items():
    declare(_name, doc=_doc, forward_type_fn=_TYPE_FNS.get(_name))


class MultiDeviceIterator(ResourceBase):
    """A pass whose elements are dealt to shards; used from any thread."""

    def __init__(self, devices: list[str]) -> None:
        self._count = max(len(devices), 1)
        self._turns = Turns()
        self._iterator: DatasetIterator | None = None
        self._waiting: list[deque[Element]] = []
        self._turn = self._incarnation = 0
        self.dataset: DatasetBase | None = None

    def begin(self, dataset: DatasetBase, step: Step) -> int:
        """Begin a pass; its number."""
        iterator = dataset.iterator()
        with self._turns.turn(step):
            former, self._iterator, self.dataset = self._iterator, iterator, dataset
            self._waiting = [deque() for _ in range(self._count)]
            self._turn = 0
            self._incarnation += 1
            number = self._incarnation
        if former is not None:
            former.close()
        return number

    def next_of(self, shard: int, incarnation: int, step: Step) -> Element | None:
        """The next element for a shard; None at the end.

        Raises:
            FailedPreconditionError: no pass has begun.
            InvalidArgumentError: there is no such shard, or another pass has begun since.
        """
        with self._turns.turn(step):
            if self._iterator is None:
                raise FailedPreconditionError("The multi device iterator was not initialized")
            if incarnation != self._incarnation:
                raise InvalidArgumentError(
                    f"Invalid incarnation id. Provided: {incarnation}; Expected: "
                    f"{self._incarnation}"
                )
            if not 0 <= shard < self._count:
                raise InvalidArgumentError(f"There is no shard {shard} of {self._count}")
            while not self._waiting[shard]:
                element = self._iterator.next(step)
                if element is None:
                    return None
                self._waiting[self._turn].append(held(element))
                self._turn = (self._turn + 1) % self._count
                step.check()
            return self._waiting[shard].popleft()

    def on_destroy(self) -> None:
        """Close files."""
        if self._iterator is not None:
            self._iterator.close()


class _MakesIterator(OpKernel):
    """A kernel that makes an iterator."""

    resource_type: ClassVar[type[ResourceBase]] = MultiDeviceIterator

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._devices: list[str] = construction.get_attr("devices")

    def create_resource(self, ctx: OpKernelContext) -> MultiDeviceIterator:
        """A new iterator."""
        return MultiDeviceIterator(self._devices)


@register_kernel("MultiDeviceIterator")
class MultiDeviceIteratorOp(_MakesIterator, ResourceOpKernel):
    """Finds the iterator of its name, or makes it."""

    use_node_name = True


@register_kernel("AnonymousMultiDeviceIterator")
class AnonymousMultiDeviceIteratorOp(_MakesIterator, OwnedHandleOp):
    """Makes an iterator, and its deleter."""


@register_kernel("AnonymousMultiDeviceIteratorV3")
class AnonymousMultiDeviceIteratorV3Op(_MakesIterator, RefCountingHandleOp):
    """Makes an iterator that its handle owns."""


register_kernel("DeleteMultiDeviceIterator")(DeleteResourceOp)


@register_kernel("MultiDeviceIteratorInit")
class MultiDeviceIteratorInitOp(OpKernel):
    """Begins a pass."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, MultiDeviceIterator, 1) as resource:
            ctx.set_output(0, np.int64(resource.begin(dataset_of(ctx.input(0)), ctx.step)))


@register_kernel("MultiDeviceIteratorGetNextFromShard")
class MultiDeviceIteratorGetNextFromShardOp(OfElements):
    """Gives the next element of a shard."""

    def compute(self, ctx: OpKernelContext) -> None:
        shard, incarnation = int(ctx.input("shard_num")), int(ctx.input("incarnation_id"))
        with resource_of_handle(ctx, MultiDeviceIterator) as resource:
            element = resource.next_of(shard, incarnation, ctx.step)
            dataset: Any = resource.dataset
        if element is None:
            raise OutOfRangeError("End of sequence")
        self.check(dataset.dtypes, element)
        self.give(ctx, element)


@register_kernel("MultiDeviceIteratorToStringHandle")
class MultiDeviceIteratorToStringHandleOp(ToStringHandleOp):
    """Gives the bytes of a handle to an iterator."""

    resource_type = MultiDeviceIterator


@register_kernel("MultiDeviceIteratorFromStringHandle")
class MultiDeviceIteratorFromStringHandleOp(InexpensiveKernel):
    """Gives the handle that bytes stand for."""

    def compute(self, ctx: OpKernelContext) -> None:
        handle = handle_of_bytes(ctx.input(0))
        with lookup_resource(ctx, handle, MultiDeviceIterator):
            ctx.set_output(0, tensor_of_handle(handle))
