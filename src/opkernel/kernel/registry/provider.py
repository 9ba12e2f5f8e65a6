"""Kernel providers: named sets of kernels that stand beside the reference ones.

The kernels that are registered for an op without further ado are the reference: they can be read, and
take all that the op allows. They are the provider `numpy`. Other providers, such as `blas`, have faster
kernels for some ops and types. For each node the providers are asked in turn, by falling priority or in
the user's order. The first that has a kernel for the node and supports the node computes it, or else the
reference does.

The reference alone decides a node's meaning, its validity, and where its tensors live.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from opkernel.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from opkernel.kernel.node_properties import NodeProperties
from opkernel.kernel.registry.kernel_registry import KernelRegistry, global_kernel_registry
from opkernel.kernel.registry.lookup import NodeForm
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.messages import short_repr
from opkernel.proto import NodeDef
from opkernel.registrations import declaring_site, load_plugins
from opkernel.slots import NamedSlots
from opkernel.state.lasting_values import lasting_value
from opkernel.types import PartialTensorShape

REFERENCE = "numpy"
"""The name of the provider of the reference kernels."""


class KernelProvider:
    """A named set of kernels.

    Kernels come into it by `register_kernel(..., registry=provider.kernels)`, and are for NumPy's arrays.
    A subclass says where it cannot be used, which nodes it leaves to others, and which inputs it prepares.

    Args:
        name: Its name.
        priority: Providers of a higher priority are asked first; the reference has 0.
        library: The module that its kernels need besides NumPy, if they need one.
        modules: The modules that register its kernels, by full name, each with the beginnings of its ops' names; a space at
            the end stands for the end of the name.
            A module is imported when a node first needs it.

    Attributes:
        kernels: Its kernels.
        has_modules: Whether modules register them when nodes need them.
        owner: The module that registered it.
    """

    def __init__(
        self,
        name: str,
        priority: int = 0,
        *,
        library: str = "",
        modules: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.name = name
        self.priority = priority
        self.library = library
        self.owner = ""
        self.kernels = KernelRegistry(beside=global_kernel_registry())
        self.has_modules = bool(modules)
        if modules:
            self.kernels.set_loader(_Importer(modules))

    def is_available(self) -> bool:
        """Whether it can be used in this process; asked when providers are chosen."""
        return not self.library or importlib.util.find_spec(self.library) is not None

    @property
    def extra(self) -> str:
        """The extra of opkernel that brings its library; empty where none does."""
        from opkernel.libraries import EXTRA_OF  # for messages

        return EXTRA_OF.get(self.library, ("", ""))[1]

    def supports(self, node: NodeProperties, shapes: Sequence[PartialTensorShape]) -> bool:
        """Whether it computes a node that one of its kernels is for; asked when the kernel is made.

        Args:
            node: The node, its op and its types.
            shapes: The shapes of the inputs, as far as known. A kernel must be right for all others, too:
                it looks itself at facts that only a call can tell, such as sizes.
        """
        return True

    def registration(self, device_type: str, node: NodeDef) -> KernelRegistration | None:
        """The kernel that it has for a node on devices of a type; None if it has none."""
        choices = self.kernels.choices(node.op)
        return choices.match(device_type, node)[0] if choices.has_any else None

    def prepare(self, input: Hashable, value: Any, version: int) -> Any:
        """The prepared form of an input that stays from step to step, such as weights.

        It must not hold `value` itself: the form would keep the array alive that it goes with.

        Args:
            input: The name of the input, together with all else that the prepared form depends on.
            value: The array of a constant.
            version: 0, the version of a value that never changes.
        """
        raise NotImplementedError(f"Provider {self.name!r} prepares nothing")

    def prepared(self, input: Hashable, value: Any) -> Any:
        """The result of `prepare` for an input of a call; kernels ask while they compute.

        `prepare` is called once for each constant. For anything else, which may be another array in each step, there
        is None: the kernel computes without.
        """
        known = lasting_value(value)
        if known is None:
            return None
        return known.made((self, input), lambda: self.prepare(input, value, 0))


class _Importer:
    """Imports the modules with the kernels of an op."""

    def __init__(self, modules: Mapping[str, tuple[str, ...]]) -> None:
        self._modules = modules

    def __call__(self, op: str) -> None:
        for module, beginnings in self._modules.items():
            if f"{op} ".startswith(beginnings):
                importlib.import_module(module)


_PROVIDED: NamedSlots[KernelProvider] = NamedSlots("kernel provider")
"""The providers that come with opkernel, which register themselves when they are imported."""

_reference = KernelProvider(REFERENCE)
_reference.kernels = global_kernel_registry()
_providers: dict[str, KernelProvider] = {REFERENCE: _reference}
_default: tuple[KernelProvider, ...] | None = None
_lock = threading.RLock()


def register_provider(provider: KernelProvider) -> KernelProvider:
    """Have a provider asked for kernels from now on, and chosen by its name.

    Raises:
        AlreadyExistsError: another one has this name, and is of another module.
        TypeError: it is no provider.
    """
    global _default
    if not isinstance(provider, KernelProvider):
        raise TypeError(f"register_provider takes a KernelProvider, not {short_repr(provider)}")
    provider.owner = declaring_site(sys._getframe(1)).owner
    with _lock:
        known = _providers.get(provider.name)
        if known not in (None, provider) and known.owner != provider.owner:
            raise AlreadyExistsError(f"There is a kernel provider {provider.name!r} already")
        if provider.has_modules and known is not None:
            provider.kernels = known.kernels  # of modules that are imported once
        _providers[provider.name] = provider
        _default = None
    _note_changes(provider)
    return provider


def unregister_provider(name: str) -> None:
    """Take back a registration.

    Raises:
        NotFoundError: there is no provider of this name.
    """
    global _default
    with _lock:
        if name not in _providers or name == REFERENCE:
            raise NotFoundError(
                f"Kernel provider {name!r} cannot be taken back: it is not registered"
            )
        provider = _providers.pop(name)
        _default = None
    _note_changes(provider)


def _note_changes(provider: KernelProvider) -> None:
    """Have the kernels made anew that a provider may compute, or did."""
    for op in {one.kernel_def.op for one in provider.kernels.registrations()}:
        global_kernel_registry().note_change(op)


def registered_providers() -> list[KernelProvider]:
    """All providers, in the order in which they are asked unless the user gives another."""
    _load_own()
    return sorted(_providers.values(), key=lambda one: (-one.priority, one.name))


def default_providers() -> tuple[KernelProvider, ...]:
    """The default providers.

    The environment variable OPKERNEL_PROVIDERS names them, separated by commas; it is read when they
    are first asked for. Without it they are all that are available.

    Raises:
        NotFoundError, InvalidArgumentError: as `choose_providers`.
    """
    global _default
    found = _default
    if found is None:
        named = [name for name in os.environ.get("OPKERNEL_PROVIDERS", "").split(",") if name]
        with _lock:
            if named:
                found = choose_providers(named)
            else:
                found = _in_turn([one for one in registered_providers() if one.is_available()])
            _default = found
    return found


def choose_providers(names: Sequence[str]) -> tuple[KernelProvider, ...]:
    """The providers of these names in the order in which they are asked, and the reference.

    Raises:
        NotFoundError: no provider has one of the names; plugins were loaded to find it.
        InvalidArgumentError: one is not available here, or no name is given.
    """
    if not names or isinstance(names, str):
        raise InvalidArgumentError(f"providers must be a list of names, not {short_repr(names)}")
    _load_own()
    if any(name not in _providers for name in names):
        load_plugins()
    for name in names:
        if name not in _providers:
            raise NotFoundError(f"There is no kernel provider {name!r}; there are {_listed()}")
        if not _providers[name].is_available():
            raise InvalidArgumentError(
                f"Kernel provider {name!r} is not available here; there are {_listed()}"
            )
    return _in_turn([_providers[name] for name in names])


def choose_kernel(
    form: NodeForm,
    node: NodeProperties,
    device_type: str,
    providers: Sequence[KernelProvider] | None,
    shapes: Sequence[PartialTensorShape] | None,
) -> tuple[str, KernelRegistration]:
    """The first provider that has a kernel for a node and supports the node, and that kernel.

    A reference kernel that is registered with a priority stays.

    Args:
        form: The form of the node; it keeps the kernels of the providers that were asked.
        node: The node.
        device_type: The type of its device.
        providers: The providers to ask, in turn; `default_providers` if None.
        shapes: The shapes of the inputs, as far as known.
    """
    if form.registration.kernel_def.priority:
        return REFERENCE, form.registration
    for provider in default_providers() if providers is None else providers:
        if provider.name == REFERENCE:
            break
        if provider.name not in form.provided:
            form.provided[provider.name] = provider.registration(device_type, node.node_def)
        registration = form.provided[provider.name]
        if registration is not None:
            if shapes is None:
                shapes = [PartialTensorShape(None)] * len(node.input_types)
            if provider.supports(node, shapes):
                return provider.name, registration
    return REFERENCE, form.registration


def _in_turn(providers: Sequence[KernelProvider]) -> tuple[KernelProvider, ...]:
    """The providers up to the reference; the ones after it would never be asked."""
    found = [*dict.fromkeys([*providers, _reference])]
    return tuple(found[: found.index(_reference) + 1])


def _listed() -> str:
    return ", ".join(
        one.name if one.is_available() else f"{one.name} (not available)"
        for one in registered_providers()
    )


def _load_own() -> None:
    for name in _PROVIDED.names():
        _PROVIDED.get(name)
