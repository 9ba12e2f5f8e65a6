"""The kernel registry: which kernels exist, by op, device type and label.

It knows ops by name alone: a kernel can be registered before its op, or without it.
Source: TensorFlow core/framework/op_kernel.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, RLock
from typing import TYPE_CHECKING

from opkernel.errors import NotFoundError
from opkernel.opdef.registry import load_from_catalogue
from opkernel.proto import KernelDef

if TYPE_CHECKING:  # both modules need this one to run
    from opkernel.kernel.construction import OpKernelConstruction
    from opkernel.kernel.op_kernel import OpKernel

__all__ = ["KernelRegistration", "KernelRegistry", "global_kernel_registry"]


@dataclass(frozen=True, slots=True, eq=False)
class KernelRegistration:
    """A kernel as registered: what it declares, and how one is made for a node.

    Attributes:
        kernel_def: what the kernel declares; not to be changed after registration.
        class_name: the name of the kernel's class or function, for messages.
        factory: makes the kernel of a node.
        owner: the module that registered it; empty where that is not known.
        is_system: the kernel belongs to the system's own ops (REGISTER_SYSTEM_KERNEL_BUILDER).
    """

    kernel_def: KernelDef
    class_name: str
    factory: Callable[[OpKernelConstruction], OpKernel]
    owner: str = ""
    is_system: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """Op, device type and label: what a lookup starts from."""
        return self.kernel_def.op, self.kernel_def.device_type, self.kernel_def.label

    def replaces(self, other: KernelRegistration) -> bool:
        """Whether this is `other` registered again: the same declaration from the same module."""
        return (
            self.owner != "" and self.owner == other.owner and self.kernel_def == other.kernel_def
        )


class KernelRegistry:
    """A multimap of kernels keyed by (op, device type, label); safe to use from several threads.

    Registering never refuses: kernels that a node could not choose between are reported by
    `validate_kernel_registrations` and at lookup. A module that registers the same KernelDef
    again, as a notebook cell that is run twice does, replaces its earlier kernel.

    Kernels are kept newest first, the order in which TensorFlow looks at them.
    """

    def __init__(self) -> None:
        self._by_op: dict[str, tuple[KernelRegistration, ...]] = {}
        self._by_key: dict[tuple[str, str, str], tuple[KernelRegistration, ...]] = {}
        self._lock = Lock()
        self._version = 0
        self._loader: Callable[[str], None] | None = None
        self._loaded: set[str] = set()
        self._loading: set[str] = set()
        # Held while a loader runs, and never to register: a loader imports modules, and a module
        # that another thread is importing must be able to register its kernels meanwhile.
        self._load_lock = RLock()

    @property
    def version(self) -> int:
        """How many kernels were replaced or removed; kernels found before may be stale."""
        return self._version

    def register(self, registration: KernelRegistration) -> None:
        """Add a kernel, in place of an earlier one that it replaces."""
        op = registration.kernel_def.op
        with self._lock:
            earlier = self._by_op.get(op, ())
            kept = [other for other in earlier if not registration.replaces(other)]
            self._version += len(earlier) - len(kept)
            self._store(op, [registration, *kept])

    def unregister(self, registration: KernelRegistration) -> None:
        """Remove a kernel.

        Raises:
            NotFoundError: the kernel is not in this registry.
        """
        op = registration.kernel_def.op
        with self._lock:
            earlier = self._by_op.get(op, ())
            if registration not in earlier:
                raise NotFoundError(
                    f"The '{op}' OpKernel '{registration.class_name}' is not registered"
                )
            self._version += 1
            self._store(op, [other for other in earlier if other is not registration])

    def set_loader(self, loader: Callable[[str], None] | None) -> None:
        """Have `loader` called with the name of an op before its kernels are first looked up.

        It registers the op's kernels here, by importing their module for example. It is called
        once for each op name, again only where it raised, and must not wait for another thread
        that looks up kernels.
        """
        with self._load_lock:
            self._loader = loader
            self._loaded.clear()

    def registrations_for(self, op: str) -> tuple[KernelRegistration, ...]:
        """All kernels of an op, newest first."""
        self._load(op)
        return self._by_op.get(op, ())

    def candidates(self, op: str, device_type: str, label: str) -> tuple[KernelRegistration, ...]:
        """The kernels of an op for a device type and a label, newest first."""
        self._load(op)
        return self._by_key.get((op, device_type, label), ())

    def registrations(self) -> list[KernelRegistration]:
        """Every kernel registered so far, op by op; what a loader would add is not in it."""
        with self._lock:
            return [one for registrations in self._by_op.values() for one in registrations]

    def _store(self, op: str, registrations: list[KernelRegistration]) -> None:
        """Set the kernels of an op. Tuples are replaced whole, so that readers need no lock."""
        for key in {one.key for one in (*self._by_op.get(op, ()), *registrations)}:
            self._by_key[key] = tuple(one for one in registrations if one.key == key)
        self._by_op[op] = tuple(registrations)

    def _load(self, op: str) -> None:
        loader = self._loader
        if loader is None or op in self._loaded:
            return
        with self._load_lock:
            if op in self._loaded or op in self._loading:
                return
            self._loading.add(op)
            try:
                loader(op)
                self._loaded.add(op)
            finally:
                self._loading.discard(op)


_GLOBAL = KernelRegistry()
_GLOBAL.set_loader(load_from_catalogue)


def global_kernel_registry() -> KernelRegistry:
    """The registry that is used where none is given."""
    return _GLOBAL
