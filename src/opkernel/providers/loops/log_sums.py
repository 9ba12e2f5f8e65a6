"""The loop of CumulativeLogsumexp, each of whose elements depends on the one before it."""

from functools import partial

import numpy as np

from opkernel.ops.math import scans
from opkernel.ops.registration import WIDE_FLOATS
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array


@loop(otherwise=scans.add_exponentials)
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


scan_log_sum_exp = partial(scans.scan_in_parts, add_some)

scans.register_cumulative_logsumexp(scan_log_sum_exp, WIDE_FLOATS, LOOPS.kernels)
