"""Non-maximum suppression class by class over a batch, and with overlaps that are given.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/non_max_suppression_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import DimensionHandle, InferenceContext, register_op
from opkernel.ops.image.non_max_suppression import (
    SelectionLimits,
    box_corners,
    box_overlap,
    select_by_queue,
)
from opkernel.ops.input_checks import require_equal, require_rank
from opkernel.ops.registration import register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType

Array = np.ndarray[Any, Any]


def combined_nms_shape(c: InferenceContext) -> None:
    """Boxes, scores and classes are [batch, detections, ...]; then a vector [batch]."""
    boxes, scores = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 3)
    for i in range(2, 6):
        c.with_rank(c.input(i), 0)
    four = c.with_value(c.dim(boxes, 3), 4)
    batch = c.merge(c.dim(boxes, 0), c.dim(scores, 0))
    c.merge(c.dim(boxes, 1), c.dim(scores, 1))
    classes = c.dim(scores, 2)
    if c.value_known(c.dim(boxes, 2)) and c.value(c.dim(boxes, 2)) != 1:
        classes = c.merge(c.dim(boxes, 2), classes)
    detections = _detections(c, classes)
    c.set_output(0, c.make_shape([batch, detections, four]))
    for index in (1, 2):
        c.set_output(index, c.make_shape([batch, detections]))
    c.set_output(3, c.vector(batch))


def _detections(c: InferenceContext, classes: DimensionHandle) -> DimensionHandle:
    """How many boxes there are in the output for each image."""
    total, per_class = c.make_dim_for_scalar_input(3), c.make_dim_for_scalar_input(2)
    for name, dim in (("max_total_size", total), ("max_output_size_per_class", per_class)):
        if c.value_known(dim) and not c.value(dim):
            raise InvalidArgumentError(f"{name} should be > 0")
    if not c.get_attr("pad_per_class"):
        return total
    return c.min(total, c.multiply(per_class, classes))


COMBINED_NMS = register_op(
    "CombinedNonMaxSuppression",
    inputs=[
        "boxes: float",
        "scores: float",
        "max_output_size_per_class: int32",
        "max_total_size: int32",
        "iou_threshold: float",
        "score_threshold: float",
    ],
    outputs=[
        "nmsed_boxes: float",
        "nmsed_scores: float",
        "nmsed_classes: float",
        "valid_detections: int32",
    ],
    attrs=["pad_per_class: bool = false", "clip_boxes: bool = true"],
    shape_fn=combined_nms_shape,
    doc="""The best boxes of each image, none of which overlaps a better one of its class too much.

    boxes: [batch, boxes, classes or 1, 4]: the coordinates y, x of two opposite corners.
    scores: [batch, boxes, classes].
    max_output_size_per_class: At most so many boxes of each class.
    max_total_size: The number of boxes in the output for each image; zeros after the last.
    iou_threshold: How large the intersection of two boxes may be, as a part of their union.
    score_threshold: Boxes with this score, or a lower one, are not selected.
    pad_per_class: The output is no longer than all classes at their limit.
    clip_boxes: Coordinates in the output are between 0 and 1.
    """,
)


def overlaps_shape(c: InferenceContext) -> None:
    """A vector of unknown length."""
    overlaps, scores = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
    for i in range(2, 5):
        c.with_rank(c.input(i), 0)
    c.merge(c.dim(overlaps, 0), c.dim(scores, 0))
    c.merge(c.dim(overlaps, 0), c.dim(overlaps, 1))
    c.set_output(0, c.vector(c.unknown_dim()))


NMS_WITH_OVERLAPS = register_op(
    "NonMaxSuppressionWithOverlaps",
    inputs=[
        "overlaps: float",
        "scores: float",
        "max_output_size: int32",
        "overlap_threshold: float",
        "score_threshold: float",
    ],
    outputs=["selected_indices: int32"],
    shape_fn=overlaps_shape,
    doc="""Indices of boxes, best score first, none of which overlaps a better one too much.

    overlaps: [boxes, boxes]: how much two boxes overlap.
    scores: [boxes].
    max_output_size: At most so many boxes.
    overlap_threshold: How much two boxes may overlap.
    score_threshold: Boxes with this score, or a lower one, are not selected.
    """,
)


def _select(
    scores: Array,
    score_threshold: Any,
    limit: int,
    overlap: Callable[[int, Array], Array],
    most: Any,
) -> list[int]:
    """The best index, then the best of those that overlap no chosen box; the first of equal ones.

    `overlap(best, others)` is how much each of the others overlaps the best; `most` it may be.
    """
    left = np.flatnonzero(scores > score_threshold)
    check_allocation((min(len(left), int(limit)),), DataType.DT_INT32)
    left = left[stable_order(-scores[left])]
    selected: list[int] = []
    while len(selected) < limit and left.size:
        check_time("selecting boxes")
        best, left = int(left[0]), left[1:]
        selected.append(best)
        left = left[~(overlap(best, left) > most)]
    return selected


def _check_scalars(**values: Any) -> None:
    for name, value in values.items():
        if np.ndim(value):
            raise InvalidArgumentError(f"{name} must be 0-D, got shape {list(value.shape)}")


def _sizes(per_class: Any, total: Any) -> tuple[int, int]:
    """The limits on the number of boxes, checked."""
    _check_scalars(max_size_per_class=per_class, max_total_size=total)
    for name, size in (("max_size_per_class", per_class), ("max_total_size", total)):
        if size <= 0:
            raise InvalidArgumentError(f"{name} must be > 0")
    return int(per_class), int(total)


def _check_batch(boxes: Any, scores: Any) -> None:
    require_equal(boxes.shape[:1], scores.shape[:1], "boxes and scores must have same batch size")


def _check_boxes(boxes: Any, scores: Any) -> None:
    require_rank(boxes, 4, "boxes must be 4-D{}")
    require_rank(scores, 3, "scores must be 3-D{}")
    if boxes.shape[2] not in (1, scores.shape[2]):
        raise InvalidArgumentError(
            f"third dimension of boxes must be either 1 or num classes: {boxes.shape[2]}"
        )
    require_equal(boxes.shape[3], 4, "boxes must have 4 columns, got {}")
    if boxes.shape[1] != scores.shape[1]:
        raise InvalidArgumentError(
            f"scores has incompatible shape {list(scores.shape)} for {boxes.shape[1]} boxes"
        )


@register_kernel(COMBINED_NMS, factory=True)
def combined_nms(*, pad_per_class: bool, clip_boxes: bool) -> Callable[..., Any]:
    def kernel(
        boxes: Any,
        scores: Any,
        max_output_size_per_class: Any,
        max_total_size: Any,
        iou_threshold: Any,
        score_threshold: Any,
    ) -> Any:
        _check_batch(boxes, scores)
        per_class, total = _sizes(max_output_size_per_class, max_total_size)
        _check_scalars(iou_threshold=iou_threshold, score_threshold=score_threshold)
        if not 0 <= iou_threshold <= 1:
            raise InvalidArgumentError("iou_threshold must be in [0, 1]")
        _check_boxes(boxes, scores)
        length = min(total, per_class * scores.shape[2]) if pad_per_class else total
        check_allocation((scores.shape[0], length, 4), DataType.DT_FLOAT)
        images = [
            _detect(*image, length, per_class, iou_threshold, score_threshold)
            for image in zip(boxes, scores, strict=True)
        ]
        result = np.zeros((len(images), length, 6), np.float32)
        for row, found in zip(result, images, strict=True):
            row[: len(found)] = found
        nmsed_boxes = result[..., 2:]
        if clip_boxes:
            nmsed_boxes = np.clip(nmsed_boxes, 0, 1)
        counts = np.array([len(found) for found in images], np.int32)
        return nmsed_boxes.copy(), result[..., 1].copy(), result[..., 0].copy(), counts

    return kernel


def _detect(
    boxes: Array,
    scores: Array,
    limit: int,
    per_class: int,
    iou_threshold: Any,
    score_threshold: Any,
) -> Array:
    """The best boxes of one image, best first: class, score and coordinates of each."""
    found = []
    for index in range(scores.shape[1]):
        of_class = boxes[:, index if boxes.shape[1] > 1 else 0]
        corners, scores_of_class = box_corners(of_class), scores[:, index]

        def overlap(best: int, others: Array, corners: Array = corners) -> Array:
            return box_overlap(corners[:, others], corners[:, best])

        kept = _select(scores_of_class, score_threshold, per_class, overlap, iou_threshold)
        classes = np.full(len(kept), index, np.float32)
        found.append(np.column_stack([classes, scores_of_class[kept], of_class[kept]]))
    rows = np.concatenate(found) if found else np.zeros((0, 6), np.float32)
    best: Array = rows[stable_order(-rows[:, 1])[:limit]]
    return best


@register_kernel(NMS_WITH_OVERLAPS)
def nms_with_overlaps(
    overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any, score_threshold: Any
) -> Any:
    _check_scalars(max_output_size=max_output_size, overlap_threshold=overlap_threshold)
    _check_scalars(score_threshold=score_threshold)
    require_rank(overlaps, 2, "overlaps must be 2-D{}")
    if overlaps.shape[0] != overlaps.shape[1]:
        raise InvalidArgumentError(f"overlaps must be square{list(overlaps.shape)}")
    if scores.shape != overlaps.shape[:1]:
        raise InvalidArgumentError(
            f"scores has incompatible shape {list(scores.shape)} for {overlaps.shape[0]} boxes"
        )
    if max_output_size < 0:
        raise InvalidArgumentError("output size must be non-negative")
    if np.isnan(overlap_threshold) or np.isnan(overlaps).any():
        # What cannot be compared is not too much, but makes a score 0.
        limits = SelectionLimits(max_output_size, overlap_threshold, score_threshold)
        candidates = np.flatnonzero(scores > score_threshold)
        selected, _ = select_by_queue(
            scores, candidates, limits, lambda box, others: overlaps[box, others]
        )
    else:
        selected = _select(
            scores,
            score_threshold,
            int(max_output_size),
            lambda best, others: overlaps[others, best],
            overlap_threshold,
        )
    return np.array(selected, np.int32)
