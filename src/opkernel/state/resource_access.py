"""From a handle to its resource, on the device of a computation.

Source: TensorFlow core/framework/resource_mgr.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, overload

from opkernel.errors import InvalidArgumentError
from opkernel.messages import short_repr
from opkernel.state.resource_base import ResourceBase
from opkernel.state.resource_handle import HasName, check_is_handle, validate_type
from opkernel.state.resource_mgr import ResourceMgr
from opkernel.types import ResourceHandle

R = TypeVar("R", bound=ResourceBase)


class ResourceContext(Protocol):
    """The context in which handles are resolved: an OpKernelContext or OpKernelConstruction."""

    @property
    def device(self) -> HasName:
        """The device whose resources can be reached."""

    @property
    def resource_manager(self) -> ResourceMgr | None:
        """The manager of the device's resources."""


def validate_device(ctx: ResourceContext, handle: ResourceHandle) -> None:
    """Raise InvalidArgumentError unless the resource lives on the context's device."""
    check_is_handle(handle)
    if handle.device != ctx.device.name:
        raise InvalidArgumentError(
            f"Trying to access resource {handle.name} located in device {handle.device} "
            f"from device {ctx.device.name}"
        )


def create_resource(
    ctx: ResourceContext,
    handle: ResourceHandle,
    resource: ResourceBase,
    *,
    resource_type: type[ResourceBase] | None = None,
) -> None:
    """Create the resource that a handle names. The caller's reference passes to the manager.

    Raises:
        InvalidArgumentError: the handle is of another device or type, or an argument is no handle or
            no resource.
        AlreadyExistsError: the resource exists.
    """
    if not isinstance(resource, ResourceBase):
        raise InvalidArgumentError(
            f"{short_repr(resource)} is no resource: its class must derive from ResourceBase"
        )
    resource_type = resource_type or type(resource)
    try:
        _validate(ctx, handle, resource_type)
    except InvalidArgumentError:
        resource.unref()
        raise
    _manager(ctx).create(handle.container, handle.name, resource, resource_type=resource_type)


@overload
def lookup_resource(ctx: ResourceContext, handle: ResourceHandle, resource_type: type[R]) -> R: ...
@overload
def lookup_resource(
    ctx: ResourceContext, handle: ResourceHandle, resource_type: None = None
) -> ResourceBase: ...
def lookup_resource(
    ctx: ResourceContext,
    handle: ResourceHandle,
    resource_type: type[ResourceBase] | None = None,
) -> ResourceBase:
    """The resource of a handle with one more reference, for the caller to give up.

    Args:
        ctx: the computation that wants it.
        handle: the handle.
        resource_type: the type that it must have; any if None.

    Raises:
        InvalidArgumentError: the handle is of another device or type.
        NotFoundError: the resource does not exist.
    """
    validate_device(ctx, handle)
    if resource_type is not None:
        validate_type(handle, resource_type)
    owned = handle.resource
    if isinstance(owned, ResourceBase):
        owned.ref()
        return owned
    return _manager(ctx).lookup_handle(handle)


def lookup_resources(
    ctx: ResourceContext, handles: Sequence[ResourceHandle], resource_type: type[R]
) -> list[R | None]:
    """The resources of several handles, each with one more reference; None where there is none.

    Raises:
        InvalidArgumentError: a handle is of another device or type.
    """
    for handle in handles:
        _validate(ctx, handle, resource_type)
    names = [(handle.container, handle.name) for handle in handles]
    return _manager(ctx).lookup_many(names, resource_type)


def lookup_or_create_resource(
    ctx: ResourceContext,
    handle: ResourceHandle,
    resource_type: type[R],
    creator: Callable[[], R],
) -> R:
    """The resource of a handle, made by `creator` if there is none; a handle may own it.

    Raises:
        InvalidArgumentError: the handle is of another device or type.
        Exception: the error of `creator`.
    """
    check_is_handle(handle)
    if handle.is_ref_counting:
        return lookup_resource(ctx, handle, resource_type)
    _validate(ctx, handle, resource_type)
    return _manager(ctx).lookup_or_create(handle.container, handle.name, resource_type, creator)


def delete_resource(
    ctx: ResourceContext,
    handle: ResourceHandle,
    resource_type: type[ResourceBase] | None = None,
) -> None:
    """Take out the resource that a handle names; one that the handle owns stays.

    Raises:
        InvalidArgumentError: the handle is of another device or, if one is given, type.
        NotFoundError: the resource does not exist.
    """
    validate_device(ctx, handle)
    if resource_type is not None:
        validate_type(handle, resource_type)
    if not handle.is_ref_counting:
        _manager(ctx).delete_handle(handle)


def _validate(
    ctx: ResourceContext, handle: ResourceHandle, resource_type: type[ResourceBase]
) -> None:
    validate_device(ctx, handle)
    validate_type(handle, resource_type)


def _manager(ctx: ResourceContext) -> ResourceMgr:
    manager = ctx.resource_manager
    if manager is None:
        raise InvalidArgumentError(f"Device {ctx.device.name} has no resource manager")
    return manager
