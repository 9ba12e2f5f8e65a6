"""Non-maximum suppression class by class, and with given overlaps."""

from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

f32 = partial(np.array, dtype=np.float32)
i32 = partial(np.array, dtype=np.int32)

# Three boxes: the second overlaps the first by 0.9 of their union, the third is apart.
BOXES = f32([[0, 0, 1, 1], [0, 0, 1, 0.9], [0, 2, 1, 3]]).reshape(1, 3, 1, 4)
SCORES = f32([[[0.9, 0.2], [0.8, 0.7], [0.6, 0.3]]])


def combined(per_class=3, total=4, iou=0.5, score=0.25, boxes=BOXES, scores=SCORES, **attrs):
    return raw_ops.CombinedNonMaxSuppression(
        boxes=boxes,
        scores=scores,
        max_output_size_per_class=i32(per_class),
        max_total_size=i32(total),
        iou_threshold=f32(iou),
        score_threshold=f32(score),
        **attrs,
    )


def test_classes_are_suppressed_apart_and_ordered_together():
    result = combined(clip_boxes=False)
    np.testing.assert_array_equal(result.nmsed_scores, f32([[0.9, 0.7, 0.6, 0.3]]), strict=True)
    np.testing.assert_array_equal(result.nmsed_classes, f32([[0, 1, 0, 1]]), strict=True)
    np.testing.assert_array_equal(result.nmsed_boxes, BOXES[:, [0, 1, 2, 2], 0], strict=True)
    np.testing.assert_array_equal(result.valid_detections, i32([4]), strict=True)


def test_the_output_is_clipped_and_padded_with_zeros():
    result = combined(per_class=1, total=4)
    np.testing.assert_array_equal(result.nmsed_scores, f32([[0.9, 0.7, 0, 0]]))
    np.testing.assert_array_equal(result.nmsed_boxes[0, 2:], np.zeros((2, 4)))
    assert result.valid_detections.tolist() == [2]
    assert combined(total=3).nmsed_boxes[0, 2].tolist() == [0, 1, 1, 1]  # 2 and 3 are clipped
    assert combined(per_class=1, total=4, pad_per_class=True).nmsed_scores.shape == (1, 2)


def test_boxes_of_their_own_for_each_class():
    boxes = np.repeat(BOXES, 2, axis=2)
    boxes[:, 1, 1] += 0.05
    result = combined(per_class=1, boxes=boxes)
    np.testing.assert_allclose(result.nmsed_boxes[0, 1], [0.05, 0.05, 1, 0.95])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"iou": 1.5}, "iou_threshold must be in"),
        ({"total": 0}, "max_total_size must be > 0"),
        ({"per_class": [1]}, "max_size_per_class must be 0-D"),
        ({"scores": SCORES[:, :2]}, "scores has incompatible shape"),
        ({"boxes": np.repeat(BOXES, 3, axis=2)}, "either 1 or num classes"),
        ({"scores": np.repeat(SCORES, 2, axis=0)}, "same batch size"),
    ],
)
def test_errors(change, message):
    with pytest.raises(InvalidArgumentError, match=message):
        combined(**change)


def test_given_overlaps():
    arguments = {
        "overlaps": f32([[1, 0.6, 0], [0.6, 1, 0.3], [0, 0.3, 1]]),
        "scores": f32([0.5, 0.9, 0.4]),
        "max_output_size": i32(3),
        "score_threshold": f32(0),
    }
    select = partial(raw_ops.NonMaxSuppressionWithOverlaps, **arguments)
    assert select(overlap_threshold=f32(0.5)).tolist() == [1, 2]
    assert select(overlap_threshold=f32(0.6)).tolist() == [1, 0, 2]
    assert select(overlap_threshold=f32(0.1)).tolist() == [1]
    # What cannot be compared makes a score 0: too low, or last in the order of the boxes.
    assert select(overlap_threshold=f32(np.nan)).tolist() == [1]
    later = select(
        overlap_threshold=f32(np.nan), score_threshold=f32(-1), scores=f32([0.4, 0.9, 0.5])
    )
    assert later.tolist() == [1, 0, 2]
    unknown = f32([[1, np.nan, 0], [0.6, 1, 0.3], [0, 0.3, 1]])
    assert select(overlap_threshold=f32(0.5), overlaps=unknown).tolist() == [1, 2]
    with pytest.raises(InvalidArgumentError, match="overlaps must be 2-D"):
        select(overlap_threshold=f32(0), overlaps=f32([1]))
