"""The order in which C++'s standard library leaves equal elements: TensorFlow's results show it where scores are equal.

The functions do what libstdc++'s algorithms do with a comparison that only looks at scores. Without equal scores, or with
few elements, they sort as NumPy does. Python's heapq moves the elements of a heap as libstdc++ does: a hole sinks to a
leaf, to the right where both children are equal, and the element rises from there.

Source: GCC libstdc++ bits/stl_heap.h, bits/stl_algo.h; TensorFlow core/lib/gtl/top_n.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.ops.stable_order import stable_order
from opkernel.types import Array

_SMALL = 16
"""std::sort sorts so few elements by insertion, which keeps the order of equal ones."""

_FEW = 512
"""So few elements are divided faster one by one than by functions of NumPy."""

_Element = TypeVar("_Element")


class _Entry(float):
    """What a heap holds: a score, which it is compared by, and whose score it is."""

    __slots__ = ("element",)
    element: Any


def _entry(score: float, element: Any) -> _Entry:
    entry = _Entry(score)
    entry.element = element
    return entry


def _popped(heap: list[_Entry]) -> list[Any]:
    """All elements of a heap, the lowest first; takes them out."""
    return [heappop(heap).element for _ in in_time(range(len(heap)))]


def priority_queue_order(scores: Array, part: int) -> Iterable[Array]:
    """The order in which a std::priority_queue gives elements that were pushed one after the other, highest score first.

    Args:
        scores: [elements]; no NaN.
        part: How many are taken at a time.

    Yields:
        The numbers of the elements that are next, int64 `[part]`.
    """
    order = stable_order(-scores)
    if not _has_equal(scores[order]):
        yield from (order[start : start + part] for start in range(0, len(order), part))
        return
    lowered: list[float] = (-scores).tolist()  # an object for each
    numbers = {id(score): number for number, score in enumerate(in_time(lowered))}
    heap: list[float] = []
    for score in in_time(lowered):
        heappush(heap, score)
    while heap:
        popped = range(min(part, len(heap)))
        yield np.array([numbers[id(heappop(heap))] for _ in popped], np.int64)


class TopN(Generic[_Element]):
    """The elements of the highest scores among those that are pushed, in the order in which gtl::TopN holds them.

    They stand as they were pushed until there are more than `limit`, and then in a heap, the lowest in front.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: list[_Entry] = []
        self._is_heap = self._has_lowest_in_front = False

    def __len__(self) -> int:
        return len(self._held)

    def push(self, score: float, element: _Element) -> None:
        """Add an element; of more than `limit` the lowest is dropped."""
        self.push_entry(_entry(score, element))

    def push_entry(self, entry: Any) -> None:
        """Add what has an `element`, and is less than what comes before it."""
        held = self._held
        if self._is_heap:
            if held[0] < entry:
                heappop(held)
                heappush(held, entry)
            return
        held.append(entry)
        if len(held) > self._limit:
            heapify(held)
            heappop(held)
            self._is_heap = True
        elif self._has_lowest_in_front and not held[0] < entry:
            held[0], held[-1] = held[-1], held[0]

    def lowest(self) -> float:
        """The lowest score."""
        held = self._held
        if not (self._is_heap or self._has_lowest_in_front):
            at = min(range(len(held)), key=held.__getitem__)
            held[0], held[at] = held[at], held[0]
            self._has_lowest_in_front = True
        return float(held[0])

    def give_up_lowest(self) -> _Element:
        """The element of the lowest score, which the next push drops."""
        self.lowest()
        element: _Element = self._held[0].element
        self._held[0] = _entry(-math.inf, element)
        return element

    def best(self, limit: int) -> list[_Element]:
        """The elements of the highest scores, at most `limit`, the highest first."""
        top = TopN[_Element](limit)
        for entry in self._held:
            top.push(entry, entry.element)
        return top.sorted()

    def sorted(self) -> list[_Element]:
        """All elements, the highest first; takes them out of a heap."""
        held = self._held
        if self._is_heap:
            return _popped(held)[::-1]
        order = sort_order(np.array(held, np.float64))
        return [held[i].element for i in order.tolist()]

    def unsorted(self) -> list[_Element]:
        """All elements, as they are held."""
        return [entry.element for entry in self._held]


Partition = Callable[[Array, Array, int, int], None]
"""A function as `partition_by_numpy`."""


def sort_order(
    scores: Array,
    first: int | None = None,
    partition: Partition | None = None,
) -> Array:
    """The order in which std::sort leaves elements, highest score first.

    Args:
        scores: [elements]; NaN is neither higher nor lower than any, and stands where the comparisons leave it.
        first: How many of the numbers are asked for; all if None.
        partition: As `partition_by_numpy`, which is the default.

    Returns:
        The numbers of the elements, int64 `[first]`.
    """
    first = len(scores) if first is None else min(first, len(scores))
    if np.isnan(scores).any():
        return np.array(_as_compared(scores.tolist())[:first], np.int64)
    order: Array = stable_order(-scores)
    if len(scores) > _SMALL and _has_equal(scores[order[: first + 1]]):
        order = np.arange(len(scores))
        depth = 2 * (len(order).bit_length() - 1)
        (partition or partition_by_numpy)(scores.copy(), order, first, depth)
        # Then elements are inserted into those before them, which keeps the order of equal ones.
        order = order[stable_order(-scores[order])]
    return order[:first]


def _as_compared(scores: list[float]) -> list[int]:
    """As `sort_order`, by the comparisons of std::sort alone."""
    count = len(scores)
    order = list(range(count))
    _partition_few([*scores], order, count, 2 * (count.bit_length() - 1))
    for end in range(1, count):
        element, hole = order[end], end
        if end < _SMALL and scores[element] > scores[order[0]]:
            hole = 0  # what comes before all goes there at once
        while hole > 0 and scores[element] > scores[order[hole - 1]]:
            hole -= 1
        order[hole : end + 1] = [element, *order[hole:end]]
    return order


def partition_by_numpy(scores: Array, order: Array, first: int, depth: int) -> None:
    """Divide elements, and their parts, until the parts are small that the first places are among.

    Args:
        scores: [elements], which are exchanged.
        order: [elements]: their numbers, exchanged with them.
        first: How many places count.
        depth: After so many divisions of a part it is sorted by a heap.
    """
    ranges = [(0, len(order), depth)]
    for begin, end, depth in in_time(_taken_out(ranges)):
        part = slice(begin, end)
        if end - begin <= _FEW:
            values, numbers = scores[part].tolist(), order[part].tolist()
            _partition_few(values, numbers, first - begin, depth)
            order[part] = numbers
        elif begin < first and depth == 0:
            order[part] = _heap_sorted(scores[part].tolist(), order[part].tolist())
        elif begin < first:
            _median_to_front(scores[part], order[part])
            cut = begin + _divide(scores[part], order[part])
            ranges += (begin, cut, depth - 1), (cut, end, depth - 1)


def _taken_out(
    ranges: list[tuple[int, int, int]],
) -> Iterable[tuple[int, int, int]]:
    while ranges:
        yield ranges.pop()


def _median_to_front(scores: Any, order: Any) -> None:
    """Exchange the first element and the median of three others."""
    at_a, at_b, at_c = 1, len(scores) // 2, len(scores) - 1
    a, b, c = scores[at_a], scores[at_b], scores[at_c]
    if a > b:
        median = at_b if b > c else at_c if a > c else at_a
    else:
        median = at_a if a > c else at_c if b > c else at_b
    scores[0], scores[median] = scores[median], scores[0]
    order[0], order[median] = order[median], order[0]


def _divide(scores: Array, order: Array) -> int:
    """Exchange elements so that those come first that are not below the first one, and the others after a cut.

    Both sides have elements that are equal to it: two places move towards each other, and what they stop at is exchanged.
    """
    pivot = scores[0]
    low = 1 + np.flatnonzero(scores[1:] <= pivot)
    high = np.flatnonzero(scores >= pivot)[::-1]
    both = min(len(low), len(high))
    count = int(np.count_nonzero(low[:both] < high[:both]))
    left, right = low[:count], high[:count]
    for one in (scores, order):
        one[left], one[right] = one[right], one[left]
    stops: list[int] = [*low[count : count + 1].tolist(), *right[-1:].tolist()]
    return min(stops)


def _partition_few(scores: list[float], order: list[int], first: int, depth: int) -> None:
    """As `partition_by_numpy`, element by element."""
    if len(scores) <= _SMALL or first <= 0:
        return
    if depth == 0:
        order[:] = _heap_sorted(scores, order)
        return
    _median_to_front(scores, order)
    cut = _divide_few(scores, order)
    left, right = order[:cut], order[cut:]
    _partition_few(scores[:cut], left, first, depth - 1)
    _partition_few(scores[cut:], right, first - cut, depth - 1)
    order[:] = left + right


def _divide_few(scores: list[float], order: list[int]) -> int:
    """As `_divide`."""
    pivot, low, high = scores[0], 1, len(scores)
    while True:
        while scores[low] > pivot:
            low += 1
        high -= 1
        while pivot > scores[high]:
            high -= 1
        if low >= high:
            return low
        scores[low], scores[high] = scores[high], scores[low]
        order[low], order[high] = order[high], order[low]
        low += 1


def _heap_sorted(scores: list[float], order: list[int]) -> list[int]:
    """A range that pivots divide badly, sorted as std::partial_sort does."""
    heap = [_entry(score, number) for score, number in zip(scores, order, strict=True)]
    heapify(heap)
    return _popped(heap)[::-1]


def _has_equal(falling: Array) -> bool:
    return bool((falling[1:] == falling[:-1]).any())
