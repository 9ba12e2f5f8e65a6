"""Ops that make iterators, fill them, and give their elements.

Source: TensorFlow core/kernels/data/iterator_ops.cc, optional_ops.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.kernel import (
    FunctionRunOptions,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    lookup_resource,
    tensor_of_handle,
)
from opkernel.opdef import full_type
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.data.dataset import Element, dataset_of
from opkernel.ops.data.dataset_op import declare
from opkernel.ops.data.handles import (
    DeleteResourceOp,
    OwnedHandleOp,
    ToStringHandleOp,
    handle_of_bytes,
)
from opkernel.ops.data.iterator_resource import (
    IteratorResource,
    check_element,
    check_shapes,
    check_types,
)
from opkernel.ops.data.iterator_state import IteratorState, state_in
from opkernel.ops.function_ops import CalledFunction
from opkernel.ops.optional import Optional
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import (
    InexpensiveKernel,
    RefCountingHandleOp,
    ResourceOpKernel,
    resource_of_handle,
)
from opkernel.types import DataType, object_scalar

_DOCS = {
    "AnonymousIterator": "A new iterator, which lives as long as its handle.",
    "AnonymousIteratorV2": "A new iterator, and what deletes it when it is collected.",
    "AnonymousIteratorV3": "A new iterator, which lives as long as its handle.",
    "DeleteIterator": "Deletes an iterator that AnonymousIteratorV2 has made.",
    "DeserializeIterator": "Gives an iterator the state that SerializeIterator has saved.",
    "Iterator": "The iterator of a name; MakeIterator lets it begin.",
    "IteratorFromStringHandle": "The handle that IteratorToStringHandle has made a string of.",
    "IteratorFromStringHandleV2": "The handle that IteratorToStringHandle has made a string of.",
    "IteratorGetDevice": "The name of the device that an iterator is on.",
    "IteratorGetNext": "The next element of an iterator; an OutOfRangeError at the end.",
    "IteratorGetNextAsOptional": "The next element of an iterator; an optional without value at the end.",
    "IteratorGetNextSync": "The next element of an iterator; an OutOfRangeError at the end.",
    "IteratorToStringHandle": "A string that stands for a handle.",
    "IteratorV2": "The iterator of a name; MakeIterator lets it begin.",
    "MakeIterator": "Lets an iterator begin a pass over a dataset.",
    "OneShotIterator": "An iterator over the dataset that a function gives.",
    "SerializeIterator": "The state of an iterator, as a vector of variants.",
}
_AS_OPTIONAL = full_type.map_covariant(FullTypeId.TFT_ITERATOR, FullTypeId.TFT_OPTIONAL, 0)
_AS_ITERATOR = full_type.map_covariant(FullTypeId.TFT_DATASET, FullTypeId.TFT_ITERATOR, 0)
for _name, _doc in _DOCS.items():
    declare(
        _name,
        doc=_doc,
        forward_type_fn=_AS_OPTIONAL if _name == "IteratorGetNextAsOptional" else None,
        reverse_type_fn=(1, _AS_ITERATOR) if _name == "MakeIterator" else (0, None),
    )
declare("ExperimentalIteratorGetDevice", doc=_DOCS["IteratorGetDevice"])


class OfElements(OpKernel):
    """A kernel of a node that says what the elements are."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtypes = tuple(construction.get_attr("output_types"))
        self.shapes = tuple(construction.get_attr("output_shapes"))

    def check(self, dtypes: Sequence[DataType], element: Element) -> None:
        """Raise InvalidArgumentError unless an element, which is of some types, is as the node says."""
        check_types(self.dtypes, dtypes)
        check_element(self.shapes, element)

    def give(self, ctx: OpKernelContext, element: Element) -> None:
        """Set the outputs to the tensors of an element."""
        for index, tensor in enumerate(element):
            ctx.set_output(index, tensor)


class _MakesIterator(OfElements):
    """A kernel that makes an iterator."""

    resource_type: ClassVar[type[ResourceBase]] = IteratorResource

    def create_resource(self, ctx: OpKernelContext) -> IteratorResource:
        """A new iterator."""
        return IteratorResource(self.dtypes, self.shapes)


@register_kernel("Iterator", "IteratorV2")
class IteratorHandleOp(_MakesIterator, ResourceOpKernel):
    """Finds the iterator of its name, or makes it."""

    use_node_name = True

    def verify_resource(self, resource: IteratorResource) -> None:
        check_types(self.dtypes, resource.dtypes)
        check_shapes(self.shapes, resource.shapes)


@register_kernel("OneShotIterator")
class OneShotIteratorOp(IteratorHandleOp):
    """Has its function make the dataset, once."""

    use_node_name = False

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._factory = CalledFunction(construction.get_attr("dataset_factory"))

    def create_resource(self, ctx: OpKernelContext) -> IteratorResource:
        library, handle = self._factory.found(ctx)
        results = library.run(FunctionRunOptions(step=ctx.step), handle, [])
        if len(results) != 1 or results[0].dtype != object:
            raise InvalidArgumentError(
                "The `dataset_factory` function must return a single scalar of dtype DT_VARIANT."
            )
        resource = super().create_resource(ctx)
        resource.set_dataset(dataset_of(results[0]), ctx.step)
        return resource


@register_kernel("AnonymousIterator", "AnonymousIteratorV3")
class AnonymousIteratorOp(_MakesIterator, RefCountingHandleOp):
    """Makes an iterator that its handle owns."""


@register_kernel("AnonymousIteratorV2")
class AnonymousIteratorV2Op(_MakesIterator, OwnedHandleOp):
    """Makes an iterator under a name that nothing else has, and its deleter."""


register_kernel("DeleteIterator")(DeleteResourceOp)


@register_kernel("MakeIterator")
class MakeIteratorOp(OpKernel):
    """Begins a pass."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, IteratorResource, 1) as resource:
            resource.set_dataset(dataset_of(ctx.input(0)), ctx.step)


class _GetNext(OfElements):
    """Asks the iterator of its input for an element."""

    def next(self, ctx: OpKernelContext) -> Element | None:
        with resource_of_handle(ctx, IteratorResource) as resource:
            element = resource.get_next(ctx.step)
            if element is not None:
                self.check(resource.dtypes, element)
            return element


@register_kernel("IteratorGetNext", "IteratorGetNextSync")
class IteratorGetNextOp(_GetNext):
    """Gives the next element."""

    def compute(self, ctx: OpKernelContext) -> None:
        element = self.next(ctx)
        if element is None:
            raise OutOfRangeError("End of sequence")
        self.give(ctx, element)


@register_kernel("IteratorGetNextAsOptional")
class IteratorGetNextAsOptionalOp(_GetNext):
    """Gives the next element, or that there is none, as an optional."""

    def compute(self, ctx: OpKernelContext) -> None:
        element = self.next(ctx)
        value = Optional() if element is None else Optional(element, self.dtypes)
        ctx.set_output(0, object_scalar(value))


@register_kernel("IteratorToStringHandle")
class IteratorToStringHandleOp(ToStringHandleOp):
    """Gives the bytes of a handle to an iterator."""

    resource_type = IteratorResource


@register_kernel("IteratorFromStringHandle", "IteratorFromStringHandleV2")
class IteratorFromStringHandleOp(OfElements):
    """Gives the handle that bytes stand for."""

    def compute(self, ctx: OpKernelContext) -> None:
        handle = handle_of_bytes(ctx.input(0))
        with lookup_resource(ctx, handle, IteratorResource) as resource:
            if self.dtypes:
                check_types(self.dtypes, resource.dtypes)
            if self.shapes:
                check_shapes(self.shapes, resource.shapes)
        ctx.set_output(0, tensor_of_handle(handle))


@register_kernel("IteratorGetDevice", "ExperimentalIteratorGetDevice")
class IteratorGetDeviceOp(InexpensiveKernel):
    """Gives the name of its own device."""

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, object_scalar(ctx.device.name.encode()))


@register_kernel("SerializeIterator")
class SerializeIteratorOp(OpKernel):
    """Gives the state of an iterator."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, IteratorResource) as resource:
            states: Any = np.empty(1, object)
            states[0] = IteratorState(resource.save(ctx.step))
        ctx.set_output(0, states)


@register_kernel("DeserializeIterator")
class DeserializeIteratorOp(OpKernel):
    """Gives an iterator a state."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, IteratorResource) as resource:
            resource.restore(state_in(ctx.input(1)).saved, ctx.step)
