"""Non-maximum suppression class by class over a batch, and with overlaps that are given.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/non_max_suppression_op.cc.
"""

from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import DimensionHandle, InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_ranks, shape_rule
from opkernel.ops.image.box_selection import (
    SelectByClass,
    box_corners,
    select_by_class,
    select_by_matrix,
    select_by_queue,
    select_in_turn,
    select_of_each_class,
)
from opkernel.ops.image.non_max_suppression import check_scalars
from opkernel.ops.input_checks import require, require_equal, require_rank
from opkernel.ops.libstdcxx_order import Partition, partition_by_numpy, sort_order
from opkernel.ops.registration import register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.types import Array, DataType


def combined_nms_shape(c: InferenceContext) -> None:
    """Boxes, scores and classes are [batch, detections, ...]; then a vector [batch]."""
    boxes, scores = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 3)
    check_ranks(c, 0, *range(2, 6))
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
    "CombinedNonMaxSuppression(boxes: float, scores: float, max_output_size_per_class: int32, "
    "max_total_size: int32, iou_threshold: float, score_threshold: float) -> nmsed_boxes: float, "
    "nmsed_scores: float, nmsed_classes: float, valid_detections: int32",
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


NMS_WITH_OVERLAPS = register_op(
    "NonMaxSuppressionWithOverlaps(overlaps: float, scores: float, max_output_size: int32, "
    "overlap_threshold: float, score_threshold: float) -> selected_indices: int32",
    shape_fn=shape_rule("[boxes, boxes], [boxes], [], [], [] -> [selected]"),
    doc="""Indices of boxes, best score first, none of which overlaps a better one too much.

    overlaps: [boxes, boxes]: how much two boxes overlap.
    scores: [boxes].
    max_output_size: At most so many boxes.
    overlap_threshold: How much two boxes may overlap.
    score_threshold: Boxes with this score, or a lower one, are not selected.
    """,
)


def _sizes(per_class: Any, total: Any) -> tuple[int, int]:
    """The limits on the number of boxes, checked."""
    check_scalars(max_size_per_class=per_class, max_total_size=total)
    for name, size in (("max_size_per_class", per_class), ("max_total_size", total)):
        if size <= 0:
            raise InvalidArgumentError(f"{name} must be > 0")
    return int(per_class), int(total)


def _other_scores(scores: Any, boxes: int) -> InvalidArgumentError:
    shape = list(scores.shape)
    return InvalidArgumentError(f"scores has incompatible shape {shape} for {boxes} boxes")


def _check_boxes(boxes: Any, scores: Any) -> None:
    require_rank(boxes, 4, "boxes must be 4-D{}")
    require_rank(scores, 3, "scores must be 3-D{}")
    message = f"third dimension of boxes must be either 1 or num classes: {boxes.shape[2]}"
    require(boxes.shape[2] in (1, scores.shape[2]), message)
    require_equal(boxes.shape[3], 4, "boxes must have 4 columns, got {}")
    if boxes.shape[1] != scores.shape[1]:
        raise _other_scores(scores, boxes.shape[1])


class CombinedSelecting(NamedTuple):
    """The functions that select boxes, and that divide all those selected by their scores."""

    select: SelectByClass
    partition: Partition


class _Limits(NamedTuple):
    total: int
    per_class: int
    iou_threshold: Any
    score_threshold: Any


def register_combined_suppression(
    by: CombinedSelecting, registry: KernelRegistry | None = None
) -> None:
    """Register the kernel of CombinedNonMaxSuppression with functions that select the boxes."""

    def combined_nms(
        boxes: Any,
        scores: Any,
        max_output_size_per_class: Any,
        max_total_size: Any,
        iou_threshold: Any,
        score_threshold: Any,
        *,
        pad_per_class: bool,
        clip_boxes: bool,
    ) -> Any:
        require_equal(
            boxes.shape[:1], scores.shape[:1], "boxes and scores must have same batch size"
        )
        per_class, total = _sizes(max_output_size_per_class, max_total_size)
        check_scalars(iou_threshold=iou_threshold, score_threshold=score_threshold)
        require(0 <= iou_threshold <= 1, "iou_threshold must be in [0, 1]")
        _check_boxes(boxes, scores)
        length = min(total, per_class * scores.shape[2]) if pad_per_class else total
        check_allocation((scores.shape[0], length, 4), DataType.DT_FLOAT)
        limits = _Limits(length, per_class, np.float32(iou_threshold), score_threshold)
        images = [_detect(by, *image, limits) for image in zip(boxes, scores, strict=True)]
        result = np.zeros((len(images), length, 6), np.float32)
        for row, found in zip(result, images, strict=True):
            row[: len(found)] = found
        nmsed_boxes = result[..., 2:]
        if clip_boxes:
            nmsed_boxes = np.clip(nmsed_boxes, 0, 1)
        counts = np.array([len(found) for found in images], np.int32)
        return nmsed_boxes.copy(), result[..., 1].copy(), result[..., 0].copy(), counts

    register_kernel(COMBINED_NMS, registry=registry)(combined_nms)


def _detect(by: CombinedSelecting, boxes: Array, scores: Array, limits: _Limits) -> Array:
    """The best boxes of one image, best first: class, score and coordinates of each."""
    count, classes = scores.shape
    places = min(limits.per_class, count)
    check_allocation((classes, places, 6), DataType.DT_FLOAT)
    corners = box_corners(boxes.reshape(-1, 4)).reshape(5, *boxes.shape[:2]).transpose(2, 0, 1)
    thresholds = np.array([limits.iou_threshold, limits.score_threshold], np.float32)
    of_classes = np.ascontiguousarray(scores.T)
    selected = select_of_each_class(
        np.ascontiguousarray(corners), of_classes, places, thresholds, by.select
    )
    is_found = selected >= 0
    numbers, found = selected[is_found], np.nonzero(is_found)[0]
    rows = np.zeros((classes, places, 6), np.float32)
    rows[..., :2] = -1  # places that no box takes: TensorFlow sorts these, too
    rows[is_found, 0] = found
    rows[is_found, 1] = of_classes[found, numbers]
    rows[is_found, 2:] = boxes[numbers, np.minimum(found, len(corners) - 1)]
    rows = rows.reshape(-1, 6)
    best: Array = rows[sort_order(rows[:, 1], min(len(found), limits.total), by.partition)]
    return best


register_combined_suppression(CombinedSelecting(select_by_class, partition_by_numpy))


@register_kernel(NMS_WITH_OVERLAPS)
def nms_with_overlaps(
    overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any, score_threshold: Any
) -> Any:
    check_scalars(max_output_size=max_output_size, overlap_threshold=overlap_threshold)
    check_scalars(score_threshold=score_threshold)
    require_rank(overlaps, 2, "overlaps must be 2-D{}")
    if overlaps.shape[0] != overlaps.shape[1]:
        raise InvalidArgumentError(f"overlaps must be square{list(overlaps.shape)}")
    if scores.shape != overlaps.shape[:1]:
        raise _other_scores(scores, overlaps.shape[0])
    require(max_output_size >= 0, "output size must be non-negative")
    candidates = np.flatnonzero(scores > score_threshold)
    most = min(len(candidates), int(max_output_size))
    check_allocation((most,), DataType.DT_INT32)
    if np.isnan(overlap_threshold) or np.isnan(overlaps.max(initial=0)):
        # What cannot be compared is not too much, but makes a score 0.
        limits = np.array([overlap_threshold, score_threshold, 0], np.float32)
        numbers = select_by_queue(
            scores[candidates],
            most,
            limits,
            lambda some, others: overlaps[candidates[some][:, np.newaxis], candidates[others]],
        )
        return candidates[numbers].astype(np.int32)

    def strikes_out(boxes: Array, others: Array) -> Any:
        return overlaps[boxes[:, np.newaxis], others] > overlap_threshold

    in_turn = candidates[stable_order(-scores[candidates])]
    selected = select_in_turn(
        [in_turn],
        min(most, len(in_turn)),
        lambda left, chosen, count: select_by_matrix(left, chosen, count, strikes_out),
    )
    return selected.astype(np.int32)
