"""The order in which C++'s standard library leaves equal elements: TensorFlow's results show it where scores are equal.

The functions do what libstdc++'s algorithms do with a comparison that only looks at scores. Without equal scores, or with
few elements, they sort as NumPy does.

Source: GCC libstdc++ bits/stl_heap.h, bits/stl_algo.h; TensorFlow core/lib/gtl/top_n.h.
"""

from __future__ import annotations

import math
from typing import Any, Generic, TypeVar

import numpy as np

from opkernel.ops.stable_order import stable_order
from opkernel.types import Array

_SMALL = 16
"""std::sort sorts so few elements by insertion, which keeps the order of equal ones."""

_Element = TypeVar("_Element")
_Heap = list[tuple[float, _Element]]
"""Scores, with their elements or the numbers of these."""


def priority_queue_order(scores: Array) -> Array:
    """The order in which a std::priority_queue gives elements that were pushed one after the other, highest score first.

    Args:
        scores: [elements]; no NaN.

    Returns:
        The numbers of the elements, int64 `[elements]`.
    """
    if not _has_equal(scores):
        return _falling(scores)
    heap: _Heap[int] = []
    for number, score in enumerate(scores.tolist()):
        heap.append((score, number))
        _rise(heap, number, 0, (score, number))
    return np.array([_pop(heap) for _ in range(len(heap))], np.int64)


def _rise(heap: _Heap[_Element], hole: int, top: int, element: tuple[float, _Element]) -> None:
    """Put an element into a heap, at a hole or above it, but not above `top`."""
    while hole > top and heap[(hole - 1) // 2][0] < element[0]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = element


def _sink(heap: _Heap[_Element], top: int) -> None:
    """Make a heap of what is at and under a place, of which only the top may be out of place.

    The hole sinks to a leaf, and the element rises from there.
    """
    element, hole, count = heap[top], top, len(heap)
    while (child := 2 * hole + 2) < count:
        if heap[child][0] < heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if child == count:
        heap[hole] = heap[child - 1]
        hole = child - 1
    _rise(heap, hole, top, element)


def _pop(heap: _Heap[_Element]) -> _Element:
    """The first element of a heap, which is taken out."""
    (_, first), last = heap[0], heap.pop()
    if heap:
        heap[0] = last
        _sink(heap, 0)
    return first


def _make_heap(heap: _Heap[Any]) -> None:
    for top in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, top)


class TopN(Generic[_Element]):
    """The elements of the highest scores among those that are pushed, in the order in which gtl::TopN holds them.

    They stand as they were pushed until there are more than `limit`, and then in a heap, the lowest in front.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: _Heap[_Element] = []  # by falling score
        self._is_heap = self._has_lowest_in_front = False

    def __len__(self) -> int:
        return len(self._held)

    def push(self, score: float, element: _Element) -> None:
        """Add an element; of more than `limit` the lowest is dropped."""
        self.push_by(-score, element)

    def push_by(self, key: Any, element: _Element) -> None:
        """Add an element by a key of any kind: the higher score is the key that is less."""
        held, entry = self._held, (key, element)
        if self._is_heap:
            if key < held[0][0]:
                _pop(held)
                held.append(entry)
                _rise(held, len(held) - 1, 0, entry)
            return
        held.append(entry)
        if len(held) > self._limit:
            _make_heap(held)
            _pop(held)
            self._is_heap = True
        elif self._has_lowest_in_front and not key < held[0][0]:
            held[0], held[-1] = held[-1], held[0]

    def lowest(self) -> float:
        """The lowest score."""
        held = self._held
        if not (self._is_heap or self._has_lowest_in_front):
            at = max(range(len(held)), key=lambda i: held[i][0])
            held[0], held[at] = held[at], held[0]
            self._has_lowest_in_front = True
        return -held[0][0]

    def give_up_lowest(self) -> _Element:
        """The element of the lowest score, which the next push drops."""
        self.lowest()
        element = self._held[0][1]
        self._held[0] = (math.inf, element)
        return element

    def best(self, limit: int) -> list[_Element]:
        """The elements of the highest scores, at most `limit`, the highest first."""
        top = TopN[_Element](limit)
        for score, element in self._held:
            top.push(-score, element)
        return top.sorted()

    def sorted(self) -> list[_Element]:
        """All elements, the highest first; takes them out of a heap."""
        held = self._held
        if self._is_heap:
            return [_pop(held) for _ in range(len(held))][::-1]
        order = sort_order(np.array([-score for score, _ in held]))
        return [held[i][1] for i in order.tolist()]

    def unsorted(self) -> list[_Element]:
        """All elements, as they are held."""
        return [element for _, element in self._held]


def sort_order(scores: Array) -> Array:
    """The order in which std::sort leaves elements, highest score first.

    Args:
        scores: [elements]; NaN is neither higher nor lower than any, and stands where the comparisons leave it.

    Returns:
        The numbers of the elements, int64 `[elements]`.
    """
    ordered = not np.isnan(scores).any()
    if ordered and (len(scores) <= _SMALL or not _has_equal(scores)):
        return _falling(scores)
    order = list(range(len(scores)))
    _IntroSort(scores.tolist(), order).sort()
    return np.array(order, np.int64)


class _IntroSort:
    """std::sort of numbers of elements, by falling scores."""

    def __init__(self, scores: list[float], order: list[int]) -> None:
        self._scores, self._order = scores, order

    def sort(self) -> None:
        """Sort all."""
        count = len(self._order)
        self._partition(0, count, 2 * (count.bit_length() - 1))
        # What is left moves by less than a part's length.
        self._insert(1, min(_SMALL, count), is_first_part=True)
        self._insert(_SMALL, count)

    def _less(self, a: int, b: int) -> bool:
        return self._scores[a] > self._scores[b]

    def _insert(self, first: int, last: int, *, is_first_part: bool = False) -> None:
        """Sort the elements of a range into those before them; in the first part, what comes before all goes there at once."""
        order, less = self._order, self._less
        for end in range(first, last):
            element, hole = order[end], end
            if is_first_part and less(element, order[0]):
                order[: end + 1] = [element, *order[:end]]
                continue
            while hole > 0 and less(element, order[hole - 1]):
                order[hole] = order[hole - 1]
                hole -= 1
            order[hole] = element

    def _partition(self, first: int, last: int, depth: int) -> None:
        """Divide a range, and its parts, until they are small."""
        while last - first > _SMALL:
            if depth == 0:
                self._heap_sort(first, last)
                return
            depth -= 1
            cut = self._cut(first, last)
            self._partition(cut, last, depth)
            last = cut

    def _cut(self, first: int, last: int) -> int:
        """Where the elements that do not come before a pivot begin: the median of three goes to the first place."""
        order, less = self._order, self._less
        a, b, c = first + 1, first + (last - first) // 2, last - 1
        median = self._median(a, b, c)
        order[first], order[median] = order[median], order[first]
        pivot, low, high = order[first], first + 1, last
        while True:
            while less(order[low], pivot):
                low += 1
            high -= 1
            while less(pivot, order[high]):
                high -= 1
            if low >= high:
                return low
            order[low], order[high] = order[high], order[low]
            low += 1

    def _median(self, a: int, b: int, c: int) -> int:
        """The place of the median of three."""

        def less(i: int, j: int) -> bool:
            return self._less(self._order[i], self._order[j])

        if less(a, b):
            return b if less(b, c) else c if less(a, c) else a
        return a if less(a, c) else c if less(b, c) else b

    def _heap_sort(self, first: int, last: int) -> None:
        """Sort a range that pivots divide badly, as std::partial_sort does."""
        heap: _Heap[int] = [(-self._scores[number], number) for number in self._order[first:last]]
        _make_heap(heap)
        self._order[first:last] = [_pop(heap) for _ in range(len(heap))][::-1]


def _falling(scores: Array) -> Array:
    order: Array = stable_order(-scores)
    return order


def _has_equal(scores: Array) -> bool:
    return len(np.unique(scores)) < len(scores)
