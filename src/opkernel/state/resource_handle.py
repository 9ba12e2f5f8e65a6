"""Handles, which name a resource, or own it.

A handle usually names a resource that a manager owns. A ref-counting one owns its resource, which
then ends when the last copy of the handle is collected, and no manager knows it.

Source: TensorFlow core/framework/resource_handle.cc, resource_mgr.cc.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.messages import short_repr
from opkernel.state.resource_base import ResourceBase, TypeIndex
from opkernel.types import DtypeAndShape, ResourceHandle, object_scalar

ANONYMOUS_NAME = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"
"""As the name of a resource it stands for one that nothing else has."""

_unique_ids = itertools.count()


class HasName(Protocol):
    """A device, as far as handles go."""

    @property
    def name(self) -> str:
        """The full name."""


def make_resource_handle(
    container: str,
    name: str,
    device: HasName,
    resource_type: type[ResourceBase],
    dtypes_and_shapes: Iterable[DtypeAndShape] = (),
) -> ResourceHandle:
    """A handle that names a resource, which need not exist yet.

    The name `ANONYMOUS_NAME` is replaced by one that nothing else has.
    """
    index = TypeIndex.make(resource_type)
    if name == ANONYMOUS_NAME:
        name = f"_AnonymousVar{next(_unique_ids)}"
    return ResourceHandle(
        device.name, container, name, index.hash_code, index.name, tuple(dtypes_and_shapes)
    )


def make_ref_counting_handle(
    resource: ResourceBase,
    device: HasName,
    resource_type: type[ResourceBase] | None = None,
    dtypes_and_shapes: Iterable[DtypeAndShape] = (),
) -> ResourceHandle:
    """A handle that owns its resource. The caller's reference passes to it."""
    index = TypeIndex.make(resource_type or type(resource))
    return ResourceHandle(
        device.name,
        "Anonymous",
        resource.make_ref_counting_handle_name(next(_unique_ids)),
        index.hash_code,
        index.name,
        tuple(dtypes_and_shapes),
        resource,
    )


def handle_from_input(tensor: np.ndarray[Any, Any]) -> ResourceHandle:
    """The first handle in a tensor of handles.

    Raises:
        InvalidArgumentError: the tensor is empty, or holds no handles.
    """
    if not isinstance(tensor, np.ndarray):
        raise InvalidArgumentError(
            f"A tensor of resource handles is an array, not {short_repr(tensor)}"
        )
    if tensor.size == 0:
        raise InvalidArgumentError("Empty resource handle")
    handle = tensor.flat[0]
    check_is_handle(handle)
    return handle  # type: ignore[no-any-return]  # as is checked


def check_is_handle(given: object) -> None:
    """Raise InvalidArgumentError for what is no ResourceHandle."""
    if isinstance(given, ResourceHandle):
        return
    fix = (
        ": handle_from_input gives the handle in a tensor" if isinstance(given, np.ndarray) else ""
    )
    raise InvalidArgumentError(f"Expected a resource handle, got {short_repr(given)}{fix}")


def tensor_of_handle(handle: ResourceHandle) -> np.ndarray[Any, Any]:
    """The tensor of rank 0 that holds a handle."""
    return object_scalar(handle)


def validate_type(handle: ResourceHandle, resource_type: type[ResourceBase]) -> None:
    """Raise InvalidArgumentError unless the resource is of this very type."""
    check_is_handle(handle)
    index = TypeIndex.make(resource_type)
    if handle.hash_code != index.hash_code:
        raise InvalidArgumentError(
            "Trying to access a handle's resource using the wrong type. The handle points to a "
            f"resource (name '{handle.name}') of type '{handle.maybe_type_name}' (hash code "
            f"{handle.hash_code}) but you are trying to access the resource as type "
            f"'{index.name}' (hash code {index.hash_code})"
        )
