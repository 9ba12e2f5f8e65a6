"""Loops that select boxes: of those that overlap, only the one with the best score."""

import numpy as np

from opkernel.ops import libstdcxx_order
from opkernel.ops.image import box_selection, combined_non_max_suppression, non_max_suppression
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array, DataType

_PAIRS = 1 << 20
"""About so many pairs of boxes are compared in one call."""
_SMALL = 16
"""std::sort divides no parts that are as small."""


@part_of_loops
def _overlap(corners: Array, a: int, b: int) -> np.float32:
    """As `box_overlap`, of one box with another."""
    if corners[4, a] <= 0 or corners[4, b] <= 0:
        return np.float32(0)
    height = min(corners[2, a], corners[2, b]) - max(corners[0, a], corners[0, b])
    width = min(corners[3, a], corners[3, b]) - max(corners[1, a], corners[1, b])
    intersection = max(height, np.float32(0)) * max(width, np.float32(0))
    return np.float32(intersection / (corners[4, a] + corners[4, b] - intersection))


@loop(otherwise=box_selection.select_part)
def select_part(
    corners: Array, in_turn: Array, selected: Array, count: int, iou_threshold: np.float32
) -> int:
    """Each candidate is compared with the boxes selected before it, until one overlaps too much."""
    for box in in_turn:
        if count == selected.size:
            break
        for other in range(count):
            if _overlap(corners, box, selected[other]) > iou_threshold:
                break
        else:
            selected[count] = box
            count += 1
    return count


@part_of_loops
def _comes_before(scores: Array, a: int, b: int) -> bool:
    return bool(scores[a] > scores[b] or (scores[a] == scores[b] and a < b))


@part_of_loops
def _sink(scores: Array, queue: Array, count: int) -> None:
    """Move the candidate in front of a heap to its place."""
    hole, child, box = 0, 1, queue[0, 0]
    while child < count:
        if child + 1 < count and _comes_before(scores, queue[0, child + 1], queue[0, child]):
            child += 1
        if not _comes_before(scores, queue[0, child], box):
            break
        queue[0, hole] = queue[0, child]
        hole, child = child, 2 * child + 1
    queue[0, hole] = box


@part_of_loops
def _reduced(
    corners: Array, scores: Array, box: int, others: Array, limits: Array
) -> tuple[np.float32, bool]:
    """The score of a box that overlaps with others selected, the last of them first; and whether it is dropped."""
    iou_threshold, score_threshold, sigma = limits
    score = scores[box]
    for number in range(others.size - 1, -1, -1):
        overlap = _overlap(corners, box, others[number])
        if sigma > 0:
            decay = np.float32(-0.5) / sigma
            score *= np.float32(np.exp(np.float64(decay * overlap * overlap)))
        elif overlap > iou_threshold:
            return score, True
        elif not overlap <= iou_threshold:
            score *= np.float32(0)
        if score <= score_threshold:
            return score, True
    return score, not score > score_threshold


@loop(otherwise=box_selection.select_softly)
def select_softly(
    corners: Array, scores: Array, queue: Array, selected: Array, state: Array, limits: Array
) -> bool:
    """The best of the queue is compared with the boxes selected since it was last compared."""
    waiting, count = state
    pairs = 0
    while waiting and count < selected.size and pairs < _PAIRS:
        box = queue[0, 0]
        pairs += count - queue[1, box] + 8
        score, is_dropped = _reduced(corners, scores, box, selected[queue[1, box] : count], limits)
        queue[1, box] = count
        if score == scores[box] or is_dropped:
            if not is_dropped:
                selected[count] = box
                count += 1
            waiting -= 1
            queue[0, 0] = queue[0, waiting]
        else:
            scores[box] = score
        _sink(scores, queue, waiting)
    state[0], state[1] = waiting, count
    return bool(not waiting or count == selected.size)


@part_of_loops
def _rise(heap: Array, scores: Array, hole: int, number: int) -> None:
    """Put an element into a heap at a hole, or above it."""
    while hole > 0 and scores[heap[(hole - 1) // 2]] < scores[number]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = number


@part_of_loops
def _push_all(heap: Array, scores: Array, score_threshold: np.float32) -> int:
    count = 0
    for number in range(scores.size):
        if scores[number] > score_threshold:
            _rise(heap, scores, count, number)
            count += 1
    return count


@part_of_loops
def _pop(heap: Array, scores: Array, count: int) -> None:
    """Take out the front: the hole sinks to a leaf, and the last element rises from there."""
    hole, child, count = 0, 1, count - 1
    while child < count:
        if child + 1 < count and scores[heap[child + 1]] >= scores[heap[child]]:
            child += 1
        heap[hole] = heap[child]
        hole, child = child, 2 * child + 1
    _rise(heap, scores, hole, heap[count])


@part_of_loops
def _select_from_queue(
    corners: Array, scores: Array, queue: Array, selected: Array, state: Array, limits: Array
) -> None:
    """The best of the queue is compared with the boxes selected before it, until one overlaps too much."""
    _, waiting, count = state
    if waiting < 0:
        waiting = _push_all(queue, scores, limits[1])
    pairs = 0
    while waiting and count < selected.size and pairs < _PAIRS:
        box = queue[0]
        pairs += count + 8
        for other in range(count):
            if _overlap(corners, box, selected[other]) > limits[0]:
                break
        else:
            selected[count] = box
            count += 1
        _pop(queue, scores, waiting)
        waiting -= 1
    state[1], state[2] = waiting, count


@loop(otherwise=box_selection.select_by_class)
def select_by_class(
    corners: Array, scores: Array, queue: Array, selected: Array, state: Array, limits: Array
) -> bool:
    """A class or a part of it; more classes if they have few boxes."""
    work = 0
    while state[0] < len(scores) and work < _PAIRS:
        number = state[0]
        own = corners[number if len(corners) > 1 else 0]
        _select_from_queue(own, scores[number], queue, selected[number], state, limits)
        work += scores.shape[1] + state[2] ** 2
        if state[1] == 0 or state[2] == selected.shape[1]:
            state[0], state[1], state[2] = number + 1, -1, 0
    return bool(state[0] >= len(scores))


@part_of_loops
def _exchange(scores: Array, order: Array, a: int, b: int) -> None:
    scores[a], scores[b] = scores[b], scores[a]
    order[a], order[b] = order[b], order[a]


@part_of_loops
def _median(scores: Array, at_a: int, at_b: int, at_c: int) -> int:
    a, b, c = scores[at_a], scores[at_b], scores[at_c]
    if a > b:
        return at_b if b > c else at_c if a > c else at_a
    return at_a if a > c else at_c if b > c else at_b


@part_of_loops
def _divide(scores: Array, order: Array, begin: int, end: int) -> int:
    """Exchange elements so that those come first that are not below the first one, and the others after a cut."""
    pivot, low, high = scores[begin], begin + 1, end
    while True:
        while scores[low] > pivot:
            low += 1
        high -= 1
        while pivot > scores[high]:
            high -= 1
        if low >= high:
            return low
        _exchange(scores, order, low, high)
        low += 1


@part_of_loops
def _sink_low(scores: Array, order: Array, top: int, begin: int, end: int) -> None:
    """Make a heap of what is under a place, the lowest in front: a hole sinks to a leaf, and the element rises."""
    score, number, hole = scores[begin + top], order[begin + top], top
    child = 2 * hole + 1
    while begin + child < end:
        if begin + child + 1 < end and scores[begin + child + 1] <= scores[begin + child]:
            child += 1
        scores[begin + hole], order[begin + hole] = scores[begin + child], order[begin + child]
        hole, child = child, 2 * child + 1
    while hole > top and scores[begin + (hole - 1) // 2] > score:
        parent = (hole - 1) // 2
        scores[begin + hole], order[begin + hole] = scores[begin + parent], order[begin + parent]
        hole = parent
    scores[begin + hole], order[begin + hole] = score, number


@part_of_loops
def _sort_by_heap(scores: Array, order: Array, begin: int, end: int) -> None:
    for top in range((end - begin) // 2 - 1, -1, -1):
        _sink_low(scores, order, top, begin, end)
    for last in range(end - 1, begin, -1):
        _exchange(scores, order, begin, last)
        _sink_low(scores, order, 0, begin, last)


@loop(otherwise=libstdcxx_order.partition_by_numpy)
def partition(scores: Array, order: Array, first: int, depth: int) -> None:
    """Parts wait in a stack; the first half of one is gone on with."""
    begins = np.empty(depth + 2, np.int64)
    ends, depths = np.empty_like(begins), np.empty_like(begins)
    begins[0], ends[0], depths[0] = 0, order.size, depth
    waiting = 1
    while waiting:
        waiting -= 1
        begin, end, left = begins[waiting], ends[waiting], depths[waiting]
        if begin >= first or end - begin <= _SMALL:
            continue
        if left == 0:
            _sort_by_heap(scores, order, begin, end)
            continue
        median = _median(scores, begin + 1, begin + (end - begin) // 2, end - 1)
        _exchange(scores, order, begin, median)
        cut = _divide(scores, order, begin, end)
        begins[waiting], ends[waiting], depths[waiting] = cut, end, left - 1
        begins[waiting + 1], ends[waiting + 1], depths[waiting + 1] = begin, cut, left - 1
        waiting += 2


non_max_suppression.register_suppression(
    non_max_suppression.Selecting(select_part, select_softly),
    types=(DataType.DT_FLOAT,),
    registry=LOOPS.kernels,
)
combined_non_max_suppression.register_combined_suppression(
    combined_non_max_suppression.CombinedSelecting(select_by_class, partition),
    registry=LOOPS.kernels,
)
