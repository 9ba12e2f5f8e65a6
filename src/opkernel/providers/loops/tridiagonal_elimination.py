"""The loops of TridiagonalSolve and BandedTriangularSolve: elimination in one matrix after the other."""

from typing import Any

import numpy as np

from opkernel.ops.linalg import triangular_and_tridiagonal, tridiagonal_elimination
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array


@part_of_loops
def _clear_below_all(diagonals: Array, upper: Array, x: Array, partial_pivoting: bool) -> bool:
    """Make an upper triangle of three diagonals, and say whether it is singular."""
    size, sides = x.shape
    main, above, beyond = upper
    main[:], above[:], beyond[:] = diagonals[1], diagonals[0], 0
    above[size - 1] = 0
    for row in range(size - 1):
        low, low_main, low_above = diagonals[2, row + 1], main[row + 1], above[row + 1]
        if partial_pivoting and abs(low) > abs(main[row]):
            low, main[row] = main[row], low
            low_main, above[row] = above[row], low_main
            low_above, beyond[row] = beyond[row], low_above
            for side in range(sides):
                x[row, side], x[row + 1, side] = x[row + 1, side], x[row, side]
        if main[row] == 0:
            return True
        factor = low / main[row]
        main[row + 1] = low_main - factor * above[row]
        above[row + 1] = low_above - factor * beyond[row]
        for side in range(sides):
            x[row + 1, side] -= factor * x[row, side]
    return bool(main[size - 1] == 0)


@loop(otherwise=tridiagonal_elimination.eliminate_by_numpy)
def eliminate(diagonals: Array, rhs: Array, partial_pivoting: bool, of_singular: Any) -> Array:
    """As `Elimination`."""
    result = rhs.copy()
    size, sides = rhs.shape[1:]
    upper = np.empty((3, size), rhs.dtype)
    main, above, beyond = upper
    for number in range(rhs.shape[0]):
        x = result[number]
        if _clear_below_all(diagonals[number], upper, x, partial_pivoting):
            x[:] = of_singular
            continue
        for row in range(size - 1, -1, -1):
            for side in range(sides):
                rest = x[row, side]
                if row + 1 < size:
                    rest -= above[row] * x[row + 1, side]
                if row + 2 < size:
                    rest -= beyond[row] * x[row + 2, side]
                x[row, side] = rest / main[row]
    return result


@part_of_loops
def _subtract(row: Array, factor: Any, other: Array) -> None:
    for side in range(row.size):
        row[side] -= factor * other[side]


@loop(otherwise=triangular_and_tridiagonal.substitute_by_numpy)
def substitute(bands: Array, x: Array, lower: bool, is_adjoint: bool) -> None:
    """Row by row; of adjoints column by column."""
    systems, size = x.shape[:2]
    count = bands.shape[1]
    for n in range(systems):
        for turn in range(size):
            i = turn if lower != is_adjoint else size - 1 - turn
            for k in range(count):
                offset = count - 1 - k if not is_adjoint else k  # the diagonal last, or first
                j = i - offset if lower else i + offset
                if not 0 <= j < size:
                    continue
                factor = bands[n, offset if lower else count - 1 - offset, i]
                if is_adjoint:
                    factor = np.conj(factor)
                if not offset:
                    x[n, i] /= factor
                elif is_adjoint:
                    _subtract(x[n, j], factor, x[n, i])
                else:
                    _subtract(x[n, i], factor, x[n, j])


triangular_and_tridiagonal.register_banded_solve(substitute, LOOPS.kernels)
triangular_and_tridiagonal.register_tridiagonal_solve(eliminate, LOOPS.kernels)
