"""Resources, which end when their last owner gives them up, and handles, which name a resource, or own it.

Python collects memory by itself. The count of owners (`RefCounted`) says when an object is to end that holds more
than memory: a file, a thread, a queue that others wait for.

A handle usually names a resource that a manager owns. A ref-counting one owns its resource, which
then ends when the last copy of the handle is collected, and no manager knows it.

Source: TensorFlow core/lib/core/refcount.h, core/framework/resource_base.h, type_index.h, resource_handle.cc,
resource_mgr.cc.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable
from typing import Any, Protocol, Self

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.messages import short_repr
from opkernel.records import dataclass
from opkernel.types import Array, DtypeAndShape, ResourceHandle, object_scalar


class RefCounted:
    """Counts its owners, the creator first; ends once, when there is none left.

    As a context manager it gives one reference up at the end of the block. An object that is
    collected while it has references ends then.
    """

    _references: int
    _references_lock: threading.RLock

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Start the count here, so that subclasses need not call `__init__`."""
        self = super().__new__(cls)
        self._references = 1
        self._references_lock = threading.RLock()  # a collection may end another object
        return self

    def on_destroy(self) -> None:
        """Give back the things that the object holds. Called once, on the thread of the last owner."""

    def ref(self) -> None:
        """Add an owner.

        Raises:
            InternalError: the object has ended.
        """
        if not self.try_ref():
            raise InternalError(f"{type(self).__name__} has no references left to share")

    def try_ref(self) -> bool:
        """Add an owner unless the object has ended."""
        with self._references_lock:
            if self._references == 0:
                return False
            self._references += 1
            return True

    def unref(self) -> bool:
        """Give up one reference; the last one ends the object, and the result is then True.

        Raises:
            InternalError: there is none to give up.
        """
        with self._references_lock:
            if self._references == 0:
                raise InternalError(f"{type(self).__name__} has no references left to give up")
            self._references -= 1
            is_last = self._references == 0
        if is_last:
            self.on_destroy()
        return is_last

    @property
    def ref_count(self) -> int:
        """How many references there are."""
        return self._references

    @property
    def ref_count_is_one(self) -> bool:
        """Whether there is one owner only."""
        return self._references == 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.unref()

    def __del__(self) -> None:
        if self._references:
            self._references = 0
            self.on_destroy()


class ResourceBase(RefCounted):
    """State that outlives steps: a variable, a table, a queue. Subclasses guard it themselves."""

    def debug_string(self) -> str:
        """The resource in a line."""
        return type(self).__qualname__

    def memory_used(self) -> int:
        """The bytes that it holds."""
        return 0

    def make_ref_counting_handle_name(self, resource_id: int) -> str:
        """The name in handles that own the resource; `resource_id` is unique."""
        return f"Resource-{resource_id}-at-{id(self):#x}"

    def finalize(self) -> None:
        """Drop data that only warming up needed."""


@dataclass(frozen=True, slots=True)
class TypeIndex:
    """A type of resources. Handles carry both parts.

    Attributes:
        hash_code: A number that no other type of this process has.
        name: The name, for people.
    """

    hash_code: int
    name: str

    @classmethod
    def make(cls, resource_type: type[ResourceBase]) -> TypeIndex:
        """The index of a class. Two classes of one name, as in a notebook, are two types."""
        with _lock:
            found = _indices.get(resource_type)
            if found is None:
                found = _indices[resource_type] = cls(
                    _new_hash(f"{resource_type.__module__}.{resource_type.__qualname__}"),
                    resource_type.__qualname__,
                )
            return found


_lock = threading.RLock()  # a collection may end a resource, which uses its manager
_indices: weakref.WeakKeyDictionary[type[ResourceBase], TypeIndex] = weakref.WeakKeyDictionary()
_hashes: set[int] = set()


def _new_hash(name: str) -> int:
    """A hash of the name that no class has had."""
    from opkernel.opdef.core.fingerprint import fingerprint64  # few processes have resources

    hash_code = fingerprint64(name.encode())
    while hash_code in _hashes:
        name += "'"
        hash_code = fingerprint64(name.encode())
    _hashes.add(hash_code)
    return hash_code


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


def handle_from_input(tensor: Array) -> ResourceHandle:
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


def tensor_of_handle(handle: ResourceHandle) -> Array:
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
