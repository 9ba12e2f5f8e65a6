"""Loops that pool images by windows of different sizes."""

import numpy as np

from opkernel.ops.nn import fractional_pool
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array


@loop(otherwise=fractional_pool.sum_of_windows)
def sum_of_windows(images: Array, rows: Array, columns: Array, out: Array) -> None:
    """Window by window, row by row; `out` begins with 0."""
    for n, i, j in np.ndindex(images.shape[0], rows.shape[1], columns.shape[1]):
        for y in range(rows[0, i], rows[1, i] + 1):
            for x in range(columns[0, j], columns[1, j] + 1):
                for d in range(images.shape[3]):
                    out[n, i, j, d] += images[n, y, x, d]


@loop(otherwise=fractional_pool.largest_of_windows)
def largest_of_windows(images: Array, rows: Array, columns: Array, out: Array) -> None:
    """Window by window; `out` begins with the lowest number."""
    for n, i, j in np.ndindex(images.shape[0], rows.shape[1], columns.shape[1]):
        for y in range(rows[0, i], rows[1, i] + 1):
            for x in range(columns[0, j], columns[1, j] + 1):
                for d in range(images.shape[3]):
                    here, best = images[n, y, x, d], out[n, i, j, d]
                    out[n, i, j, d] = max(best, here)  # compiled without a branch


fractional_pool.register_fractional_pools(
    sum_of_windows, largest_of_windows, registry=LOOPS.kernels
)
