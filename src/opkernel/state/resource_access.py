"""From a handle to its resource, on the device of a computation; ContainerInfo: under which name a kernel keeps its resource.

Source: TensorFlow core/framework/resource_mgr.{h,cc}.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, overload

from opkernel.errors import InvalidArgumentError
from opkernel.messages import short_repr
from opkernel.opdef import get_node_attr
from opkernel.proto import NodeDef
from opkernel.state.resource_handle import HasName, ResourceBase, check_is_handle, validate_type
from opkernel.state.resource_mgr import ResourceMgr
from opkernel.types import ResourceHandle

_CONTAINER_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9\-./]*")
_private_names = itertools.count()


@dataclass(frozen=True, slots=True)
class ContainerInfo:
    """Where a kernel keeps its resource.

    Attributes:
        resource_manager: The manager that has it.
        container: The container.
        name: The name in the container.
        resource_is_private_to_kernel: The kernel is to delete the resource when it ends.
    """

    resource_manager: ResourceMgr
    container: str
    name: str
    resource_is_private_to_kernel: bool

    @classmethod
    def init(
        cls,
        resource_manager: ResourceMgr,
        node_def: NodeDef,
        *,
        use_node_name_as_default: bool = False,
    ) -> ContainerInfo:
        """The container and name that a node's attrs `container` and `shared_name` ask for.

        Without a container it is the manager's default one. Without a shared name it is the name
        of the node or, unless `use_node_name_as_default`, one that nothing else has.

        Raises:
            NotFoundError: the node lacks one of the attrs.
            InvalidArgumentError: the container is no name for one, or the shared name begins with
                an underscore.
        """
        container: str = get_node_attr(node_def, "container", "string")
        if container and not _CONTAINER_NAME.fullmatch(container):
            raise InvalidArgumentError(f"container contains invalid characters: {container}")
        shared_name: str = get_node_attr(node_def, "shared_name", "string")
        if shared_name.startswith("_"):
            raise InvalidArgumentError(f"shared_name cannot start with '_':{shared_name}")
        is_private = not shared_name and not use_node_name_as_default
        name = shared_name or node_def.name
        if is_private:
            name = f"_{next(_private_names)}_{node_def.name}"
        return cls(
            resource_manager, container or resource_manager.default_container, name, is_private
        )

    def debug_string(self) -> str:
        """Container and name, and whether the resource is private."""
        visibility = "private" if self.resource_is_private_to_kernel else "public"
        return f"[{self.container},{self.name},{visibility}]"


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
    ctx: ResourceContext, handle: ResourceHandle, resource_type: type[ResourceBase] | None = None
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
    _validate(ctx, handle, resource_type)
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
    ctx: ResourceContext, handle: ResourceHandle, resource_type: type[R], creator: Callable[[], R]
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
    ctx: ResourceContext, handle: ResourceHandle, resource_type: type[ResourceBase] | None = None
) -> None:
    """Take out the resource that a handle names; one that the handle owns stays.

    Raises:
        InvalidArgumentError: the handle is of another device or, if one is given, type.
        NotFoundError: the resource does not exist.
    """
    _validate(ctx, handle, resource_type)
    if not handle.is_ref_counting:
        _manager(ctx).delete_handle(handle)


def _validate(
    ctx: ResourceContext, handle: ResourceHandle, resource_type: type[ResourceBase] | None
) -> None:
    validate_device(ctx, handle)
    if resource_type is not None:
        validate_type(handle, resource_type)


def _manager(ctx: ResourceContext) -> ResourceMgr:
    manager = ctx.resource_manager
    if manager is None:
        raise InvalidArgumentError(f"Device {ctx.device.name} has no resource manager")
    return manager
