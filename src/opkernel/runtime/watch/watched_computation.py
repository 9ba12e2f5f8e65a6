"""How a node is computed under watch: by a watcher, a function, or a kernel in a context.

A CheckingWatcher has a step stop at the node where it was cancelled or its time ran out. Steps that nothing can stop
do without: they are compiled apart. Nothing interrupts NumPy. So a step with a deadline checks the time between
pieces of about a tenth of a second where kernels are element-wise, and begins no kernel that the time left does not
suffice for.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from opkernel.device.budget import check_time
from opkernel.errors import DeadlineExceededError
from opkernel.graph import Operation
from opkernel.kernel import (
    AsyncOpKernel,
    ContextParams,
    FunctionKernel,
    OpKernel,
    OpKernelContext,
    Step,
)
from opkernel.kernel.bounded import (
    COSTS_WITH_LEAST_SECONDS,
    computed_in_pieces,
    least_seconds,
    may_go_in_pieces,
)
from opkernel.runtime.dataflow.binding import function_of_lists
from opkernel.runtime.plan.keys import dereferenced
from opkernel.runtime.program.request import Variant
from opkernel.runtime.watch.kernel_watcher import (
    CallWatcher,
    Computer,
    KernelWatcher,
    Requests,
    Runner,
    Starter,
)


class MemoryTaker(Protocol):
    """Takes what a kernel has allocated."""

    def set_memory(self, ctx: OpKernelContext) -> None:
        """Take the records of a context."""


Computation = Callable[[Step, Sequence[Any], MemoryTaker | None], Sequence[Any]]
"""Computes a node from the step and its inputs, and has the memory that it took recorded."""


def computation(
    op: Operation, kernel: OpKernel, watcher: KernelWatcher | None, params: ContextParams
) -> Computation:
    """The function that computes a node: a watcher's, the kernel's own, or one in a context."""
    run = None if watcher is None else watcher.runner(op, kernel, params)
    if run is not None:
        return lambda step, inputs, stats: run(step, *inputs)
    has_references = any(tensor.dtype.is_ref for tensor in op.inputs)
    if isinstance(kernel, FunctionKernel) and not has_references:
        return _function(kernel)

    def compute(step: Step, inputs: Sequence[Any], stats: MemoryTaker | None) -> Sequence[Any]:
        if has_references:
            inputs = dereferenced(kernel, inputs)
        ctx = OpKernelContext(kernel, inputs, step, params)
        if stats is None:
            return ctx.run()
        ctx.set_record_memory_consumption(True)
        outputs = ctx.run()
        stats.set_memory(ctx)
        return outputs

    return compute


def _function(kernel: FunctionKernel) -> Computation:
    """A function kernel without a context, which would take as long as a small kernel."""
    function, properties = kernel.function, kernel.properties
    args = (*properties.input_args, *properties.output_args)
    if len(properties.output_args) == 1 and not any(arg.is_list for arg in args):
        return lambda step, inputs, stats: (function(*inputs),)
    of_lists = function_of_lists(kernel)
    return lambda step, inputs, stats: of_lists(step, [*inputs])


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
            compute = _stops_between_pieces(kernel, compute)
        has_least_time = op.traits.cost in COSTS_WITH_LEAST_SECONDS

        def run(step: Step, *inputs: Any) -> Sequence[Any]:
            step.check()
            if has_least_time and step.deadline is not None:
                _check_cost(op, inputs, step.deadline - time.monotonic())
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
        return _CheckingCalls()

    def starter(self, op: Operation, kernel: AsyncOpKernel) -> Starter | None:
        """A function that starts an asynchronous kernel, which hears when the step is to stop."""
        return kernel.start if self._inner is None else self._inner.starter(op, kernel)


class _CheckingCalls:
    """Checks the step before each function that a node calls: there may be no kernels in it."""

    def call(self, function: Runner, step: Step, *inputs: Any) -> Sequence[Any]:
        """Check the step and compute the node."""
        step.check()
        return function(step, *inputs)

    def requests(self, requests: Requests) -> Requests:
        """The requests of the node, for which there must be time."""

        def checked(inputs: Sequence[Any]) -> Any:
            check_time("calling functions")
            return requests(inputs)

        return checked


def _check_cost(op: Operation, inputs: Sequence[Any], seconds_left: float) -> None:
    """Raise DeadlineExceededError where a product or a sort is sure to take longer than there is time.

    Args:
        op: The node.
        inputs: What its kernel is about to get.
        seconds_left: The time that is left.
    """
    least = least_seconds(op.traits, inputs)
    if least > seconds_left:
        raise DeadlineExceededError(
            f"Timed out: {op.type} takes {least:.1f} s at least, and {seconds_left:.1f} s are left"
        )


def _stops_between_pieces(kernel: OpKernel, compute: Computation) -> Computation:
    """An element-wise kernel that checks the step between pieces; other kernels as they are."""
    if not isinstance(kernel, FunctionKernel) or not may_go_in_pieces(kernel, kernel.contract):
        return compute
    function, claims = kernel.function, kernel.contract

    def run(step: Step, inputs: Sequence[Any], stats: MemoryTaker | None) -> Sequence[Any]:
        return (computed_in_pieces(function, claims, inputs, step.check),)

    return run
