"""The loop that finds equal rows, by their hashes in a table."""

import numpy as np

from opkernel.device.budget import check_time
from opkernel.ops.array import unique_and_bounds
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array

_AT_ONCE = 1 << 22
"""About so many elements are looked at in one call."""
_generator = np.random.default_rng()  # nobody can prepare rows with the same hash


def _number_all(
    rows: Array, weights: Array, table: Array, firsts: Array, numbers: Array, state: Array
) -> None:
    numbers[:] = unique_and_bounds.numbers_of_rows(rows)
    state[0] = len(rows)


@loop(otherwise=_number_all)
def number_some(
    rows: Array, weights: Array, table: Array, firsts: Array, numbers: Array, state: Array
) -> None:
    """Number some rows; the state is how many are done, and how many numbers there are."""
    at, count = state
    last = min(at + _AT_ONCE // rows.shape[1] + 1, len(rows))
    while at < last:
        found = np.uint64(0)
        for k in range(rows.shape[1]):
            bits = np.uint64(rows[at, k])
            found += (bits ^ bits >> np.uint64(32)) * weights[k]
        place = np.int64(found >> np.uint64(33)) & (table.size - 1)
        while table[place] >= 0:
            first = firsts[table[place]]
            k = 0
            while k < rows.shape[1] and rows[first, k] == rows[at, k]:
                k += 1
            if k == rows.shape[1]:
                break
            place = (place + 1) & (table.size - 1)
        if table[place] < 0:
            table[place] = count
            firsts[count] = at
            count += 1
        numbers[at] = table[place]
        at += 1
    state[0], state[1] = at, count


def numbers_of_rows(rows: Array) -> Array:
    """As `unique_and_bounds.numbers_of_rows`."""
    count, width = rows.shape
    weights = _generator.integers(0, 1 << 64, width, np.uint64) | np.uint64(1)
    table = np.full(4 << count.bit_length(), -1)
    firsts, numbers, state = np.empty(count, np.int64), np.empty(count, np.int64), np.zeros(2, int)
    while state[0] < count:
        check_time("finding equal slices")
        number_some(rows, weights, table, firsts, numbers, state)
    return numbers


unique_and_bounds.register_unique_slices(numbers_of_rows, LOOPS.kernels)
