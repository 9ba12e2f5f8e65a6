"""Kernels that their device computes; `create_op_kernel` makes them for devices that override `compute`.

Other devices cost nothing.

Source: Device::Compute and ComputeAsync in TensorFlow core/common_runtime/device.h.
"""

from __future__ import annotations

from collections.abc import Callable

from opkernel.kernel.context.op_kernel_context import OpKernelContext
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.stand_in import AsyncStandIn, StandIn


def computed_by_device(kernel: OpKernel) -> OpKernel:
    """The stand-in for a kernel that its device computes."""
    return _OnDevice(kernel) if kernel.as_async() is None else _AsyncOnDevice(kernel)


class _OnDevice(StandIn):
    def compute(self, ctx: OpKernelContext) -> None:
        ctx.kernel = self.kernel
        self.device.compute(self.kernel, ctx)


class _AsyncOnDevice(AsyncStandIn):
    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        ctx.kernel = self.kernel
        self.device.compute_async(self.kernel, ctx, done)
