"""Kernels that wait for a resource."""

from typing import ClassVar, Generic, TypeVar

from opkernel.kernel import AsyncOpKernel, OpKernelContext, ResourceBase
from opkernel.ops.data_flow.waiting import Done
from opkernel.ops.resource_op_kernel import resource_of_handle

__all__ = ["WaitingKernel"]

R = TypeVar("R", bound=ResourceBase)


class WaitingKernel(AsyncOpKernel, Generic[R]):
    """A kernel that finds a resource and starts an attempt on it; it computes nothing itself.

    Attributes:
        resource_type: The class that the resource is found by.
    """

    resource_type: ClassVar[type[ResourceBase]] = ResourceBase

    @property
    def is_expensive(self) -> bool:
        """It is not worth a thread."""
        return False

    def find(self, ctx: OpKernelContext) -> R:
        """The resource, with one more reference: that of the handle at input 0."""
        found: R = resource_of_handle(ctx, self.resource_type)  # type: ignore[assignment]  # R is it
        return found

    def access(self, resource: R, ctx: OpKernelContext, done: Done) -> None:
        """Start an attempt that calls `done` in the end, or raise an OpError."""
        raise NotImplementedError(f"{type(self).__name__} does not override access")

    def compute_async(self, ctx: OpKernelContext, done: Done) -> None:
        """Find the resource and start; give the resource up at the end."""
        resource = self.find(ctx)

        def finish() -> None:
            resource.unref()
            done()

        try:
            self.access(resource, ctx, finish)
        except BaseException:
            resource.unref()
            raise
