"""The algorithms of non-maximum suppression: of boxes that overlap, only the one with the best score.

Selecting goes by parts of bounded work, so that a limit of time holds whatever runs a part.

Source: TensorFlow core/kernels/image/non_max_suppression_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.work_clock import WorkClock
from opkernel.ops.libstdcxx_order import priority_queue_order
from opkernel.ops.math.elementwise import choice
from opkernel.ops.stable_order import stable_order
from opkernel.types import Array

_PAIRS = 1 << 20
"""About so many pairs of boxes are compared between two looks at the clock."""
_FEWEST, _MOST = 64, 1024
"""How many boxes are compared with those selected, between two looks at the clock."""
_OF_TURN, _OF_WEIGHT = 1 << 13, 1 << 7
"""The work of taking the best of a queue, and that of a weight."""
_ROWS, _COLUMNS = 128, 512
"""How many boxes NumPy compares with how many others at a time: the arrays stay in the processor's cache."""


def box_corners(boxes: Array, *, xp: Any = np) -> Array:
    """y, x of the lower corner, y, x of the upper one, and the area; a row each."""
    rows = np.ascontiguousarray(boxes.T) if xp is np else boxes.T
    first, second = rows[:2], rows[2:]
    lower = choice(second < first, second, first, xp)
    upper = choice(first < second, second, first, xp)
    sides = upper - lower
    corners: Array = xp.concatenate([lower, upper, sides[:1] * sides[1:]])
    return corners


def box_overlap(boxes: Array, box: Array, *, xp: Any = np) -> Array:
    """The intersection of each box with one, as a part of their union; 0 for empty boxes."""
    height = xp.minimum(boxes[2], box[2]) - xp.maximum(boxes[0], box[0])
    width = xp.minimum(boxes[3], box[3]) - xp.maximum(boxes[1], box[1])
    intersection = xp.maximum(height, 0) * xp.maximum(width, 0)
    is_empty = (boxes[4] <= 0) | (box[4] <= 0)
    parts: Array = xp.where(
        is_empty, np.float32(0), intersection / (boxes[4] + box[4] - intersection)
    )
    return parts


SelectPart = Callable[[Array, Array, Array, int, Any], int]
"""A function as `select_part`."""


def select_in_turn(
    parts: Iterable[Array], most: int, select: Callable[[Array, Array, int], int]
) -> Array:
    """The first of the boxes, then the first of those left that none selected strikes out, and so on.

    Args:
        parts: The numbers of the boxes to choose from, the best first.
        most: At most so many are selected.
        select: As `select_part`, of the boxes that are next, those selected, and how many these are.

    Returns:
        The numbers of the boxes, int64 `[selected]`.
    """
    selected = np.empty(most, np.int64)
    count = 0
    for in_turn in parts:
        start = 0
        while start < len(in_turn) and count < most:
            check_time("selecting boxes")
            end = start + min(max(_PAIRS // (count + 1), _FEWEST), _MOST)
            count = select(in_turn[start:end], selected, count)
            start = end
        if count == most:
            break
    return selected[:count]


def select_part(
    corners: Array, in_turn: Array, selected: Array, count: int, iou_threshold: Any
) -> int:
    """Add to the boxes selected those of a few that do not overlap them, or each other, too much.

    Args:
        corners: [5, boxes]: as `box_corners` gives them.
        in_turn: [candidates]: the numbers of the boxes to choose from, the best first.
        selected: [most]: the numbers of the boxes selected, which is filled.
        count: How many are selected so far.
        iou_threshold: How much two boxes may overlap, in the type that overlaps are rounded to.

    Returns:
        How many are selected.
    """
    round_to = type(iou_threshold)

    def strikes_out(boxes: Array, others: Array) -> Array:
        """What empty boxes give here, and those without numbers, is not above a threshold either."""
        a, b = corners[:, boxes][..., np.newaxis], corners[:, others][:, np.newaxis]
        height = np.minimum(a[2], b[2])
        height -= np.maximum(a[0], b[0])
        width = np.minimum(a[3], b[3])
        width -= np.maximum(a[1], b[1])
        overlap = np.multiply(np.maximum(height, 0, out=height), width, out=width)
        union = a[4] + b[4]
        union -= overlap
        overlap /= union
        is_too_much: Array = overlap.astype(round_to, copy=False) > iou_threshold
        return is_too_much

    return select_by_matrix(in_turn, selected, count, strikes_out)


def select_by_matrix(
    in_turn: Array, selected: Array, count: int, strikes_out: Callable[[Array, Array], Array]
) -> int:
    """As `select_part`; `strikes_out(boxes, others)` tells for each box whether each of the others strikes it out."""
    for start in range(0, len(in_turn), _ROWS):
        left = in_turn[start : start + _ROWS]
        for begin in range(0, count, _COLUMNS):
            others = selected[begin : min(begin + _COLUMNS, count)]
            left = left[~strikes_out(left, others).any(axis=1)]
        struck = np.zeros(len(left), bool)
        among_them = strikes_out(left, left).T
        for number, box in enumerate(left):
            if count == len(selected):
                return count
            if not struck[number]:
                selected[count] = box
                count += 1
                struck |= among_them[number]
    return count


SelectByClass = Callable[[Array, Array, Array, Array, Array, Array], bool]
"""A function as `select_by_class`."""


def select_of_each_class(
    corners: Array, scores: Array, most: int, limits: Array, select: SelectByClass
) -> Array:
    """The boxes of each class, the best first; of equal ones the one that a priority queue gives first.

    Args:
        corners: [variants, 5, boxes]: as `box_corners` gives them; one variant for each class, or for all.
        scores: [classes, boxes].
        most: At most so many are selected of each class.
        limits: [2]: as in `select_by_class`.
        select: As `select_by_class`.

    Returns:
        The numbers of the boxes, int64 `[classes, most]`; -1 after the last.
    """
    selected = np.full((len(scores), most), -1, np.int64)
    queue, state = np.empty(scores.shape[1], np.int64), np.array([0, -1, 0], np.int64)
    while not select(corners, scores, queue, selected, state, limits):
        check_time("selecting boxes")
    return selected


def select_by_class(
    corners: Array, scores: Array, queue: Array, selected: Array, state: Array, limits: Array
) -> bool:
    """A part of the work of `select_of_each_class`; all of it, with looks at the clock.

    Args:
        corners: [variants, 5, boxes].
        scores: [classes, boxes].
        queue: [boxes]: a heap of the boxes of a class. For functions that do a part of the work.
        selected: [classes, most], which is filled.
        state: [3]: the class whose turn it is, how many boxes its queue has, -1 if it is to be made, and how many are
            selected of the class.
        limits: [2], float32: how much two boxes may overlap, and what scores have to be above.

    Returns:
        Whether nothing is left to do.
    """
    iou_threshold, score_threshold = limits
    for number, of_class in enumerate(scores):
        count, own = 0, corners[number if len(corners) > 1 else 0]
        candidates = np.flatnonzero(of_class > score_threshold)
        for part in priority_queue_order(of_class[candidates], _ROWS):
            check_time("selecting boxes")
            count = select_part(own, candidates[part], selected[number], count, iou_threshold)
            if count == len(selected[number]):
                break
    return True


SelectSoftly = Callable[[Array, Array, Array, Array, Array, Array], bool]
"""A function as `select_softly`."""


def select_as_scores_change(
    corners: Array, scores: Array, most: int, limits: Array, select: SelectSoftly
) -> tuple[Array, Array]:
    """The best box, then the best by the scores that overlap with those selected leaves, and so on.

    Args:
        corners: [5, candidates]: as `box_corners` gives them.
        scores: [candidates].
        most: At most so many are selected.
        limits: [3]: as in `select_softly`.
        select: As `select_softly`.

    Returns:
        The numbers of the candidates that are selected, int64 `[selected]`, and their scores.
    """
    queue = np.stack([stable_order(-scores), np.zeros(len(scores), np.int64)])
    selected = np.empty(min(most, len(scores)), np.int64)
    state, scores = np.array([len(scores), 0], np.int64), scores.copy()
    corners = np.ascontiguousarray(corners)
    while not select(corners, scores, queue, selected, state, limits):
        check_time("selecting boxes")
    selected = selected[: state[1]]
    return selected, scores[selected]


def select_softly(
    corners: Array, scores: Array, queue: Array, selected: Array, state: Array, limits: Array
) -> bool:
    """A part of the work of `select_as_scores_change`; all of it, with looks at the clock.

    Args:
        corners: [5, candidates].
        scores: [candidates]: the scores so far, which are changed.
        queue: [2, candidates]: a heap of candidates, the best in front, of which there are `state[0]`; and for each
            candidate, how many of those selected its score takes account of. For functions that do a part of the work.
        selected: [most]: candidates that are selected, of which there are `state[1]`.
        state: [2].
        limits: [3], in the type of the scores: how much two boxes may overlap, what scores have to be above, and how
            wide the bell is by which overlap lowers scores; where that is 0, boxes that overlap too much are dropped.

    Returns:
        Whether nothing is left to do.
    """

    def overlap(boxes: Array, others: Array) -> Array:
        first, second = corners[:, boxes][..., np.newaxis], corners[:, others][:, np.newaxis]
        return box_overlap(first, second).astype(scores.dtype)

    chosen = select_by_queue(scores, len(selected), limits, overlap)
    selected[: len(chosen)] = chosen
    state[1] = len(chosen)
    return True


def select_by_queue(
    scores: Array, most: int, limits: Array, overlap: Callable[[Array, Array], Array]
) -> list[int]:
    """For scores that may change: a box is compared when it is the best of the queue.

    A score may rise, if it is below 0; so it counts that a box is not compared any earlier. Where
    its score changed it goes back into the queue.

    Args:
        scores: [candidates], which is changed.
        most: At most so many are selected.
        limits: [3]: as in `select_softly`.
        overlap: How much candidates overlap others: `overlap(some, others)` is `[some, others]`.
    """
    kind, score_threshold = scores.dtype.type, float(limits[1])
    waiting = _Waiting(scores, limits, overlap)
    selected: list[int] = []
    clock = WorkClock("selecting boxes")
    while len(selected) < most and (best := waiting.pop(selected)) is not None:
        score, box, weights = best
        clock.spend(_OF_TURN + _OF_WEIGHT * len(weights))
        new_score = score
        for weight in reversed(weights):
            new_score = float(kind(new_score * weight))  # the product is exact before
            if weight < 0 or new_score <= score_threshold:
                break
        else:
            weights.clear()
            if new_score == score:
                clock.spend(_OF_WEIGHT * len(scores))
                scores[box] = score
                selected.append(box)
                waiting.overlap_with(box)
            elif new_score > score_threshold:  # not NaN
                waiting.push(new_score, box)
    return selected


class _Waiting:
    """Candidates, the best first, and the weights by which their scores change.

    Only for those that have come near the front are weights held.
    """

    def __init__(
        self, scores: Array, limits: Array, overlap: Callable[[Array, Array], Array]
    ) -> None:
        self._scores, self._in_turn = scores, stable_order(-scores)
        self._near = np.empty(0, np.int64)
        self._queue: list[tuple[float, int]] = []
        self._weights: dict[int, list[float]] = {}  # of those selected since, as far as not 1
        self._limits, self._overlap = limits, overlap
        self._is_apart_free = _weights(scores.dtype.type([0]), limits)[0] == 1

    def push(self, score: float, box: int) -> None:
        """Put a box back that has another score."""
        heappush(self._queue, (-score, box))

    def pop(self, selected: list[int]) -> tuple[float, int, list[float]] | None:
        """The score of the best box, its number, and the weights of those selected since it was last taken out."""
        count, queue = len(self._near), self._queue
        if count < len(self._in_turn):
            following = int(self._in_turn[count])
            if not queue or queue[0] >= (-float(self._scores[following]), following):
                self._come_near(self._in_turn[count : count + _ROWS], selected)
        if not queue:
            return None
        score, box = heappop(queue)
        return -score, box, self._weights[box]

    def _come_near(self, some: Array, selected: list[int]) -> None:
        for box, score in zip(some.tolist(), self._scores[some].tolist(), strict=True):
            heappush(self._queue, (-score, box))
            self._weights[box] = []
        self._near = np.concatenate([self._near, some])
        for start in range(0, len(selected), _COLUMNS):
            self._weigh(some, np.array(selected[start : start + _COLUMNS]))

    def overlap_with(self, box: int) -> None:
        """Note the weights of a box that was selected."""
        self._weigh(self._near, np.array([box]))

    def _weigh(self, boxes: Array, others: Array) -> None:
        overlaps = self._overlap(boxes, others).ravel()
        pairs = np.flatnonzero(overlaps) if self._is_apart_free else np.arange(len(overlaps))
        numbers = boxes[pairs // len(others)].tolist()
        weights = _weights(overlaps[pairs], self._limits).tolist()
        for box, weight in zip(numbers, weights, strict=True):
            self._weights[box].append(weight)


def _weights(overlaps: Array, limits: Array) -> Array:
    """What overlaps multiply scores by; -1 drops a box."""
    iou_threshold, _, sigma = limits
    if sigma > 0:
        decay = overlaps.dtype.type(-0.5) / sigma
        weights = np.exp((decay * overlaps * overlaps).astype(np.float64))
        soft: Array = weights.astype(overlaps.dtype)
        return soft
    hard: Array = np.where(overlaps > iou_threshold, -1, overlaps <= iou_threshold)
    return hard
