"""The kernel registry: which kernels exist, by op, device type and label.

It knows ops by name alone: a kernel can be registered before its op, or without it.
Source: TensorFlow core/framework/op_kernel.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock, RLock

from opkernel.errors import NotFoundError
from opkernel.kernel.registry.registration import Choices, KernelRegistration
from opkernel.opdef.core.op_lookup import CATALOGUE, SYSTEM_OPS
from opkernel.opdef.core.op_registry import global_op_registry
from opkernel.proto import NodeDef, OpDef
from opkernel.registrations import load_plugins
from opkernel.slots import NamedSlots, Slot

Derivation = Callable[[str], Sequence[KernelRegistration]]
"""Makes the kernels of an op for one device type from those that are registered for others."""

_Key = tuple[str, str, str]


class KernelRegistry:
    """A multimap of kernels keyed by (op, device type, label); safe to use from several threads.

    Registering never refuses: kernels that a node could not choose between are reported by
    `validate_kernel_registrations` and at lookup, as in TensorFlow. A module that is run again
    (`KernelRegistration.replaces`) replaces its earlier kernels.

    Kernels are kept newest first, the order in which TensorFlow looks at them.

    Args:
        beside: The registry of the kernels that the kernels here may stand in for. When the kernels here
            change, that registry forgets its choices for the op.

    Attributes:
        version: How often kernels of ops that had been looked up were changed. After a change, all that
            was made from kernels found before may be stale.
    """

    def __init__(self, beside: KernelRegistry | None = None) -> None:
        self.version = 0
        self._beside = beside
        self._by_op: dict[str, tuple[KernelRegistration, ...]] = {}  # oldest first
        self._by_key: dict[_Key, tuple[KernelRegistration, ...]] = {}  # newest first
        self._changes: dict[str, int] = {}
        self._choices: dict[str, Choices] = {}
        self._lock = Lock()
        self._derivations: dict[str, Derivation] = {}
        self._loader: Callable[[str], object] | None = None
        self._loaded: set[str] = set()
        self._last_loader: Callable[[], object] | None = None
        self._loading: set[str] = set()
        # Held while a loader runs, and never to register: a loader imports modules, and a module
        # that another thread is importing must be able to register its kernels meanwhile.
        self._load_lock = RLock()

    def register(self, registration: KernelRegistration) -> None:
        """Add a kernel, in place of an earlier one that it replaces."""
        with self._lock:
            earlier = self._by_key.get(registration.key, ())
            kept = [other for other in earlier if not registration.replaces(other)]
            gone = {*earlier}.difference(kept)
            of_op = self._by_op.get(registration.kernel_def.op, ())
            others = [one for one in of_op if one not in gone and one is not registration]
            of_key = {registration.key: (registration, *kept)}
            self._set(registration.kernel_def.op, (*others, registration), of_key)

    def unregister(self, registration: KernelRegistration) -> None:
        """Remove a kernel.

        Raises:
            NotFoundError: the kernel is not in this registry.
        """
        op = registration.kernel_def.op
        with self._lock:
            of_op = self._by_op.get(op, ())
            if registration not in of_op:
                raise NotFoundError(
                    f"The '{op}' OpKernel '{registration.class_name}' is not registered"
                )
            left, left_of_key = [
                tuple([one for one in ones if one is not registration])
                for ones in (of_op, self._by_key[registration.key])
            ]
            self._set(op, left, {registration.key: left_of_key})

    def version_of(self, op: str) -> int:
        """How often the kernels of an op were changed after they had been looked up."""
        return self._changes.get(op, 0)

    def set_loader(
        self, loader: Callable[[str], object] | None, last: Callable[[], object] | None = None
    ) -> None:
        """Have `loader` called with the name of an op before its kernels are first looked up.

        It registers the op's kernels here, by importing their module for example. It is called
        once for each op name, again only where it raised, and must not wait for another thread
        that looks up kernels.

        `last` is called wherever a kernel is missing, and when all kernels of an op are asked
        for. It registers kernels that were not asked for by name: plugins.
        """
        with self._load_lock, self._lock:
            self._loader, self._last_loader = loader, last
            self._loaded.clear()
            self._choices.clear()

    def derive(self, device_type: str, derivation: Derivation) -> None:
        """Make the kernels for a device type from the registered ones, when a node first needs one.

        A node gets a derived kernel if no kernel that is registered for the device type fits. Lists of
        kernels leave derived kernels out, and so do not depend on what ran before.
        """
        with self._lock:
            self._derivations[device_type] = derivation
            self._choices.clear()

    def _derived(self, op: str, device_type: str) -> Sequence[KernelRegistration]:
        derivation = self._derivations.get(device_type)
        return () if derivation is None else derivation(op)

    def registrations_for(self, op: str) -> tuple[KernelRegistration, ...]:
        """All kernels of an op, newest first."""
        self._load(op)
        self.load_last()
        return self.registered_for(op)

    def candidates(self, op: str, device_type: str, label: str) -> tuple[KernelRegistration, ...]:
        """The kernels of an op for a device type and a label, newest first."""
        self._load(op)
        return self._by_key.get((op, device_type, label), ())

    def choices(self, op: str) -> Choices:
        """The kernels of an op and the choices among them, until its kernels change."""
        known = self._choices.get(op)
        if known is None:
            self._load(op)
            with self._lock:
                registered = self._by_op.get(op, ())[::-1]
                choices = Choices(
                    registered, partial(self._derived, op), partial(self._load_more, op)
                )
                known = self._choices.setdefault(op, choices)
        return known

    def _load_more(self, op: str) -> Choices:
        self.load_last()
        return self.choices(op)

    def load_last(self) -> None:
        """Run the loader that is called only where a kernel is missing."""
        if self._last_loader is not None:
            self._last_loader()

    def registered_for(self, op: str) -> tuple[KernelRegistration, ...]:
        """The kernels of an op that are registered by now, newest first; loads nothing."""
        with self._lock:
            return self._by_op.get(op, ())[::-1]

    def registrations(self) -> list[KernelRegistration]:
        """Every kernel registered so far, op by op, without the kernels that a loader would add."""
        with self._lock:
            return [one for of_op in self._by_op.values() for one in reversed(of_op)]

    def select(self, nodes: Iterable[NodeDef]) -> KernelRegistry:
        """A registry with the kernels that these nodes can have on any device, and the system's.

        The nodes must have a value for every attr of their ops (`add_defaults_to_node_def`).

        Raises:
            InvalidArgumentError: a node lacks an attr that a kernel has a constraint on.
        """
        needed = {
            one
            for node_def in nodes
            for one in self.registrations_for(node_def.op)
            if one.serves(node_def)
        }
        for op in SYSTEM_OPS:
            self._load(op)
        selected = KernelRegistry()
        for one in reversed(self.registrations()):
            if one.is_system or one in needed:
                selected.register(one)
        return selected

    def note_change(self, op: str) -> None:
        """Have kernels of an op made anew: others may be chosen from now on."""
        with self._lock:
            self._set(op, self._by_op.get(op, ()), {})

    def _set(
        self,
        op: str,
        of_op: tuple[KernelRegistration, ...],
        of_key: Mapping[_Key, tuple[KernelRegistration, ...]],
    ) -> None:
        """Change the kernels of an op, and forget the choices that were made among the earlier ones."""
        changes = self._changes.get(op, 0) + 1
        # There is no call until the end, and so no place for an interrupt: all of it is done, or nothing.
        self._by_op[op] = of_op
        self._by_key |= of_key
        if op in self._choices:
            del self._choices[op]
        if op in self._loaded and op not in self._loading:
            self._changes[op] = changes
            self.version += 1
        if self._beside is not None and not self._loading:
            self._beside.note_change(op)

    def _load(self, op: str) -> None:
        if op in self._loaded:
            return
        if self._loader is None:
            self._loaded.add(op)
            return
        with self._load_lock:
            if op in self._loaded or op in self._loading:
                return
            try:
                self._loading.add(op)
                self._loader(op)
                self._loaded.add(op)
            finally:
                self._loading.discard(op)


KERNELS: NamedSlots[object] = NamedSlots("kernels")
"""The modules outside `ops` that register kernels of the catalogue's ops, by op."""
KERNELS_BY_EXTRA: NamedSlots[object] = NamedSlots("kernels by extra")
"""Such modules for the ops that are only declared and need an extra (`OpTraits.extra`), by the extra."""


def _load_kernels(op: str) -> None:
    catalogue = CATALOGUE.get()
    catalogue.load_op(op)
    KERNELS.get(op)
    if catalogue.module_of_op(op) is None:
        KERNELS_BY_EXTRA.get(catalogue.traits_of_op(op).extra)


COMPILATION_KERNELS: Slot[Callable[[str, str], Sequence[KernelRegistration]]] = Slot(
    "kernels of compilation devices"
)
"""Gives the kernels with which an op is compiled on a compilation device."""


def _compilation_kernels(device_type: str, op: str) -> Sequence[KernelRegistration]:
    return COMPILATION_KERNELS.get()(op, device_type)


_GLOBAL = KernelRegistry()
_GLOBAL.set_loader(_load_kernels, last=load_plugins)
for _device_type in ("XLA_CPU_JIT", "XLA_GPU_JIT"):
    _GLOBAL.derive(_device_type, partial(_compilation_kernels, _device_type))


def _check_kernels_of(op_def: OpDef) -> None:
    """Refuse an op that kernels do not fit which were registered before it."""
    registered = _GLOBAL.registered_for(op_def.name)
    if registered:
        from opkernel.kernel.registry.validate_registrations import check_kernels  # mostly none

        check_kernels([one.kernel_def for one in registered], op_def)


global_op_registry().register_check_of_new_ops(_check_kernels_of)


def global_kernel_registry() -> KernelRegistry:
    """The registry that is used where none is given."""
    return _GLOBAL


def kernels_of_no_op() -> list[str]:
    """A sentence for each op that is not there and has kernels."""
    ops = global_op_registry()
    sites = {
        one.kernel_def.op: one.site
        for one in global_kernel_registry().registrations()
        if one.site is not None and not ops.is_there(one.kernel_def.op)
    }
    return [ops.note_on_missing("The kernel", op, site) for op, site in sorted(sites.items())]
