"""The device as its kernels see it.

The runtime fulfils this protocol; a kernel gets at it through its construction and context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from opkernel.device.allocator import Allocator
    from opkernel.device.allocator_attributes import AllocatorAttributes
    from opkernel.device.scoped_allocator import ScopedAllocatorMgr
    from opkernel.state.resource_mgr import ResourceMgr


class Device(Protocol):
    """A device: its name and type, and the array namespace of its tensors."""

    @property
    def name(self) -> str:
        """The full name, `/job:localhost/replica:0/task:0/device:CPU:0`."""

    @property
    def device_type(self) -> str:
        """The type that kernels are registered for, such as `CPU`."""

    @property
    def array_namespace(self) -> Any:
        """The array API namespace that kernels get as `xp`: `numpy` on the CPU."""

    @property
    def resource_manager(self) -> ResourceMgr | None:
        """The resources of the device, which all sessions share."""

    @property
    def env(self) -> Any:
        """The clock and the files that kernels may use."""

    @property
    def intra_op_threads(self) -> int:
        """How many threads a kernel may spread its work over; one a processor if 0."""

    @property
    def intra_op_pool(self) -> Any:
        """The threads that a kernel may spread its work over: a `concurrent.futures.Executor`."""

    def try_get_device_context(self) -> Any:
        """The `op_device_context` of kernels on it; None without one."""

    @property
    def overrides_compute(self) -> bool:
        """Whether kernels are computed by `compute` and `compute_async`, and not called directly."""

    def compute(self, op_kernel: Any, ctx: Any) -> None:
        """Compute an OpKernel in an OpKernelContext."""

    def compute_async(self, op_kernel: Any, ctx: Any, done: Callable[[], None]) -> None:
        """Start an AsyncOpKernel in an OpKernelContext; it calls `done` when it is over."""

    def to_device(self, array: Any) -> Any:
        """A tensor of the device with the values of an array of the host."""

    def to_host(self, tensor: Any) -> Any:
        """An array of the host with the values of a tensor of the device."""

    def get_allocator(self, attr: AllocatorAttributes) -> Allocator:
        """The allocator for memory of the given kind; the scope does not count."""

    def get_scoped_allocator(self, attr: AllocatorAttributes, step_id: int) -> Allocator:
        """The allocator of the field that `attr.scope_id` names in a step.

        Raises:
            InternalError: there is none.
        """

    @property
    def scoped_allocator_mgr(self) -> ScopedAllocatorMgr | None:
        """The scoped allocators of its steps; None where it has none."""
