"""ResourceMgr: the resources of a device, by container, type and name.

Source: TensorFlow core/framework/resource_mgr.{h,cc}.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Self, TypeVar

from opkernel.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InternalError,
    NotFoundError,
)
from opkernel.records import dataclass
from opkernel.state.keyed_lock import KeyedLock
from opkernel.state.resource_handle import HasName, ResourceBase, TypeIndex, make_resource_handle
from opkernel.types import DtypeAndShape, ResourceHandle

R = TypeVar("R", bound=ResourceBase)

_Key = tuple[int, str]  # hash code of the type, name


@dataclass(frozen=True, slots=True)
class _Entry:
    """A resource under its key: owned, with one reference, or only known."""

    resource: ResourceBase | weakref.ref[ResourceBase]
    type_name: str

    @property
    def is_owned(self) -> bool:
        return isinstance(self.resource, ResourceBase)

    @property
    def has_ended(self) -> bool:
        resource = self._target()
        return resource is None or resource.ref_count == 0

    def new_ref(self) -> ResourceBase | None:
        """The resource with one more reference; None if it has ended."""
        resource = self._target()
        return resource if resource is not None and resource.try_ref() else None

    def give_up(self) -> None:
        """Give up the reference, if it is owned."""
        if isinstance(self.resource, ResourceBase):
            self.resource.unref()

    def _target(self) -> ResourceBase | None:
        return self.resource if isinstance(self.resource, ResourceBase) else self.resource()


class ResourceMgr:
    """Owns resources for the kernels that share them; used from any thread.

    Resources are found by the very class that they were created under, not by its bases. A resource
    from `lookup` or `lookup_or_create` has one more reference, which the caller gives up with
    `unref` or by the end of a `with` block:

        with manager.lookup("localhost", "counter", Counter) as counter:
            counter.add(1)

    Resources end, and run code of their own, outside of the manager's lock.

    Attributes:
        removals: How often something was taken out that outlives steps. While it is the same, the names
            of such resources stand for the same ones.
    """

    def __init__(self, default_container: str = "localhost") -> None:
        self.default_container = default_container
        self.removals = 0
        self._lock = threading.RLock()  # a collection may end a resource, which uses its manager
        self._containers: dict[str, dict[_Key, _Entry]] = {}
        self._creating = KeyedLock()
        self._collected: deque[tuple[str, _Key]] = deque()  # unowned, to be taken out
        self._is_finalized = False

    def create(
        self,
        container: str,
        name: str,
        resource: ResourceBase,
        *,
        resource_type: type[ResourceBase] | None = None,
    ) -> None:
        """Put a resource under a name. The caller's reference passes to the manager.

        It does so also where this fails: the resource then ends.

        Args:
            container: the container, which is made if need be.
            name: the name in it.
            resource: the resource.
            resource_type: the class to find it by, if not its own.

        Raises:
            AlreadyExistsError: the container has a resource of this type and name.
            FailedPreconditionError: the manager is finalized.
        """
        index = TypeIndex.make(resource_type or type(resource))
        try:
            self._insert(container, name, index, _Entry(resource, index.name))
        except BaseException:
            resource.unref()
            raise

    def create_unowned(
        self,
        container: str,
        name: str,
        resource: ResourceBase,
        *,
        resource_type: type[ResourceBase] | None = None,
    ) -> None:
        """Make a resource known under a name for as long as its owners keep it.

        Raises:
            AlreadyExistsError: the container has a resource of this type and name.
            FailedPreconditionError: the manager is finalized.
        """
        index = TypeIndex.make(resource_type or type(resource))
        note, key = self._collected.append, (container, (index.hash_code, name))
        reference = weakref.ref(resource, lambda _: note(key))
        self._insert(container, name, index, _Entry(reference, index.name))

    def lookup(self, container: str, name: str, resource_type: type[R]) -> R:
        """The resource of a type and name, with one more reference, for the caller.

        Raises:
            NotFoundError: there is no such container or resource.
        """
        index = TypeIndex.make(resource_type)
        found: R = self._find(container, name, index.hash_code, index.name)  # type: ignore[assignment]  # the key holds the type
        return found

    def lookup_handle(self, handle: ResourceHandle) -> ResourceBase:
        """The resource, of any type, that a handle names; with one more reference.

        Raises:
            NotFoundError: there is no such container or resource.
        """
        return self._find(handle.container, handle.name, handle.hash_code, "ResourceBase")

    def lookup_many(
        self, containers_and_names: Iterable[tuple[str, str]], resource_type: type[R]
    ) -> list[R | None]:
        """The resources under several names, each with one more reference; None where there is none."""
        hash_code = TypeIndex.make(resource_type).hash_code
        with self._lock:
            return [
                self._peek(container, hash_code, name)  # type: ignore[misc]  # the key holds the type
                for container, name in containers_and_names
            ]

    def lookup_or_create(
        self, container: str, name: str, resource_type: type[R], creator: Callable[[], R]
    ) -> R:
        """The resource of a type and name, made by `creator` if there is none.

        Of several threads that ask for a resource one creates it, and the others wait. The creator
        may use the manager, but not ask for the resource that it is to make.

        Returns:
            The resource with one more reference, for the caller.

        Raises:
            FailedPreconditionError: the manager is finalized.
            InternalError: the creator asks for the resource that it is to make.
            Exception: the error of `creator`; nothing is created then.
        """
        hash_code = TypeIndex.make(resource_type).hash_code
        found = self._peek(container, hash_code, name)
        if found is None:
            with self._creating.hold((container, name, resource_type)):
                found = self._peek(container, hash_code, name)
                if found is None:
                    return self._create_for_caller(container, name, resource_type, creator())
        return found  # type: ignore[return-value]  # the key holds the type

    def delete(self, container: str, name: str, resource_type: type[ResourceBase]) -> None:
        """Take a resource out, and give up the manager's reference to it.

        Raises:
            NotFoundError: there is no such container or resource.
            InternalError: the manager does not own it; the name is free all the same.
        """
        index = TypeIndex.make(resource_type)
        self._remove(container, name, index.hash_code, index.name)

    def delete_handle(self, handle: ResourceHandle) -> None:
        """Take out the resource, of any type, that a handle names; raises as `delete`."""
        self._remove(handle.container, handle.name, handle.hash_code, "<unknown>")

    def cleanup(self, container: str) -> None:
        """Take out all resources of a container; one that does not exist has none."""
        with self._lock:
            entries = self._containers.pop(container, {})
            is_of_step = container.startswith("__") and "per_step_" in container
            self.removals += bool(entries) and not is_of_step
        for entry in entries.values():
            entry.give_up()

    def clear(self) -> None:
        """Take out all resources."""
        with self._lock:
            containers, self._containers = self._containers, {}
            self.removals += 1
        for entries in containers.values():
            for entry in entries.values():
                entry.give_up()

    def finalize(self) -> None:
        """Make all resources drop what only warming up needed; refuse new resources from now on."""
        with self._lock:
            self._is_finalized = True
            resources = [entry.new_ref() for _, _, entry in self._entries()]
        for resource in resources:
            if resource is not None:
                with resource:
                    resource.finalize()

    def debug_string(self) -> str:
        """A line for each resource: container, type, name, and its description of itself."""
        with self._lock:
            found = [
                (container, entry.type_name, name, entry.new_ref())
                for container, name, entry in self._entries()
            ]
        lines = []
        for container, type_name, name, resource in found:
            if resource is not None:
                with resource:
                    detail = resource.debug_string()
                lines.append(f"{container:<20} | {type_name:<40} | {name:<40} | {detail}")
        return "\n".join(sorted(lines))

    def _create_for_caller(
        self, container: str, name: str, resource_type: type[R], resource: R
    ) -> R:
        """Create a resource and return it with one more reference."""
        resource.ref()
        try:
            self.create(container, name, resource, resource_type=resource_type)
        except AlreadyExistsError:  # by `create`, while the creator ran
            resource.unref()
            return self.lookup(container, name, resource_type)
        except BaseException:
            resource.unref()
            raise
        return resource

    def _entries(self) -> list[tuple[str, str, _Entry]]:
        """Container, name and entry of each resource; under the lock."""
        return [
            (container, name, entry)
            for container, entries in self._containers.items()
            for (_, name), entry in entries.items()
        ]

    def _insert(self, container: str, name: str, index: TypeIndex, entry: _Entry) -> None:
        key = index.hash_code, name
        with self._lock:
            if self._is_finalized:
                raise FailedPreconditionError(
                    "ResourceMgr is finalized. Cannot create a new resource"
                )
            self._drop_collected()
            entries = self._containers.setdefault(container, {})
            present = entries.get(key)
            if present is not None and not present.has_ended:
                raise AlreadyExistsError(f"Resource {container}/{name}/{index.name}")
            self.removals += present is not None
            entries[key] = entry

    def _drop_collected(self) -> None:
        """Take out resources that are gone; the lock is held."""
        while self._collected:
            container, key = self._collected.popleft()
            entries = self._containers.get(container, {})
            if key in entries and entries[key].has_ended:
                del entries[key]

    def _peek(self, container: str, hash_code: int, name: str) -> ResourceBase | None:
        """The resource with one more reference, if there is one."""
        with self._lock:
            entry = self._containers.get(container, {}).get((hash_code, name))
            return None if entry is None else entry.new_ref()

    def _find(self, container: str, name: str, hash_code: int, type_name: str) -> ResourceBase:
        found = self._peek(container, hash_code, name)
        if found is not None:
            return found
        raise NotFoundError(
            f"Resource {container}/{name}/{type_name} does not exist."
            if container in self._containers
            else f"Container {container} does not exist. "
            f"(Could not find resource: {container}/{name})",
            resource=name,
        )

    def _remove(self, container: str, name: str, hash_code: int, type_name: str) -> None:
        with self._lock:
            if container not in self._containers:
                raise NotFoundError(f"Container {container} does not exist.")
            entry = self._containers[container].pop((hash_code, name), None)
            self.removals += 1
        subject = f"Resource {container}/{name}/{type_name}"
        if entry is None or entry.has_ended:
            raise NotFoundError(f"{subject} does not exist.")
        if not entry.is_owned:
            raise InternalError(
                f"Cannot delete an unowned {subject} from ResourceMgr. This indicates "
                "ref-counting ResourceHandle is exposed to weak ResourceHandle code paths."
            )
        entry.give_up()


class ScopedStepContainer:
    """The container of one step's resources; they end with the step.

    As a context manager it cleans up at the end of the block.

    Args:
        step_id: The number of the step.
        cleanup: Takes out the resources of the container of the given name, as `cleanup` of a
            resource manager does. It is not called where there was none.
        prefix: Tells containers of one step apart.
    """

    def __init__(
        self, step_id: int, cleanup: Callable[[str], object], prefix: str | None = None
    ) -> None:
        self.step_id = step_id
        self.name = f"__per_step_{step_id}" if prefix is None else f"__{prefix}_per_step_{step_id}"
        self._cleanup = cleanup
        self._lock = threading.Lock()
        self._is_dirty = False

    def make_resource_handle(
        self,
        name: str,
        device: HasName,
        resource_type: type[ResourceBase],
        dtypes_and_shapes: Iterable[DtypeAndShape] = (),
    ) -> ResourceHandle:
        """`make_resource_handle` in this container."""
        self._is_dirty = True
        return make_resource_handle(self.name, name, device, resource_type, dtypes_and_shapes)

    def create(
        self,
        manager: ResourceMgr,
        name: str,
        resource: ResourceBase,
        *,
        resource_type: type[ResourceBase] | None = None,
    ) -> None:
        """`ResourceMgr.create` in this container."""
        self._is_dirty = True
        manager.create(self.name, name, resource, resource_type=resource_type)

    def lookup(self, manager: ResourceMgr, name: str, resource_type: type[R]) -> R:
        """`ResourceMgr.lookup` in this container."""
        return manager.lookup(self.name, name, resource_type)

    def lookup_or_create(
        self, manager: ResourceMgr, name: str, resource_type: type[R], creator: Callable[[], R]
    ) -> R:
        """`ResourceMgr.lookup_or_create` in this container."""
        self._is_dirty = True
        return manager.lookup_or_create(self.name, name, resource_type, creator)

    def delete(self, manager: ResourceMgr, name: str, resource_type: type[ResourceBase]) -> None:
        """`ResourceMgr.delete` in this container."""
        manager.delete(self.name, name, resource_type)

    def clean_up(self) -> None:
        """Take out the resources of the step."""
        with self._lock:
            was_dirty, self._is_dirty = self._is_dirty, False
        if was_dirty:
            self._cleanup(self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.clean_up()
