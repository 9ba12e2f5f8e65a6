"""ResourceBase: an object in a resource manager. TypeIndex: the identity of its type.

Source: TensorFlow core/framework/resource_base.h, type_index.h.
"""

from __future__ import annotations

import threading
import weakref

from opkernel.records import dataclass
from opkernel.state.ref_counted import RefCounted


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
