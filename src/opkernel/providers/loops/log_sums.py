"""The loop of CumulativeLogsumexp, each of whose elements depends on the one before it."""

import math

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.work_clock import array_work, in_time
from opkernel.ops.math import scans
from opkernel.ops.registration import WIDE_FLOATS
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array

_AT_ONCE = 1 << 20
"""About so many elements are added in one call."""


def _by_numpy(x: Array, totals: Array, out: Array) -> None:
    total = totals
    for i in in_time(range(x.shape[1]), array_work(total.size, 12)):
        total = scans.log_add_exp(total, x[:, i], np)
        out[:, i] = total
    totals[...] = total


@loop(otherwise=_by_numpy)
def add_some(x: Array, totals: Array, out: Array) -> None:
    """Add some steps of rows, [rows, steps, columns], to their totals, [rows, columns]."""
    for row in range(x.shape[0]):
        for i in range(x.shape[1]):
            for column in range(x.shape[2]):
                total, element = totals[row, column], x[row, i, column]
                high = max(total, element)
                low = min(total, element)
                if high != -np.inf:
                    high = np.log1p(np.exp(low - high)) + high
                totals[row, column] = out[row, i, column] = high


def scan_log_sum_exp(x: Array, axis: int) -> Array:
    """As `scans.scan_log_sum_exp`."""
    rows, columns = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    flat = np.ascontiguousarray(x).reshape(rows, x.shape[axis], columns)
    out, totals = np.empty_like(flat), np.full((rows, columns), -np.inf, x.dtype)
    step = max(_AT_ONCE // (rows * columns), 1)
    for at in range(0, flat.shape[1], step):
        check_time("adding exponentials")
        add_some(flat[:, at : at + step], totals, out[:, at : at + step])
    return out.reshape(x.shape)


scans.register_cumulative_logsumexp(scan_log_sum_exp, WIDE_FLOATS, LOOPS.kernels)
