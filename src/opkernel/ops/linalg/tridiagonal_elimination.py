"""Gaussian elimination in stacks of tridiagonal matrices.

Source: TensorFlow core/kernels/linalg/tridiagonal_solve_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.types import Array

Elimination = Callable[[Array, Array, bool, Any], Array]
"""A function of the diagonals above, at and below the main one, [m, 3, n], of right sides, [m, n, k], and of whether rows
change places: the solutions, [m, n, k]; the last argument where the matrix is singular."""


def eliminate_by_numpy(
    diagonals: Array, rhs: Array, partial_pivoting: bool, of_singular: Any
) -> Array:
    """In all matrices at once, row by row from above."""
    above, main, below = np.moveaxis(diagonals, 0, -1).copy()  # [n, m]
    above[-1] = 0
    upper = (main, above, np.zeros_like(above))
    rest = np.moveaxis(rhs, 0, 1).copy()  # [n, m, k]
    is_singular = np.zeros(len(rhs), bool)
    for row in in_time(range(len(main)), SLOW):
        if row + 1 < len(main):
            _clear_below(row, upper, below[row + 1], rest, partial_pivoting)
        is_singular |= main[row] == 0
    x = _substituted(upper, rest)
    x[:, is_singular] = of_singular
    return np.moveaxis(x, 1, 0)


def _clear_below(
    row: int, upper: tuple[Array, ...], below: Array, rest: Array, partial_pivoting: bool
) -> None:
    """Clear the elements below the diagonal, after a swap of the rows where that is the greater one."""
    kept: list[Any] = [diagonal[row] for diagonal in upper]
    other: list[Any] = [below, upper[0][row + 1], upper[1][row + 1]]
    rhs, following = rest[row], rest[row + 1]
    swap = np.abs(other[0]) > np.abs(kept[0]) if partial_pivoting else np.zeros(len(below), bool)
    if swap.any():
        kept, other = (
            [np.where(swap, b, a) for a, b in pairs]
            for pairs in (zip(kept, other, strict=True), zip(other, kept, strict=True))
        )
        for diagonal, values in zip(upper, kept, strict=True):
            diagonal[row] = values
        first, second = rhs[swap], following[swap]
        rhs[swap], following[swap] = second, first
    factor = other[0] / kept[0]
    upper[0][row + 1] = other[1] - factor * kept[1]
    upper[1][row + 1] = other[2] - factor * kept[2]
    following -= factor[:, None] * rhs


def _substituted(upper: tuple[Array, ...], x: Array) -> Array:
    main, above, beyond = upper
    for row in in_time(range(len(x) - 1, -1, -1), SLOW):
        if row + 1 < len(x):
            x[row] -= above[row, :, None] * x[row + 1]
        if row + 2 < len(x):
            x[row] -= beyond[row, :, None] * x[row + 2]
        x[row] /= main[row, :, None]
    return x
