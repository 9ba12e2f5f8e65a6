"""XlaOpRegistry: with which kernels XLA compiles, and for which devices.

A kernel is registered once, by `register_xla_kernel`, and serves every compilation device. An op without one is
served by its portable kernels: those of the CPU that are NumPy ufuncs or take the keyword `xp`. Kernels become
KernelDefs of the compilation devices when an op is first looked up, or all at once by
`register_compilation_kernels`. Look-ups for a node find them in the registry of kernels, too
(`kernel_def_available("XLA_CPU_JIT", node)`). Its lists leave them out; `XlaOpRegistry.kernels` lists them.

Source: TensorFlow compiler/tf2xla/xla_op_registry.h.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Container, Iterable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.graph.edit.jit_options import AutoclusteringPolicy
from opkernel.kernel import KernelRegistry, OpKernel, OpKernelConstruction, global_kernel_registry
from opkernel.kernel.contract import KernelContract
from opkernel.kernel.function_kernel import FunctionKernelFactory
from opkernel.kernel.node_properties import args_of_node
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.ops.registration import FLOAT8, POD, QUANTIZED
from opkernel.optimization.clusters.marks import COMPILE_TIME_CONSTANT_INPUTS
from opkernel.proto import KernelDef, NodeDef, OpDef
from opkernel.records import dataclass
from opkernel.registrations import (
    DeclaringSite,
    OpRules,
    Registrations,
    declaring_site,
    import_modules,
)
from opkernel.types import DataType

__all__ = [
    "AutoclusteringPolicy",
    "DeviceRegistration",
    "XlaKernelRegistration",
    "XlaOpRegistry",
    "global_xla_op_registry",
]

XLA_CPU_JIT = "XLA_CPU_JIT"
XLA_GPU_JIT = "XLA_GPU_JIT"

SUPPORTED_TYPES = frozenset({*POD, *QUANTIZED, *FLOAT8, DataType.DT_INT4, DataType.DT_UINT4})
"""The types of tensors that XLA computes with; quantised ones are the integers that they consist of."""

_UNCHECKED = KernelContract(outputs_as_declared=True)
"""Outputs are values of the program: the compiler looks at them."""


@dataclass(frozen=True)
class DeviceRegistration:
    """How operations on devices of a type are compiled.

    Attributes:
        compilation_device_name: The device type whose kernels compile them.
        autoclustering_policy: When they are compiled.
        cluster_resource_variable_ops_unsafely: Whether clusters may reorder reads and assignments.
        cluster_stack_ops, cluster_tensor_array_ops, cluster_stateful_rng_ops, cluster_control_trigger,
        elide_assert_and_checknumerics, cluster_variant_ops: Whether such operations may be in clusters.
    """

    compilation_device_name: str
    autoclustering_policy: AutoclusteringPolicy = AutoclusteringPolicy.IF_ENABLED_GLOBALLY
    cluster_resource_variable_ops_unsafely: bool = False
    cluster_stack_ops: bool = False
    cluster_tensor_array_ops: bool = False
    cluster_stateful_rng_ops: bool = False
    cluster_control_trigger: bool = False
    elide_assert_and_checknumerics: bool = False
    cluster_variant_ops: bool = False


@dataclass(frozen=True, eq=False)
class XlaKernelRegistration:
    """A kernel for XLA as registered.

    Attributes:
        kernel_def: The op and the constraints; the device type is that of each compilation device.
        factory: Makes the kernel of a node.
        compile_time_constants: The input arguments whose values the compiler must know.
        devices: The compilation devices that it serves; all if None.
        allows_resources, allows_variants, allows_strings: Whether tensors of these types may enter or leave.
        is_metadata_op: Whether only the shapes and types of the inputs matter.
        kernel: The registered function or class.
        site: Where it is registered.
    """

    kernel_def: KernelDef
    factory: Callable[[OpKernelConstruction], OpKernel]
    compile_time_constants: frozenset[str] = frozenset()
    devices: frozenset[str] | None = None
    allows_resources: bool = False
    allows_variants: bool = False
    allows_strings: bool = False
    is_metadata_op: bool = False
    kernel: Any = None
    site: DeclaringSite | None = None

    def replaces(self, other: XlaKernelRegistration) -> bool:
        """Whether a module that runs again registers the other kernel again, as kernels of a device do."""
        return self.on_device(XLA_CPU_JIT).replaces(other.on_device(XLA_CPU_JIT))

    def refused_type(
        self, dtypes: Iterable[DataType], supported: frozenset[DataType]
    ) -> DataType | None:
        """The first of some types of tensors that the kernel does not take or give; None where it does all."""
        allowed = {
            DataType.DT_RESOURCE: self.allows_resources,
            DataType.DT_VARIANT: self.allows_variants,
            DataType.DT_STRING: self.allows_strings,
        }
        return next((one for one in dtypes if one not in supported and not allowed.get(one)), None)

    def on_device(self, device_type: str) -> KernelRegistration:
        """The registration of an ordinary kernel of a compilation device."""
        kernel_def = KernelDef()
        kernel_def.CopyFrom(self.kernel_def)
        kernel_def.device_type = device_type
        make, site, kernel = self.factory, self.site, self.kernel
        owner = "" if site is None else site.owner
        return KernelRegistration(
            kernel_def, "XlaJitOp", make, owner=owner, contract=_UNCHECKED, site=site, kernel=kernel
        )


class _XlaRules(OpRules[tuple[XlaKernelRegistration, ...]]):
    """The kernels for XLA, by op.

    Args:
        kernels: Has them for the compilation devices.
    """

    def __init__(self, kernels: KernelRegistry) -> None:
        super().__init__("XLA", lambda _: _load_kernels())
        self._kernels = kernels

    def remove(self, name: str) -> None:
        """Forget the kernels of an op that the owner of the last one registered."""
        last = self.site(name)
        owner = None if last is None else last.owner
        left = tuple([one for one in self.get(name) or () if one.site and one.site.owner != owner])
        if left and left[-1].site is not None:
            self.put(name, left, left[-1].site)
        else:
            super().remove(name)
        for kernel in self._kernels.registrations():
            if (kernel.kernel_def.op, kernel.owner) == (name, owner):
                self._kernels.unregister(kernel)


class XlaOpRegistry:
    """The kernels for XLA, the backends, and what is compiled on which devices. Safe under threads.

    Args:
        kernels: Has the portable kernels.
    """

    def __init__(self, kernels: KernelRegistry) -> None:
        self._portable = kernels
        self._constants: dict[str, frozenset[str]] = {}
        self._compilation_devices: dict[str, DeviceRegistration] = {}
        self._backends = Registrations[frozenset[DataType]]("The XLA backend")
        self._prepared: set[str] = set()
        self._watchers: list[Callable[[str], object]] = []
        self._lock = threading.RLock()
        self.kernels = KernelRegistry()
        """The kernels of the compilation devices."""
        self.kernels.set_loader(self._prepare)
        self.rules = _XlaRules(self.kernels)
        """The kernels that were registered, by op."""

    def register_compilation_device(self, name: str, registration: DeviceRegistration) -> None:
        """State how operations on devices of type `name` are compiled; the last statement counts."""
        with self._lock:
            self._compilation_devices[name] = registration

    def compilation_device(self, name: str) -> DeviceRegistration | None:
        """How operations on devices of a type are compiled; None where they are not."""
        with self._lock:
            return self._compilation_devices.get(name)

    def register_backend(self, name: str, types: Iterable[DataType]) -> None:
        """Add a compilation device, with the types of tensors that it computes with.

        Raises:
            AlreadyExistsError: it is there.
        """
        self._backends.add(name, frozenset(types), declaring_site(sys._getframe(1)))

    def backend_names(self) -> list[str]:
        """The compilation devices."""
        return self._backends.names()

    def is_backend(self, name: str) -> bool:
        """Whether a device type is a compilation device."""
        return name in self._backends

    def supported_types(self, backend: str) -> frozenset[DataType]:
        """The types of tensors that a compilation device computes with."""
        return self._backends[backend]

    def register(self, registration: XlaKernelRegistration) -> None:
        """Add a kernel.

        Raises:
            InvalidArgumentError: another one of the op differs in what it needs at compile time, or in the
                tensors that it takes.
        """
        op = registration.kernel_def.op
        with self._lock:
            others = [one for one in self.rules.get(op) or () if not registration.replaces(one)]
            for other in others:
                _check_agree(other, registration)
            site = registration.site or declaring_site(sys._getframe(1))
            self.rules.put(op, (*others, registration), site)
            if op in self._prepared:
                self._offer(registration)
        for watcher in self._watchers:
            watcher(op)

    def watch(self, watcher: Callable[[str], object]) -> None:
        """Have `watcher` called with the name of an op whenever a kernel of the op is registered."""
        self._watchers.append(watcher)

    def _offer(self, registration: XlaKernelRegistration) -> None:
        """Register a kernel on the compilation devices."""
        for device in self._backends.names():
            if registration.devices is None or device in registration.devices:
                self.kernels.register(registration.on_device(device))

    def register_compile_time_constant(self, op: str, name: str) -> None:
        """State for the portable kernels of an op that the compiler must know an input."""
        with self._lock:
            self._constants[op] = self._constants.get(op, frozenset()) | {name}

    def registrations(self, op: str) -> tuple[XlaKernelRegistration, ...]:
        """The kernels that serve an op: those registered for it, before its portable kernels."""
        return (*(self.rules.find(op) or ()), *self._portable_kernels(op))

    def _portable_kernels(self, op: str) -> Iterable[XlaKernelRegistration]:
        for registration in self._portable.registrations_for(op):
            factory = registration.factory
            if not isinstance(factory, FunctionKernelFactory) or not _is_portable(factory):
                continue
            kernel_def = registration.kernel_def
            if kernel_def.device_type != "CPU" or not _computes_numbers(kernel_def):
                continue
            constants = self._constants.get(op, frozenset(kernel_def.host_memory_arg))
            yield XlaKernelRegistration(
                kernel_def, factory, constants, kernel=registration.kernel, site=registration.site
            )

    def _prepare(self, op: str) -> None:
        """Register the kernels of an op on the compilation devices."""
        self._prepared.add(op)
        for registration in reversed(self.registrations(op)):
            self._offer(registration)

    def register_compilation_kernels(self) -> None:
        """Register the kernels of all ops on the compilation devices."""
        for op in self.all_registered_ops():
            self.kernels.registrations_for(op)

    def all_registered_ops(self) -> list[str]:
        """The ops that have kernels for XLA, portable ones included; this loads all of the catalogue's modules."""
        from opkernel.opdef import global_op_registry  # lists every op

        names = global_op_registry().names()
        return sorted(name for name in names if self.registrations(name))

    def compile_time_constant_input_arg_names(self, op: str) -> frozenset[str]:
        """The input arguments of an op whose values the compiler must know."""
        found = self.registrations(op)
        return found[0].compile_time_constants if found else frozenset()

    def compile_time_constant_inputs(self, node_def: NodeDef, op_def: OpDef) -> list[int]:
        """The inputs of a valid node whose values the compiler must know: those that its op, or the node, names."""
        names: Container[str] = self.compile_time_constant_input_arg_names(node_def.op)
        if COMPILE_TIME_CONSTANT_INPUTS in node_def.attr:
            names = [one.decode() for one in node_def.attr[COMPILE_TIME_CONSTANT_INPUTS].list.s]
        inputs, _ = args_of_node(node_def, op_def)
        return [i for arg in inputs if arg.name in names for i in range(arg.start, arg.stop)]

    def is_metadata_op(self, op: str) -> bool:
        """Whether only the shapes and types of the inputs of an op matter."""
        found = self.registrations(op)
        return bool(found) and found[0].is_metadata_op

    def device_kernels(self, device_type: str) -> list[KernelDef]:
        """The declarations of the kernels of a compilation device, op by op."""
        self.register_compilation_kernels()
        all_kernels = self.kernels.registrations()
        return [one.kernel_def for one in all_kernels if one.kernel_def.device_type == device_type]


def _check_agree(one: XlaKernelRegistration, other: XlaKernelRegistration) -> None:
    names = ("compile_time_constants", "allows_resources", "allows_variants", "allows_strings")
    for name in (*names, "is_metadata_op"):
        if getattr(one, name) != getattr(other, name):
            raise InvalidArgumentError(
                f"XLA kernels of {one.kernel_def.op} must agree on {name}: {getattr(one, name)} is "
                f"registered, {getattr(other, name)} is not the same"
            )


def _is_portable(factory: FunctionKernelFactory) -> bool:
    return isinstance(factory.function, np.ufunc) or "xp" in factory.keywords


def _computes_numbers(kernel_def: KernelDef) -> bool:
    """Whether a kernel takes other tensors than strings, variants and resources."""
    for constraint in kernel_def.constraint:
        types = constraint.allowed_values.list.type
        if types and not any(DataType(dtype) in SUPPORTED_TYPES for dtype in types):
            return False
    return True


@functools.cache
def _load_kernels() -> None:
    """Import the modules that register the kernels."""
    from opkernel.xla import kernels  # its modules need this one

    import_modules(kernels)


def compilation_kernels(op: str, device_type: str) -> list[KernelRegistration]:
    """The kernels of an op on a compilation device, which the registry of kernels derives."""
    kernels = _watched_registry().kernels.registrations_for(op)
    return [one for one in kernels if one.kernel_def.device_type == device_type]


@functools.cache
def _watched_registry() -> XlaOpRegistry:
    """The registry of the process; from now on the registry of kernels knows of its changes."""
    registry = global_xla_op_registry()
    registry.registrations("NoOp")  # imports kernels, which are no changes
    registry.watch(global_kernel_registry().note_change)
    return registry


@functools.cache
def global_xla_op_registry() -> XlaOpRegistry:
    """The registry of the process, with TensorFlow's devices."""
    registry = XlaOpRegistry(global_kernel_registry())
    for backend in (XLA_CPU_JIT, XLA_GPU_JIT):
        registry.register_backend(backend, SUPPORTED_TYPES)
    for device, backend in (("CPU", XLA_CPU_JIT), ("GPU", XLA_GPU_JIT)):
        # TensorFlow leaves lists to its kernels. Here a cluster has all operations on one, or none.
        registration = DeviceRegistration(
            backend, cluster_stack_ops=True, cluster_tensor_array_ops=True, cluster_variant_ops=True
        )
        registry.register_compilation_device(device, registration)
    return registry
