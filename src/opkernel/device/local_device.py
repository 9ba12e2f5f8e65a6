"""Devices of this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.allocator_attributes import AllocatorAttributes
from opkernel.device.device_factory import (
    NAME_PREFIX,
    DeviceFactory,
    DeviceOptions,
    device_factory,
    register_device_factory,
)
from opkernel.errors import InternalError
from opkernel.records import dataclass

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from opkernel.device.allocator import Allocator
    from opkernel.device.scoped_allocator import ScopedAllocatorMgr
    from opkernel.state.resource_mgr import ResourceMgr


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
    """A device of this process (fulfils `opkernel.kernel.Device`).

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
