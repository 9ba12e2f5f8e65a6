"""Kernels under a deadline: element-wise ones go piece by piece, others estimate their cost.

Nothing interrupts NumPy. So a step with a deadline checks the time between pieces of about a tenth of a
second, and begins no kernel that the time left does not suffice for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.errors import DeadlineExceededError
from opkernel.kernel import FunctionKernel, OpKernel, Step, allocate
from opkernel.kernel.work import least_seconds
from opkernel.runtime.watch.watched_computation import Computation, MemoryTaker

__all__ = ["check_cost", "in_pieces"]

_PIECE = 1 << 18
"""Elements of a piece."""


def check_cost(kernel: OpKernel, inputs: Sequence[Any], seconds_left: float | None) -> None:
    """Raise DeadlineExceededError where a product or a sort is sure to take longer than there is time.

    Args:
        kernel: The kernel.
        inputs: What it is about to get.
        seconds_left: The time that is left; None for any.
    """
    if seconds_left is None:
        return
    least = least_seconds(kernel.type_string, inputs)
    if least > seconds_left:
        raise DeadlineExceededError(
            f"Timed out: {kernel.type_string} takes {least:.1f} s at least, and {seconds_left:.1f} s "
            "are left"
        )


def in_pieces(kernel: OpKernel, compute: Computation) -> Computation:
    """An element-wise kernel that checks the step between pieces; other kernels as they are."""
    claims = kernel.contract
    is_right = claims.elementwise and not claims.same_shapes and claims.outputs_as_declared
    if not is_right or not isinstance(kernel, FunctionKernel) or kernel.num_outputs != 1:
        return compute
    function, dtype = kernel.function, kernel.output_types[0]

    def run(step: Step, inputs: Sequence[Any], stats: MemoryTaker | None) -> Sequence[Any]:
        if max([value.size for value in inputs]) <= _PIECE:
            return compute(step, inputs, stats)
        try:
            shape = np.broadcast_shapes(*[value.shape for value in inputs])
        except ValueError:  # the kernel tells the error
            return compute(step, inputs, stats)
        whole = [np.broadcast_to(value, shape) for value in inputs]
        result = allocate(shape, dtype)
        for place in _pieces(shape):
            step.check()
            result[place] = function(*[value[place] for value in whole])
        return (result,)

    return run


def _pieces(shape: tuple[int, ...]) -> Sequence[tuple[slice, ...]]:
    """Parts of an array, along its longest dimension."""
    axis = max(range(len(shape)), key=shape.__getitem__)
    row = max(math.prod(shape) // max(shape[axis], 1), 1)
    rows = max(_PIECE // row, 1)
    before = (slice(None),) * axis
    return [(*before, slice(start, start + rows)) for start in range(0, shape[axis], rows)]
