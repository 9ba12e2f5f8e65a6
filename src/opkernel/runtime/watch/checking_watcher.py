"""CheckingWatcher: has a step stop at the node where it was cancelled or its time ran out.

Steps that nothing can stop do without: they are compiled apart.
"""

import time
from collections.abc import Sequence
from typing import Any

from opkernel.device.budget import check_time
from opkernel.graph import Operation
from opkernel.kernel import AsyncOpKernel, ContextParams, OpKernel, OpKernelContext, Step
from opkernel.kernel.work import COSTS_WITH_LEAST_SECONDS
from opkernel.runtime.program.request import Variant
from opkernel.runtime.step.kernel_watcher import (
    CallWatcher,
    Computer,
    KernelWatcher,
    Requests,
    Runner,
    Starter,
)
from opkernel.runtime.watch.pieces import check_cost, stops_between_pieces
from opkernel.runtime.watch.watched_computation import computation


def watcher_of_steps(steps: Variant, inner: KernelWatcher | None) -> KernelWatcher:
    """The watcher of kernels in steps that can be stopped, or are traced; another watcher may be in it."""
    if steps == "traced":
        from opkernel.runtime.traces import TracingWatcher  # rarely needed

        return TracingWatcher(inner)
    return CheckingWatcher(inner)


class CheckingWatcher(KernelWatcher):
    """Checks the step before each kernel.

    Args:
        inner: Runs the kernels, where given: another watcher.
    """

    def __init__(self, inner: KernelWatcher | None = None) -> None:
        self._inner = inner
        self.may_branch = inner is None

    def runner(self, op: Operation, kernel: OpKernel, params: ContextParams) -> Runner:
        """The function that checks the step and runs the kernel of a node."""
        compute = computation(op, kernel, self._inner, params)
        if self._inner is None and not any(tensor.dtype.is_ref for tensor in op.inputs):
            compute = stops_between_pieces(kernel, compute)
        has_least_time = op.traits.cost in COSTS_WITH_LEAST_SECONDS

        def run(step: Step, *inputs: Any) -> Sequence[Any]:
            step.check()
            if has_least_time and step.deadline is not None:
                check_cost(op, inputs, step.deadline - time.monotonic())
            return compute(step, inputs, None)

        return run

    def computer(self, op: Operation, kernel: OpKernel) -> Computer | None:
        """A function that checks the step and computes a kernel in a context."""
        if self._inner is not None:
            return self._inner.computer(op, kernel)

        def compute(ctx: OpKernelContext) -> None:
            ctx.step.check()
            kernel.compute(ctx)

        return compute

    def call_watcher(self, op: Operation) -> CallWatcher:
        """The watcher that checks the step before each function that a node calls."""
        return _CheckingCalls(None if self._inner is None else self._inner.call_watcher(op))

    def starter(self, op: Operation, kernel: AsyncOpKernel) -> Starter | None:
        """A function that starts an asynchronous kernel, which hears when the step is to stop."""
        return kernel.start if self._inner is None else self._inner.starter(op, kernel)


class _CheckingCalls:
    """Checks the step before each function that a node calls: there may be no kernels in it."""

    def __init__(self, inner: CallWatcher | None) -> None:
        self._inner = inner

    def call(self, function: Runner, step: Step, *inputs: Any) -> Sequence[Any]:
        """Check the step and compute the node."""
        step.check()
        if self._inner is not None:
            return self._inner.call(function, step, *inputs)
        return function(step, *inputs)

    def requests(self, requests: Requests) -> Requests:
        """The requests of the node, for which there must be time."""
        requests = requests if self._inner is None else self._inner.requests(requests)

        def checked(inputs: Sequence[Any]) -> Any:
            check_time("calling functions")
            return requests(inputs)

        return checked
