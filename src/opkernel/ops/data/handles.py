"""Handles to what datasets share: ops that make such a resource, name one that does not exist, or delete one.

Source: AnonymousResourceOp in TensorFlow core/framework/resource_mgr.h, core/data/utils (DummyResourceOp).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel import (
    OpKernel,
    OpKernelContext,
    ResourceBase,
    ResourceMgr,
    delete_resource,
    handle_from_input,
    make_resource_handle,
    tensor_of_handle,
)
from opkernel.ops.data.dataset_op import declare
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import InexpensiveKernel, resource_manager, resource_of_handle
from opkernel.proto import DecodeError, ResourceHandleProto, VariantTensorDataProto
from opkernel.types import ResourceHandle, Variant, object_scalar

_numbers = itertools.count()


def handle_of_bytes(tensor: Any) -> ResourceHandle:
    """The handle that a tensor of one string stands for.

    Raises:
        InvalidArgumentError: it is no scalar, or stands for none.
    """
    require_scalar(tensor, "string_handle must be a scalar")
    try:
        return ResourceHandle.from_proto(ResourceHandleProto.FromString(tensor.item()))
    except DecodeError as error:
        raise InvalidArgumentError(
            "Could not parse string_handle as a valid ResourceHandle"
        ) from error


class ResourceDeleter(Variant):
    """Deletes a resource when it is collected itself."""

    __slots__ = ("_handle", "_manager")

    def __init__(self, manager: ResourceMgr, handle: ResourceHandle) -> None:
        self._manager, self._handle = manager, handle

    def to_proto(self) -> VariantTensorDataProto:
        """A value that deletes nothing."""
        return VariantTensorDataProto(type_name="ResourceDeleter")

    def __del__(self) -> None:
        with suppress(NotFoundError):  # it was deleted
            self._manager.delete_handle(self._handle)


class OwnedHandleOp(OpKernel):
    """Makes a resource under a name that nothing else has, and its deleter.

    Attributes:
        resource_type: The class of the resource.
    """

    resource_type: ClassVar[type[ResourceBase]]

    def create_resource(self, ctx: OpKernelContext) -> ResourceBase:
        """A new resource."""
        raise NotImplementedError(f"{type(self).__name__} does not override create_resource")

    def compute(self, ctx: OpKernelContext) -> None:
        """Make the resource."""
        manager, name = resource_manager(ctx), f"{self.resource_type.__name__}{next(_numbers)}"
        container = manager.default_container
        handle = make_resource_handle(container, name, ctx.device, self.resource_type)
        manager.create(container, name, self.create_resource(ctx), resource_type=self.resource_type)
        ctx.set_output(0, tensor_of_handle(handle))
        ctx.set_output(1, object_scalar(ResourceDeleter(manager, handle)))


class DeleteResourceOp(InexpensiveKernel):
    """Deletes the resource of a handle."""

    def compute(self, ctx: OpKernelContext) -> None:
        delete_resource(ctx, handle_from_input(ctx.input(0)))


class ToStringHandleOp(InexpensiveKernel):
    """Gives the bytes of a handle.

    Attributes:
        resource_type: The class of the resource.
    """

    resource_type: ClassVar[type[ResourceBase]]

    def compute(self, ctx: OpKernelContext) -> None:
        given = ctx.input(0)
        require_scalar(given, "resource_handle must be a scalar")
        with resource_of_handle(ctx, self.resource_type):
            text = handle_from_input(given).to_proto().SerializeToString()
        ctx.set_output(0, object_scalar(text))


def register_handle_ops(
    kernel: type[OwnedHandleOp],
    *,
    made: Sequence[str],
    dummies: Sequence[str] = (),
    deleted: Sequence[str],
    what: str,
) -> None:
    """Declare ops on handles to resources of one class, and register their kernels.

    Args:
        kernel: Makes the resource.
        made: The ops that do so.
        dummies: The ops whose handle stands for nothing.
        deleted: The ops that delete the resource.
        what: The resource, in a word or two.
    """
    for name in made:
        declare(name, doc=f"A new {what}, and what deletes it when it is collected.")
    for name in deleted:
        declare(name, doc=f"Deletes a {what}.")
    register_kernel(*made)(kernel)
    register_kernel(*deleted)(DeleteResourceOp)
    for name in dummies:
        declare(name, doc=f"A handle in the place of one to a {what}; nothing stands behind it.")
    if dummies:
        register_kernel(*dummies)(_dummy_of(kernel.resource_type))


def _dummy_of(resource_type: type[ResourceBase]) -> type[OpKernel]:
    class DummyResourceOp(InexpensiveKernel):
        """Gives a handle that names nothing."""

        def compute(self, ctx: OpKernelContext) -> None:
            name = f"dummy_{resource_type.__name__}"
            handle = make_resource_handle("dummy", name, ctx.device, resource_type)
            ctx.set_output(0, tensor_of_handle(handle))

    return DummyResourceOp
