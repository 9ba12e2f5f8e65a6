"""AwaitedKernel: an asynchronous kernel in a plan that is suspended where the kernel has to wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkernel.graph import Operation
from opkernel.kernel import AsyncOpKernel, ContextParams, OpKernelContext, Step


class AwaitedKernel:
    """The kernel of a node: as a function of the step and the inputs, it gives None where it has to wait.

    Attributes:
        op: The node.
        kernel: Its kernel.
    """

    __slots__ = ("_attempt", "_params", "kernel", "op")

    def __init__(self, op: Operation, kernel: AsyncOpKernel, params: ContextParams) -> None:
        self.op = op
        self.kernel = kernel
        self._params = params
        self._attempt = kernel.attempt if kernel.has_attempt else None

    def __call__(self, step: Step, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """The outputs; None where the kernel has to be started, and has done nothing yet."""
        if self._attempt is None:
            return None
        ctx = self.context(step, inputs)
        return ctx.finish() if self._attempt(ctx) else None

    def context(self, step: Step, inputs: Sequence[Any]) -> OpKernelContext:
        """The context of one computation."""
        return OpKernelContext(self.kernel, inputs, step, self._params)
