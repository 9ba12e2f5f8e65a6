"""The loop of IsotonicRegression, whose segments take in those before them."""

import numpy as np

from opkernel.ops.math import isotonic_regression
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array


@loop(otherwise=isotonic_regression.segments_by_numpy)
def segments_by_loop(rows: Array) -> tuple[Array, Array]:
    """A segment takes in those before it that are smaller."""
    output = np.empty_like(rows)
    segments = np.empty(rows.shape, np.int32)
    length = rows.shape[1]
    means, sums = np.empty(length), np.empty(length)
    starts = np.empty(length + 1, np.int64)
    for row in range(rows.shape[0]):
        count = 0
        for i in range(length):
            mean = total = rows[row, i]
            start = i
            while count and means[count - 1] < mean:
                count -= 1
                total += sums[count]
                start = starts[count]
                mean = total / (i + 1 - start)
            means[count], sums[count], starts[count] = mean, total, start
            count += 1
        starts[count] = length
        for number in range(count):
            for i in range(starts[number], starts[number + 1]):
                output[row, i] = means[number]
                segments[row, i] = number
    return output, segments


isotonic_regression.register_isotonic_regression(segments_by_loop, LOOPS.kernels)
