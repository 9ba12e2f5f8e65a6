"""Kernels under a deadline: element-wise ones go piece by piece, others estimate their cost.

Nothing interrupts NumPy. So a step with a deadline checks the time between pieces of about a tenth of a
second, and begins no kernel that the time left does not suffice for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkernel.errors import DeadlineExceededError
from opkernel.graph import Operation
from opkernel.kernel import FunctionKernel, OpKernel, Step
from opkernel.kernel.pieces import may_go_in_pieces, piecewise
from opkernel.kernel.work import least_seconds
from opkernel.runtime.watch.watched_computation import Computation, MemoryTaker


def check_cost(op: Operation, inputs: Sequence[Any], seconds_left: float) -> None:
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


def stops_between_pieces(kernel: OpKernel, compute: Computation) -> Computation:
    """An element-wise kernel that checks the step between pieces; other kernels as they are."""
    if not isinstance(kernel, FunctionKernel) or not may_go_in_pieces(kernel, kernel.contract):
        return compute
    function = piecewise(kernel.contract, kernel.function)

    def run(step: Step, inputs: Sequence[Any], stats: MemoryTaker | None) -> Sequence[Any]:
        return (function(inputs, step.check),)

    return run
