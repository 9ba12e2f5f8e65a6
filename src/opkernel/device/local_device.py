"""Devices of this process, the DeviceMgr that finds those of a session by name, and what memory a tensor needs on them.

Source: TensorFlow core/framework/allocator.h, core/common_runtime/device_mgr.{h,cc}, device_set.cc.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.device_factory import (
    NAME_PREFIX,
    DeviceFactory,
    DeviceOptions,
    device_factory,
    device_types,
    load_device_types,
    register_device_factory,
)
from opkernel.errors import InternalError, InvalidArgumentError, NotFoundError
from opkernel.opdef.core.device_name import DeviceName
from opkernel.proto import TensorProto
from opkernel.records import dataclass
from opkernel.types import tensor_from_proto

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from opkernel.device.allocator import Allocator
    from opkernel.device.scoped_allocator import ScopedAllocatorMgr
    from opkernel.state.resource_mgr import ResourceMgr


@dataclass(frozen=True, slots=True)
class AllocatorAttributes:
    """Wishes that an allocator has to grant.

    Attributes:
        on_host: In the memory of the host, for every device.
        nic_compatible: Reachable by the network card.
        gpu_compatible: Of the host, and reachable by an accelerator.
        scope_id: Of a scoped allocator's region, if positive; 0 for any.
    """

    on_host: bool = False
    nic_compatible: bool = False
    gpu_compatible: bool = False
    scope_id: int = 0

    @property
    def value(self) -> int:
        """The wishes as TensorFlow's bits, the scope left out."""
        return self.on_host | self.nic_compatible << 1 | self.gpu_compatible << 2

    def merge(self, other: AllocatorAttributes) -> AllocatorAttributes:
        """Wishes for all that either wishes for.

        Raises:
            InternalError: both name a scope, and not the same.
        """
        if self.scope_id and other.scope_id and self.scope_id != other.scope_id:
            raise InternalError(
                "At least one scope_id should be zero to merge AllocatorAttributes but found "
                f"this.scope_id={self.scope_id} and other.scope_id={other.scope_id}"
            )
        return AllocatorAttributes(
            self.on_host or other.on_host,
            self.nic_compatible or other.nic_compatible,
            self.gpu_compatible or other.gpu_compatible,
            self.scope_id or other.scope_id,
        )

    def is_equal_or_less_restrictive_than(self, other: AllocatorAttributes) -> bool:
        """Whether memory that grants the other's wishes grants these; scopes do not count."""
        return self.value | other.value == other.value

    def debug_string(self) -> str:
        """The wishes in TensorFlow's words."""
        return (
            f"AllocatorAttributes(on_host={self.on_host:d} nic_compatible={self.nic_compatible:d} "
            f"gpu_compatible={self.gpu_compatible:d} value={self.value} scope_id={self.scope_id})"
        )


@dataclass(frozen=True)
class DeviceAttributes:
    """A session's description of one of its devices.

    Attributes:
        name: The full name.
        device_type: The type, such as CPU.
        memory_limit_bytes: The memory that a tensor on it may take.
        incarnation: A number that no other device has.
    """

    name: str
    device_type: str
    memory_limit_bytes: int
    incarnation: int


class Env:
    """The clock of the machine."""

    def now_micros(self) -> int:
        """Microseconds since the epoch."""
        return time.time_ns() // 1000

    def sleep_for_microseconds(self, micros: int) -> None:
        """Do nothing for a while."""
        time.sleep(micros / 1e6)


class LocalDevice:
    """A device of this process; a kernel gets at it through its construction and context.

    Attributes:
        device_type: The type that kernels are registered for.
        array_namespace: The array library of its tensors.
        index: Its number among the devices of its type.
        name: Its full name.
        env: The clock of the machine.
        intra_op_threads: How many threads a kernel may spread its work over; one a processor if 0.
    """

    def __init__(
        self,
        device_type: str,
        array_namespace: ModuleType,
        index: int = 0,
        *,
        intra_op_threads: int = 0,
        name_prefix: str = NAME_PREFIX,
    ) -> None:
        self.device_type = device_type
        self.array_namespace = array_namespace
        self.index = index
        self.name = f"{name_prefix}/device:{device_type}:{index}"
        self.env = Env()
        self.intra_op_threads = max(intra_op_threads, 0)

    def __repr__(self) -> str:
        return f"<device {self.name}>"

    def try_get_device_context(self) -> Any:
        """The `op_device_context` of kernels on the device: None, unless a device overrides it."""
        return None

    @property
    def has_own_memory(self) -> bool:
        """Whether its tensors are no arrays of the host, so that tensors are copied on the way in and out."""
        return self.array_namespace is not np

    @cached_property
    def overrides_compute(self) -> bool:
        """Whether the class computes kernels in its own way; kernels of other devices are called directly."""
        kind = type(self)
        own = kind.compute, kind.compute_async
        return own != (LocalDevice.compute, LocalDevice.compute_async)

    @cached_property
    def allocates(self) -> bool:
        """Whether arrays of its kernels come from its own allocator, or become its own tensors."""
        return self.has_own_memory or type(self).get_allocator is not LocalDevice.get_allocator

    def allocate(self, attr: AllocatorAttributes, allocator: Allocator, *what: Any) -> Any:
        """An uninitialised tensor from one of its allocators, of the shape and type that `what` is.

        Memory that is not on the host holds a tensor of the device: the allocator's own, or one that `to_device`
        makes of the allocator's array.
        """
        tensor = allocator.allocate(*what)
        is_foreign = self.has_own_memory and not attr.on_host and isinstance(tensor, np.ndarray)
        return self.to_device(tensor) if is_foreign else tensor

    def make_tensor_from_proto(
        self, proto: TensorProto, attr: AllocatorAttributes | None = None
    ) -> Any:
        """The tensor of a TensorProto: one of the device, or an array if `attr` asks for memory of the host.

        Raises:
            InvalidArgumentError: the message is no tensor.

        Source: Device::MakeTensorFromProto in TensorFlow core/framework/device_base.h.
        """
        array = tensor_from_proto(proto)
        on_host = attr is not None and attr.on_host
        return self.to_device(array) if self.has_own_memory and not on_host else array

    def compute(self, op_kernel: Any, ctx: Any) -> None:
        """Compute an OpKernel in an OpKernelContext.

        A class that overrides this sees every computation of a synchronous kernel on the device, and
        decides how it is done. An error raised here is the node's error.

        Source: Device::Compute in TensorFlow core/common_runtime/device.h.
        """
        op_kernel.compute(ctx)

    def compute_async(self, op_kernel: Any, ctx: Any, done: Callable[[], None]) -> None:
        """Start an AsyncOpKernel, as `compute` does; `done` is called once, by any thread, at its end."""
        op_kernel.compute_async(ctx, done)

    def to_device(self, array: Any) -> Any:
        """A tensor of the device with the values of an array of the host."""
        return array

    def to_host(self, tensor: Any) -> Any:
        """An array of the host with the values of a tensor of the device."""
        return tensor

    @cached_property
    def incarnation(self) -> int:
        """A number that no other device has."""
        return int.from_bytes(os.urandom(8), "little") or 1

    @cached_property
    def resource_manager(self) -> ResourceMgr:
        """The resources of the device."""
        from opkernel.state.resource_mgr import ResourceMgr  # many processes have no resources

        return ResourceMgr()

    @cached_property
    def intra_op_pool(self) -> ThreadPoolExecutor:
        """Threads that kernels spread their work over."""
        from concurrent.futures import ThreadPoolExecutor  # slow to import

        threads = self.intra_op_threads or os.cpu_count() or 1
        return ThreadPoolExecutor(threads, thread_name_prefix="opkernel intra-op")

    def close(self) -> None:
        """Drop the resources, and end the threads once they have done their work."""
        if "resource_manager" in self.__dict__:
            self.resource_manager.clear()
        if "intra_op_pool" in self.__dict__:
            self.intra_op_pool.shutdown(wait=False)

    def get_allocator(self, attr: AllocatorAttributes) -> Allocator:
        """The allocator for memory of the given kind: all memory of the CPU is of every kind."""
        from opkernel.device.allocator import cpu_allocator  # few kernels ask for an allocator

        return cpu_allocator()

    @cached_property
    def scoped_allocator_mgr(self) -> ScopedAllocatorMgr | None:
        """The scoped allocators of its steps; None where its tensors are no arrays of the host."""
        from opkernel.device.scoped_allocator import ScopedAllocatorMgr  # few graphs have one

        return None if self.has_own_memory else ScopedAllocatorMgr(self.name)

    def get_scoped_allocator(self, attr: AllocatorAttributes, step_id: int) -> Allocator:
        """The allocator of the field that `attr.scope_id` names in a step.

        Raises:
            InternalError: there is none.
        """
        if self.scoped_allocator_mgr is None:
            raise InternalError(f"ScopedAllocatorMgr not supported on device {self.name}")
        return self.scoped_allocator_mgr.get_instance(step_id, attr.scope_id)


Device = LocalDevice
"""The name of the class for kernels."""


class CpuFactory(DeviceFactory):
    """Makes CPUs: devices that have resources of their own, and all the memory of the host."""

    def list_physical_devices(self) -> list[str]:
        """The one that there is."""
        return ["/physical_device:CPU:0"]

    def create_devices(self, options: DeviceOptions) -> list[LocalDevice]:
        """As many as are asked for, one where nothing is said of it."""
        return [
            LocalDevice(
                "CPU",
                np,
                index,
                intra_op_threads=options.intra_op_threads,
                name_prefix=options.name_prefix,
            )
            for index in range(1 if options.count is None else options.count)
        ]


register_device_factory("CPU", CpuFactory(), priority=60)

CPU = LocalDevice("CPU", np)
"""A CPU of the process, which no session has; its tensors are NumPy arrays."""

_eager: tuple[DeviceFactory, LocalDevice] = device_factory("CPU"), CPU


def eager_device() -> LocalDevice:
    """The CPU of eager calls and traced functions: `CPU`, or one of the factory that took its place."""
    global _eager
    factory = device_factory("CPU")
    if _eager[0] is not factory:
        is_own = type(factory) is CpuFactory
        _eager = factory, CPU if is_own else factory.create_devices(DeviceOptions(1))[0]
    return _eager[1]


_MOST_DEVICES = 1024
"""Of a type, in a session."""


class DeviceMgr:
    """Some devices; the first is the caller's.

    Attributes:
        all: The devices.
        client_device: Feeds come from it, fetches go to it; its memory is the host's.
    """

    def __init__(self, devices: Sequence[LocalDevice]) -> None:
        self.all: tuple[LocalDevice, ...] = ()
        self._names: dict[LocalDevice, DeviceName] = {}
        self._by_name: dict[str, LocalDevice] = {}
        self._matching: dict[DeviceName, list[LocalDevice]] = {}
        self.add(devices)
        self.client_device, *_ = devices

    def add(self, devices: Sequence[LocalDevice]) -> None:
        """Have more devices."""
        self.all += tuple(devices)
        self._names |= {one: DeviceName.parse_full_name(one.name) for one in devices}
        self._by_name |= {one.name: one for one in devices}
        self._matching.clear()

    @property
    def device_types(self) -> list[str]:
        """The types of the devices, each once, in the order of the devices."""
        return list(dict.fromkeys([device.device_type for device in self.all]))

    def look_up(self, name: str) -> LocalDevice:
        """The device of a full or local name, `CPU:0`.

        Raises:
            InvalidArgumentError: there is none.
        """
        device = self._by_name.get(name)
        if device is None:
            found = self.matching(DeviceName.parse_full_or_local_name(name))
            if len(found) != 1:
                raise InvalidArgumentError(
                    f"{name} unknown device; there are: {', '.join(self._by_name)}"
                )
            device = self._by_name[name] = found[0]
        return device

    def matching(self, asked: DeviceName) -> list[LocalDevice]:
        """The devices that have every part of a name; the caller does not change the list."""
        found = self._matching.get(asked)
        if found is None:
            names = self._names.items()
            found = [one for one, name in names if name.is_specification_of(asked)]
            self._matching[asked] = found
        return found

    def cleanup(self, container: str) -> None:
        """Drop the resources of a container on all devices."""
        for device in self.all:
            device.resource_manager.cleanup(container)

    def clear_containers(self, containers: Sequence[str]) -> None:
        """Drop the resources in some containers on all devices; in the default ones if none is named."""
        for device in self.all:
            manager = device.resource_manager
            for container in containers or (manager.default_container,):
                manager.cleanup(container)

    def close(self) -> None:
        """Drop the resources of all devices."""
        for device in self.all:
            device.close()


def new_devices(
    device_count: Mapping[str, int],
    *,
    name_prefix: str = NAME_PREFIX,
    intra_op_threads: int = 0,
    but: Collection[str] = (),
    asked: Collection[str] = (),
) -> list[LocalDevice]:
    """The devices of a session: CPUs first, then those of all other types with a factory.

    Args:
        device_count: How many there are to be by type; plugins are loaded for types without a
            factory, which are passed over if there are none.
        name_prefix: The beginning of their full names.
        intra_op_threads: As DeviceOptions says.
        but: Types that are left out.
        asked: Types that are asked for without a number. A type that is not offered unasked has devices if
            it is among these, or in `device_count`.

    Raises:
        NotFoundError: there is to be no CPU.
        InvalidArgumentError: there are to be more than 1024 of a type.
    """
    for name, asked_for in device_count.items():
        if asked_for > _MOST_DEVICES:
            raise InvalidArgumentError(
                f"device_count asks for {asked_for} devices of type {name!r}; a session has at most {_MOST_DEVICES}"
            )
    load_device_types([*asked, *(name for name, count in device_count.items() if count)])
    devices: list[LocalDevice] = []
    wanted = [name for name in device_types() if name not in but]
    for device_type in sorted(wanted, key=lambda name: name != "CPU"):
        count, factory = device_count.get(device_type), device_factory(device_type)
        if count is None and not factory.is_offered_unasked and device_type not in asked:
            continue
        devices += factory.create_devices(DeviceOptions(count, name_prefix, intra_op_threads))
        if not devices and device_type == "CPU":
            raise NotFoundError("No CPU devices are available in this process")
    return devices
