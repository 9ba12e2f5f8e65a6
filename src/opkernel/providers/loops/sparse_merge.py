"""Loops that walk through the entries of sparse tensors side by side: rows of indices are compared as they stand."""

import numpy as np

from opkernel.device.budget import check_time
from opkernel.ops.sparse import merge, merge_gradients, parts
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


def _find_all(a: Array, b: Array, total: Array, of_a: Array, of_b: Array, state: Array) -> None:
    of_a[:], of_b[:] = merge_gradients.found_in_sum(a, b, total)
    state[2] = len(total)


@loop(otherwise=_find_all)
def find_some(a: Array, b: Array, total: Array, of_a: Array, of_b: Array, state: Array) -> None:
    """Walk through some rows; the state is how many of each matrix are done."""
    i, j, k = state
    for _ in range(max(_AT_ONCE // (a.shape[1] + 1), 1)):
        if i == len(a) and j == len(b):
            k = len(total)
        if k == len(total):
            break
        is_above = False
        if i < len(a):
            order = _order(a, total, i, k)
            if order == 0:
                of_a[i] = k
            is_above = order < 0
            i += order <= 0
        if j < len(b):
            order = _order(b, total, j, k)
            if order == 0:
                of_b[j] = k
            is_above = is_above or order < 0
            j += order <= 0
        k += not is_above
    state[0], state[1], state[2] = i, j, k


def found_in_sum(a: Array, b: Array, total: Array) -> tuple[Array, Array]:
    """As `merge_gradients.found_in_sum`."""
    found = np.full(len(a), -1), np.full(len(b), -1)
    state = np.zeros(3, np.int64)
    while state[2] < len(total):
        check_time("finding entries of sparse tensors")
        find_some(a, b, total, *found, state)
    return found


def _follow_all(rows: Array, wanted: Array, places: Array, state: Array) -> None:
    found = merge_gradients.followed(rows, wanted)
    places[: len(found)] = found
    state[:] = len(rows), len(found)


@loop(otherwise=_follow_all)
def follow_some(rows: Array, wanted: Array, places: Array, state: Array) -> None:
    """Walk through some rows; the state is how many are done, and how many of those wanted were found."""
    i, j = state
    last = min(i + max(_AT_ONCE // (rows.shape[1] + 1), 1), len(rows))
    while i < last and j < len(wanted):
        if _order(rows, wanted, i, j) == 0:
            places[j] = i
            j += 1
        i += 1
    state[0], state[1] = i, j


def followed(rows: Array, wanted: Array) -> Array:
    """As `merge_gradients.followed`."""
    places = np.empty(len(wanted), np.int64)
    state = np.zeros(2, np.int64)
    while state[0] < len(rows) and state[1] < len(wanted):
        check_time("finding entries of sparse tensors")
        follow_some(rows, wanted, places, state)
    return places[: state[1]]


def _all_within(indices: Array, start: Array, end: Array, found: Array) -> int:
    places = parts.rows_within(indices, start, end)
    found[: len(places)] = places
    return len(places)


@loop(otherwise=_all_within)
def some_within(indices: Array, start: Array, end: Array, found: Array) -> int:
    """Note the places of the rows within bounds; how many there are."""
    count = 0
    for i in range(len(indices)):
        k = 0
        while k < start.size and start[k] <= indices[i, k] < end[k]:
            k += 1
        if k == start.size:
            found[count] = i
            count += 1
    return count


def rows_within(indices: Array, start: Array, end: Array) -> Array:
    """As `parts.rows_within`."""
    found = np.empty(len(indices), np.int64)
    step = max(_AT_ONCE // (start.size + 1), 1)
    count = 0
    for first in range(0, len(indices), step):
        check_time("slicing sparse tensors")
        more = some_within(indices[first : first + step], start, end, found[count:])
        found[count : count + more] += first
        count += more
    return found[:count]


merge.register_merges(merged_rows, LOOPS.kernels)
merge_gradients.register_gradients(found_in_sum, followed, LOOPS.kernels)
parts.register_slices(rows_within, LOOPS.kernels)
