"""Tridiagonal systems whose matrices may be singular: pivots near 0 are moved, as LAPACK's xLAGTF and xLAGTS do.

Source: TensorFlow core/kernels/linalg/tridiagonal_solve_op.cc, its elimination with `perturb_singular`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time


def perturbed_solution(diagonals: Any, rhs: Any) -> Any:
    """The x of [..., 3, n] diagonals, above, at and below the main one, and [..., n, k] right sides, n > 0."""
    size = rhs.shape[-2]
    stack = [diagonals.reshape(-1, 3, size)[:, i] for i in range(3)]
    with np.errstate(all="ignore"):
        upper = _Upper(stack, rhs.reshape(-1, *rhs.shape[-2:]))
        for row in in_time(range(size - 1), SLOW):
            upper.eliminate(row)
        return upper.substituted().reshape(rhs.shape)


def _larger(first: Any, second: Any) -> Any:
    """The larger of both by C++'s rule: a NaN that comes second does not count."""
    return np.where(first < second, second, first)


class _Upper:
    """The upper triangles that are left by an elimination from above, in all matrices of a stack at once.

    A row is swapped with the next one if its pivot is the smaller one relative to the sums of their elements.
    """

    def __init__(self, diagonals: list[Any], rhs: Any) -> None:
        self._above, self._main, self._below = diagonals
        self._rhs = rhs
        self._size = rhs.shape[1]
        self._u = [self._main.copy(), self._above.copy(), np.zeros_like(self._main)]
        self._x = rhs.copy()
        first, second = (np.abs(diagonal[:, 0]) for diagonal in self._u[:2])
        self._scale = first + second
        self._largest = _larger(first, second) if self._size > 1 else first

    def eliminate(self, k: int) -> None:
        """Clear the element below the diagonal in column k."""
        is_last = k == self._size - 2
        main, above, beyond = self._u
        below, next_main, next_above = (
            diagonal[:, k + 1] for diagonal in (self._below, self._main, self._above)
        )
        scale = np.abs(below) + np.abs(next_main)
        scale = scale if is_last else scale + np.abs(next_above)
        pivot, right = main[:, k].copy(), above[:, k].copy()
        own = np.where(pivot == 0, 0, np.abs(pivot) / self._scale)
        is_clear = below == 0
        stays = is_clear | (np.abs(below) / scale <= own)
        factor = np.where(stays, np.where(is_clear, 0, below / pivot), pivot / below)
        stay, swap = stays, ~stays
        main[:, k] = np.where(stay, pivot, below)
        above[:, k] = np.where(stay, right, next_main)
        beyond[:, k] = np.where(swap & (not is_last), next_above, 0)
        eliminated = np.where(stay, next_main - factor * right, right - factor * next_main)
        main[:, k + 1] = np.where(is_clear, next_main, eliminated)
        above[:, k + 1] = np.where(stay, next_above, -factor * next_above)
        self._eliminate_right_sides(k, factor[:, None], is_clear[:, None], swap[:, None])
        self._scale = np.where(stay, scale, self._scale)
        for diagonal in [] if is_last else self._u:
            self._largest = _larger(self._largest, np.abs(diagonal[:, k]))

    def _eliminate_right_sides(self, k: int, factor: Any, is_clear: Any, swap: Any) -> None:
        here, there = self._x[:, k].copy(), self._rhs[:, k + 1]
        moved = np.where(swap, here - factor * there, there - factor * here)
        self._x[:, k] = np.where(swap, there, here)
        self._x[:, k + 1] = np.where(is_clear, there, moved)

    def substituted(self) -> Any:
        """The solutions, from below."""
        main, above, beyond = self._u
        last = self._size - 1
        tolerance = np.finfo(main.dtype).eps * _larger(self._largest, np.abs(main[:, last]))
        x = self._x
        for k in in_time(range(last, -1, -1), SLOW):
            row = x[:, k].copy()
            if k < last:
                row = row - above[:, k, None] * x[:, k + 1]
            if k + 1 < last:
                row = row - beyond[:, k, None] * x[:, k + 2]
            pivot, row = _perturbed(tolerance, main[:, k].copy(), row)
            x[:, k] = row * (1 / pivot)[:, None]
        return x


def _perturbed(tolerance: Any, pivot: Any, row: Any) -> tuple[Any, Any]:
    """Pivots moved from 0, or scaled with their rows, until neither their inverse nor a quotient overflows."""
    least = np.finfo(pivot.dtype).tiny
    greatest = 1 / least
    step = np.copysign(_larger(np.abs(tolerance), least), pivot.real)
    most = np.abs(row).max(axis=1, initial=0)
    is_moved = np.abs(pivot) < 1
    while is_moved.any():
        size = np.abs(pivot)
        is_tiny = size < least
        is_scaled = is_moved & is_tiny & (size != 0) & ~(most * least > size)
        overflows = np.where(is_tiny, True, most > size * greatest)
        is_moved &= ~is_scaled & overflows
        pivot = np.where(is_moved, pivot + step, pivot)
        step = np.where(is_moved, 2 * step, step)
        pivot = np.where(is_scaled, pivot * greatest, pivot)
        row = np.where(is_scaled[:, None], row * greatest, row)
        is_moved &= np.abs(pivot) < 1
    return pivot, row
