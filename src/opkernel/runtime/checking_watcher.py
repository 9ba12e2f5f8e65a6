"""CheckingWatcher: has a step stop at the node where it was cancelled or its time ran out.

Steps that nothing can stop do without: they are compiled apart.
"""

from collections.abc import Sequence
from typing import Any

from opkernel.graph import Operation
from opkernel.kernel import AsyncOpKernel, OpKernel, OpKernelContext, Step
from opkernel.runtime.kernel_watcher import Computer, KernelWatcher, Runner, Starter
from opkernel.runtime.watched_computation import computation

__all__ = ["CheckingWatcher"]


class CheckingWatcher(KernelWatcher):
    """Checks the step before each kernel.

    Args:
        inner: Runs the kernels, where given: another watcher.
    """

    def __init__(self, inner: KernelWatcher | None = None) -> None:
        self._inner = inner
        self.may_branch = inner is None

    def runner(self, op: Operation, kernel: OpKernel) -> Runner:
        """The function that checks the step and runs the kernel of a node."""
        compute = computation(op, kernel, self._inner)

        def run(step: Step, *inputs: Any) -> Sequence[Any]:
            step.check()
            return compute(step, inputs, None)

        return run

    def computer(self, op: Operation, kernel: OpKernel) -> Computer | None:
        """What checks the step and computes a kernel in a context."""
        if self._inner is not None:
            return self._inner.computer(op, kernel)

        def compute(ctx: OpKernelContext) -> None:
            ctx.step.check()
            kernel.compute(ctx)

        return compute

    def starter(self, op: Operation, kernel: AsyncOpKernel) -> Starter | None:
        """What starts an asynchronous kernel, which is told itself when the step is to stop."""
        return kernel.start if self._inner is None else self._inner.starter(op, kernel)
