"""StandIn: takes the place of a kernel for executors, to do something around its computation.

Executors call kernels in many ways, directly where they can. A stand-in is no function kernel, so
executors can call it in one way only: with a context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.kernel.async_op_kernel import AsyncOpKernel
from opkernel.kernel.context.op_kernel_context import OpKernelContext
from opkernel.kernel.op_kernel import OpKernel
from opkernel.records import replace


class StandIn(OpKernel):
    """A kernel that executors call in the place of another; the other's facts are its own by default.

    A stand-in has no function, so it makes no claim that only calls of functions rely on.
    """

    def __init__(self, kernel: OpKernel) -> None:
        self.kernel = kernel
        self.contract = replace(
            kernel.contract, elementwise=False, same_shapes=False, takes_out=False
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    @property
    def provider(self) -> str:  # type: ignore[override]  # the kernel's own
        """The name of the provider that the kernel comes from."""
        return self.kernel.provider

    @property
    def node_traceback(self) -> Callable[[], Any] | None:
        """Where the node was defined, if known."""
        return self.kernel.node_traceback

    @node_traceback.setter
    def node_traceback(self, find: Callable[[], Any] | None) -> None:
        self.kernel.node_traceback = find

    @property
    def is_expensive(self) -> bool:
        """Whether the kernel is worth a thread of its own."""
        return self.kernel.is_expensive

    @property
    def const_tensor(self) -> Any:
        """The value of a kernel that always gives the same tensor, without a computation."""
        return self.kernel.const_tensor

    def trace_string(self, ctx: OpKernelContext, *, verbose: bool = False) -> str:
        """The description of a computation in a profile."""
        return self.kernel.trace_string(ctx, verbose=verbose)


class AsyncStandIn(StandIn, AsyncOpKernel):
    """A stand-in for an asynchronous kernel, which overrides `compute_async`."""

    kernel: AsyncOpKernel
