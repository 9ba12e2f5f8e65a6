"""Products of matrices that look at the clock: nothing interrupts NumPy, so that large ones are cut into parts."""

import math
from typing import Any

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.device.work_clock import SLOW, in_time

__all__ = ["matmul_in_parts"]

_PART, _PART_OF_OTHERS = 1 << 28, 1 << 26
"""Multiplications in a part of floats, for which there is BLAS, and of other numbers."""


def matmul_in_parts(x: Any, y: Any) -> Any:
    """The products of stacks of matrices `[..., m, k]` by `[..., k, n]`; whole where no deadline holds."""
    budget = current_budget()
    if budget is None or budget.deadline is None:
        return np.matmul(x, y)
    (rows, terms), columns = x.shape[-2:], y.shape[-1]
    batch, work = np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), rows * terms * columns
    part = _PART if x.dtype.kind in "fc" else _PART_OF_OTHERS
    if math.prod(batch) * work <= part:
        return np.matmul(x, y)
    result = np.empty((*batch, rows, columns), np.result_type(x, y))
    left = np.broadcast_to(x, (*batch, rows, terms))
    right = np.broadcast_to(y, (*batch, terms, columns))
    for at in _parts(batch, rows, part, work):
        factor = right[at[:-1]] if work > part else right[at]
        np.matmul(left[at], factor, out=result[at])
    return result


def _parts(batch: tuple[int, ...], rows: int, part: int, work: int) -> Any:
    """Where to cut: between matrices or, if a matrix is a large part, between its rows."""
    axes = batch if work <= part else (*batch, rows)
    step = max(part * (rows if work > part else 1) // max(work, 1), 1)
    pieces = [slice(start, start + step) for start in range(0, axes[-1], step)]
    places = ((*at, piece) for at in np.ndindex(*axes[:-1]) for piece in pieces)
    return in_time(places, SLOW, "multiplying matrices")
