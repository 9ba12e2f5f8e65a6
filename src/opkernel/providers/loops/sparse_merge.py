"""The loop that merges the entries of two sparse tensors: their rows of indices are compared as they stand."""

import numpy as np

from opkernel.device.budget import check_time
from opkernel.ops.sparse import merge
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array

_AT_ONCE = 1 << 22
"""About so many indices are compared in one call."""


@part_of_loops
def _order(a: Array, b: Array, i: int, j: int) -> int:
    """Below 0 if row `i` comes before row `j`, above 0 if it comes behind, 0 if they are the same."""
    for k in range(a.shape[1]):
        if a[i, k] != b[j, k]:
            return -1 if a[i, k] < b[j, k] else 1
    return 0


def _merge_all(a: Array, b: Array, from_a: Array, from_b: Array, state: Array) -> None:
    found = merge.merged_rows(a, b)
    count = len(found[0])
    from_a[:count], from_b[:count] = found
    state[:] = len(a), len(b), count


@loop(otherwise=_merge_all)
def merge_some(a: Array, b: Array, from_a: Array, from_b: Array, state: Array) -> None:
    """Walk through some rows; the state is how many of each matrix are done, and how many entries were found."""
    i, j, count = state
    last = count + max(_AT_ONCE // (a.shape[1] + 1), 1)
    while count < last and (i < len(a) or j < len(b)):
        if i == len(a):
            order = 1
        elif j == len(b):
            order = -1
        else:
            order = _order(a, b, i, j)
        from_a[count] = i if order <= 0 else -1
        from_b[count] = j if order >= 0 else -1
        i += order <= 0
        j += order >= 0
        count += 1
    state[0], state[1], state[2] = i, j, count


def merged_rows(a: Array, b: Array) -> tuple[Array, Array]:
    """As `merge.merged_rows`."""
    found = np.empty((2, len(a) + len(b)), np.int64)
    state = np.zeros(3, np.int64)
    while state[0] < len(a) or state[1] < len(b):
        check_time("merging sparse tensors")
        merge_some(a, b, found[0], found[1], state)
    return found[0, : state[2]], found[1, : state[2]]


merge.register_merges(merged_rows, LOOPS.kernels)
