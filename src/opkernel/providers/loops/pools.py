"""Loops that pool images by windows of different sizes."""

from opkernel.ops.nn import fractional_pool
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array


@loop(otherwise=fractional_pool.sum_of_windows)
def sum_of_windows(image: Array, rows: Array, columns: Array, out: Array) -> None:
    """Window by window, row by row; `out` begins with 0."""
    for i in range(rows.shape[1]):
        for j in range(columns.shape[1]):
            for y in range(rows[0, i], rows[1, i] + 1):
                for x in range(columns[0, j], columns[1, j] + 1):
                    for d in range(image.shape[2]):
                        out[i, j, d] += image[y, x, d]


@loop(otherwise=fractional_pool.largest_of_windows)
def largest_of_windows(image: Array, rows: Array, columns: Array, out: Array) -> None:
    """Window by window; `out` begins with the lowest number."""
    for i in range(rows.shape[1]):
        for j in range(columns.shape[1]):
            for y in range(rows[0, i], rows[1, i] + 1):
                for x in range(columns[0, j], columns[1, j] + 1):
                    for d in range(image.shape[2]):
                        here, best = image[y, x, d], out[i, j, d]
                        out[i, j, d] = max(best, here)  # compiled without a branch


fractional_pool.register_fractional_pools(
    sum_of_windows, largest_of_windows, registry=LOOPS.kernels
)
