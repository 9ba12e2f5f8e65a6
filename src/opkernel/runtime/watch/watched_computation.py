"""How a node is computed under watch: by a watcher, a function, or a kernel in a context."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from opkernel.graph import Operation
from opkernel.kernel import ContextParams, FunctionKernel, OpKernel, OpKernelContext, Step
from opkernel.runtime.dataflow.node_functions import function_of_lists
from opkernel.runtime.plan.references import dereferenced
from opkernel.runtime.step.kernel_watcher import KernelWatcher


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
