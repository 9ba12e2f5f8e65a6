"""The loop that eliminates columns of real matrices, with the greatest element of each as its pivot.

Compiled code rounds the products and quotients of complex numbers in another way than NumPy, which can tell
whether a matrix is singular.
"""

import numpy as np

from opkernel.device.budget import check_time
from opkernel.ops.linalg import lu
from opkernel.ops.registration import WIDE_FLOATS
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array

_AT_ONCE = 1 << 23
"""About so many elements are updated in one call."""


def _all_by_numpy(panel: Array, order: Array, is_odd: Array, state: Array) -> None:
    panel[...] = lu.eliminate_by_numpy(panel, order, is_odd)
    state[0] = len(panel)


@loop(otherwise=_all_by_numpy)
def eliminate_some(panel: Array, order: Array, is_odd: Array, state: Array) -> None:
    """Eliminate some columns; the state is a matrix, and the columns of it that are done."""
    number, k, left = state[0], state[1], _AT_ONCE
    stack, rows, columns = panel.shape
    while number < stack and left > 0:
        if k == columns:
            number, k = number + 1, 0
            continue
        matrix = panel[number]
        greatest, pivot = -1.0, k
        for i in range(k, rows):
            weight = abs(matrix[i, k])
            if weight > greatest:  # which NaN is not
                greatest, pivot = weight, i
        if pivot != k:
            is_odd[number] = not is_odd[number]
            order[number, k], order[number, pivot] = order[number, pivot], order[number, k]
            for j in range(columns):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
        divisor = matrix[k, k]
        for i in range(k + 1, rows):
            if divisor != 0:
                matrix[i, k] /= divisor
            factor = matrix[i, k]
            for j in range(k + 1, columns):
                matrix[i, j] -= factor * matrix[k, j]
        left -= (rows - k) * (columns - k)
        k += 1
    state[0], state[1] = number, k


def eliminate(panel: Array, order: Array, is_odd: Array) -> Array:
    """As `lu.eliminate_by_numpy`."""
    panel, state = panel.copy(), np.zeros(2, np.int64)
    while state[0] < len(panel):
        check_time("eliminating columns")
        eliminate_some(panel, order, is_odd, state)
    return panel


lu.register_lu(lu.lu_kernels(eliminate), WIDE_FLOATS, LOOPS.kernels)
