"""Loops that select boxes: of those that overlap, only the one with the best score."""

import numpy as np

from opkernel.ops.image import non_max_suppression
from opkernel.providers import LOOPS
from opkernel.providers.loops.loop import loop, part_of_loops
from opkernel.types import Array, DataType


@part_of_loops
def _overlap(corners: Array, a: int, b: int) -> np.float32:
    """As `box_overlap`, of one box with another."""
    if corners[4, a] <= 0 or corners[4, b] <= 0:
        return np.float32(0)
    height = min(corners[2, a], corners[2, b]) - max(corners[0, a], corners[0, b])
    width = min(corners[3, a], corners[3, b]) - max(corners[1, a], corners[1, b])
    if height <= 0 or width <= 0:
        return np.float32(0)
    intersection = height * width
    return np.float32(intersection / (corners[4, a] + corners[4, b] - intersection))


@loop(otherwise=non_max_suppression.select_boxes)
def select_boxes(corners: Array, in_turn: Array, most: int, iou_threshold: np.float32) -> Array:
    """Each candidate is compared with the boxes selected before it, until one overlaps too much."""
    selected = np.empty(min(most, in_turn.size), np.int64)
    count = 0
    for box in in_turn:
        if count == most:
            break
        for other in range(count):
            if not _overlap(corners, box, selected[other]) <= iou_threshold:
                break
        else:
            selected[count] = box
            count += 1
    return selected[:count]


non_max_suppression.register_suppression(
    select_boxes, types=(DataType.DT_FLOAT,), registry=LOOPS.kernels
)
