"""Loops over the windows of images: of different sizes, for the places of the largest elements, for dilation."""

import numpy as np

from opkernel.ops.nn import dilation2d, fractional_pool, max_pool
from opkernel.ops.registration import INTEGERS, WIDE_FLOATS
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array

_TYPES = (*WIDE_FLOATS, *INTEGERS)


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


@loop(otherwise=fractional_pool.spread_over_windows)
def spread_over_windows(parts: Array, rows: Array, columns: Array, total: Array) -> None:
    """Window by window."""
    for n, i, j in np.ndindex(parts.shape[:3]):
        for y in range(rows[0, i], rows[1, i] + 1):
            for x in range(columns[0, j], columns[1, j] + 1):
                for d in range(parts.shape[3]):
                    total[n, y, x, d] += parts[n, i, j, d]


@loop(otherwise=fractional_pool.give_to_largest)
def give_to_largest(
    value: Array, y: Array, grad: Array, rows: Array, columns: Array, total: Array
) -> bool:
    """Window by window."""
    for n, i, j, d in np.ndindex(grad.shape):
        row, column = rows[0, i], columns[0, j]
        best = value[n, row, column, d]
        for h in range(rows[0, i], rows[1, i] + 1):
            for w in range(columns[0, j], columns[1, j] + 1):
                if value[n, h, w, d] > best:
                    best, row, column = value[n, h, w, d], h, w
        if best != y[n, i, j, d]:
            return False
        total[n, row, column, d] += grad[n, i, j, d]
    return True


@loop(otherwise=max_pool.find_largest)
def find_largest(x: Array, places: Array, values: Array, indices: Array) -> None:
    """The elements of a window one after the other; each of all channels."""
    _, height, width, depth = x.shape
    for n, i, j in np.ndindex(values.shape[:3]):
        top = i * places[1, 0] - places[2, 0]
        left = j * places[1, 1] - places[2, 1]
        is_first = True
        for row in range(max(top, 0), min(top + places[0, 0], height)):
            for column in range(max(left, 0), min(left + places[0, 1], width)):
                place = (row * width + column) * depth
                for d in range(depth):
                    if is_first or values[n, i, j, d] < x[n, row, column, d]:
                        values[n, i, j, d] = x[n, row, column, d]
                        indices[n, i, j, d] = place + d
                is_first = False


@part_of_loops
def _largest_sum(
    image: Array, filters: Array, rates: Array, top: int, left: int, d: int
) -> tuple[int, int]:
    """The row and the column of the filter that give the first of the largest sums of a window, or -1."""
    best = np.finfo(image.dtype).min
    found = -1, -1
    for r in range(filters.shape[0]):
        row = top + r * rates[0]
        if not 0 <= row < image.shape[0]:
            continue
        for c in range(filters.shape[1]):
            column = left + c * rates[1]
            if 0 <= column < image.shape[1]:
                total = image[row, column, d] + filters[r, c, d]
                if total > best:
                    best, found = total, (r, c)
    return found


@loop(otherwise=dilation2d.share_with_input)
def share_with_input(x: Array, filters: Array, gradient: Array, places: Array, out: Array) -> None:
    """Window by window."""
    rates = places[1]
    count, height, width, depth = gradient.shape
    for n in range(count):
        image, shares = x[n], out[n]
        for i in range(height):
            top = i * places[0, 0] - places[2, 0]
            for j in range(width):
                left = j * places[0, 1] - places[2, 1]
                for d in range(depth):
                    r, c = _largest_sum(image, filters, rates, top, left, d)
                    row, column = max(top, 0), max(left, 0)
                    if r >= 0:
                        row, column = top + r * rates[0], left + c * rates[1]
                    if row < x.shape[1] and column < x.shape[2]:
                        shares[row, column, d] += gradient[n, i, j, d]


@loop(otherwise=dilation2d.share_with_filters)
def share_with_filters(
    x: Array, filters: Array, gradient: Array, places: Array, out: Array
) -> None:
    """Window by window."""
    rates = places[1]
    count, height, width, depth = gradient.shape
    for n in range(count):
        image = x[n]
        for i in range(height):
            top = i * places[0, 0] - places[2, 0]
            for j in range(width):
                left = j * places[0, 1] - places[2, 1]
                for d in range(depth):
                    r, c = _largest_sum(image, filters, rates, top, left, d)
                    out[max(r, 0), max(c, 0), d] += gradient[n, i, j, d]


fractional_pool.register_fractional_pools(
    sum_of_windows, largest_of_windows, registry=LOOPS.kernels
)
fractional_pool.register_fractional_pool_gradients(
    spread_over_windows, give_to_largest, registry=LOOPS.kernels
)
max_pool.register_max_pool_with_argmax(find_largest, types=_TYPES, registry=LOOPS.kernels)
dilation2d.register_dilation2d_gradients(
    share_with_input, share_with_filters, types=WIDE_FLOATS, registry=LOOPS.kernels
)
