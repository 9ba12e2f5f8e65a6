"""Functions of LAPACK on stacks of matrices: some matrices at a time where a deadline holds."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.device.work_clock import LOOK_AFTER, SLOW, check_seconds, in_time

__all__ = ["of_stack", "seconds_of"]

_OF_CALL = 1 << 11
"""The work of a function of LAPACK on the smallest of matrices, in nanoseconds."""


def of_stack(function: Callable[[Any], Any], stack: Any, cost: float, doing: str) -> Any:
    """What a function gives for a stack of matrices `[..., m, n]`, in one array or several.

    Nothing interrupts LAPACK. So a matrix that is sure to take longer than there is time is not begun.

    Args:
        function: The function of a stack.
        stack: The matrices.
        cost: The least nanoseconds of the function, for each element and each of the smaller size.
        doing: The work, for the error: "decomposing matrices".

    Raises:
        DeadlineExceededError: no time is left, or not enough for a matrix.
    """
    budget = current_budget()
    if budget is None or budget.deadline is None:
        return function(stack)
    seconds = seconds_of(stack, cost)
    check_seconds(seconds, doing)
    batch, count = stack.shape[:-2], math.prod(stack.shape[:-2])
    step = max(int(LOOK_AFTER / (_OF_CALL + seconds * 1e9)), 1)
    if step >= count:
        return function(stack)
    flat = stack.reshape(count, *stack.shape[-2:])
    starts = in_time(range(0, count, step), SLOW, doing)
    parts = [function(flat[start : start + step]) for start in starts]
    if not isinstance(parts[0], tuple):
        return _joined(parts, batch)
    return tuple([_joined(some, batch) for some in zip(*parts, strict=True)])


def _joined(parts: Any, batch: tuple[int, ...]) -> Any:
    whole = np.concatenate(parts)
    return whole.reshape(*batch, *whole.shape[1:])


def seconds_of(stack: Any, cost: float) -> float:
    """The least seconds that a function takes for one matrix of a stack."""
    rows, columns = stack.shape[-2:]
    parts = 2 if stack.dtype.kind == "c" else 1
    return float(parts * cost * rows * columns * min(rows, columns) * 1e-9)
