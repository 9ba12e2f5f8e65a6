"""The contents of a plugin: modules, and what they register: ops, kernels, providers, devices, engines, passes."""

import sys
from dataclasses import dataclass
from typing import Any

from opkernel.device.device_factory import device_factory, device_types, unregister_device_factory
from opkernel.kernel import (
    KernelProvider,
    KernelRegistration,
    global_kernel_registry,
    registered_providers,
    unregister_provider,
)
from opkernel.opdef import global_op_registry
from opkernel.plugins.discovery import FOLDERS_PACKAGE, Plugin
from opkernel.registrations import Registrations, registered_by


@dataclass(frozen=True)
class Contents:
    """The contents of a plugin.

    Attributes:
        modules: The names of its modules that are imported.
        ops: The names of the ops that they declare.
        kernels: The kernels that come from the plugin's modules, and all kernels of its ops.
        providers: The kernel providers that they register.
        device_types: The types of devices that their factories make.
        registrations: What else they register by name: engines, optimisation passes, executors.
    """

    modules: frozenset[str]
    ops: frozenset[str]
    kernels: frozenset[KernelRegistration]
    providers: frozenset[KernelProvider]
    device_types: frozenset[str]
    registrations: frozenset[tuple[Registrations[Any], str]]


def contents_of(plugin: Plugin) -> Contents:
    """The contents so far of a plugin's packages."""
    packages = _packages(plugin)
    owners = global_op_registry().owners()
    ops = frozenset(op for op, owner in owners.items() if _is_in(owner, packages))
    kernels = global_kernel_registry().registrations()
    return Contents(
        modules=frozenset(module for module in list(sys.modules) if _is_in(module, packages)),
        ops=ops,
        kernels=frozenset(
            one for one in kernels if one.kernel_def.op in ops or _is_in(one.owner, packages)
        ),
        providers=frozenset(one for one in registered_providers() if _is_in(one.owner, packages)),
        device_types=frozenset(
            name
            for name in device_types()
            if _is_in(type(device_factory(name)).__module__, packages)
        ),
        registrations=frozenset(registered_by(lambda module: _is_in(module, packages))),
    )


def remove_contents(plugin: Plugin, *, but: Contents) -> None:
    """Take back what a plugin has registered beyond `but`."""
    contents = contents_of(plugin)
    for registrations, name in contents.registrations - but.registrations:
        registrations.remove(name)
    for provider in contents.providers - but.providers:
        unregister_provider(provider.name)
    for device_type in contents.device_types - but.device_types:
        unregister_device_factory(device_type)
    for kernel in contents.kernels - but.kernels:
        global_kernel_registry().unregister(kernel)
    for op in contents.ops - but.ops:
        global_op_registry().unregister(op)
    for module in contents.modules - but.modules:  # to be run again at the next attempt
        sys.modules.pop(module, None)


def _packages(plugin: Plugin) -> list[str]:
    """The packages of the plugin's modules."""
    if plugin.folder is not None:
        return [f"{FOLDERS_PACKAGE}.{plugin.name}"]
    return [_package_of(module) for module in plugin.modules]


def _package_of(module: str) -> str:
    """The package that a module is in; the module itself, if that package is not one plugin's."""
    parent = module.rpartition(".")[0]
    is_namespace = getattr(sys.modules.get(parent), "__file__", None) is None
    return module if is_namespace else parent


def _is_in(module: str, packages: list[str]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)
