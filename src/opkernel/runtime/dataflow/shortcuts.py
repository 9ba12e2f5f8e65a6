"""Shortcuts: nodes that only hand a value on need not run where nobody watches."""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.edges import edges_of, is_head_of_loop
from opkernel.graph.core.frame_loops import is_constant_enter
from opkernel.graph.edit.subgraph import Needs
from opkernel.kernel import FunctionKernel, forward_input
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS, calls_functions
from opkernel.runtime.plan.keys import keys_of_inputs
from opkernel.runtime.program.kernels import KernelCache
from opkernel.runtime.program.request import ExecutorArgs


def left_out(args: ExecutorArgs, needs: Needs) -> set[str]:
    """The nodes that only pass their input on, by name: what takes their output may take the input instead.

    Other nodes do not wait for them, and they wait for nothing else.
    """
    waited_for = {source.name for op in args.order for source in needs.controls(op)}
    return {
        op.name
        for op in args.order
        if op.name not in waited_for
        and not needs.controls(op)
        and _passes_on(op, args.kernels)
        and not any(needs.is_fed(tensor) for tensor in (op.inputs[0], op.outputs[0]))
        and not op.inputs[0].dtype.is_ref
    }


def heads_of_loops(order: Sequence[Operation], needs: Needs) -> dict[str, list[str]]:
    """The Merges that need not run, by name: whatever gives them a value may give it to their readers.

    Each has an Enter and a NextIteration, of which one gives a value in each turn; nobody asks which.
    """
    asked = {key for op in order for key in keys_of_inputs(op) if key[1] == 1}
    return {
        op.name: [source.name for source, _ in edges_of(op)]
        for op in order
        if op.type == "Merge"
        and is_head_of_loop(op)
        and (op.name, 1) not in asked
        and not needs.controls(op)
        and sorted(map(_role, op.inputs)) == ["enter", "next"]
        and not any(needs.is_fed(tensor) for tensor in [*op.inputs, *op.outputs])
    }


def _role(tensor: Tensor) -> str:
    """Whether a value enters a loop as a variable, or comes from the turn before."""
    op = tensor.op
    if op.type == "NextIteration":
        return "next"
    return "enter" if op.type == "Enter" and not is_constant_enter(op) else ""


def _passes_on(op: Operation, kernels: KernelCache) -> bool:
    if op.type == "LoopCond":
        return True
    if len(op.edges) != 2 or op.type in RUN_BY_EXECUTORS or calls_functions(op):
        return False
    kernel = kernels.kernel(op)
    return isinstance(kernel, FunctionKernel) and kernel.function is forward_input
