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


# Scores of seven boxes apart in tenths, and which five TensorFlow 2.21 selects, in this order.
TIES = {
    "5443333": "02156",
    "3354544": "24536",
    "5544453": "05124",
    "5534543": "01453",
    "5553353": "02516",
    "4544555": "15642",
}


@pytest.mark.parametrize("scores", TIES)
def test_of_equal_scores_those_stay_that_tensorflow_keeps(scores):
    sides = np.arange(8) * (np.arange(8) + 1) / 2
    boxes = f32([[0, sides[i], 1, sides[i + 1]] for i in range(7)]).reshape(1, 7, 1, 4)
    given = f32([int(one) for one in scores]).reshape(1, 7, 1) / f32(10)
    result = combined(5, 5, 0.5, 0.2, boxes, given, clip_boxes=False)
    selected = [int(one) for one in np.searchsorted(sides, result.nmsed_boxes[0, :, 3]) - 1]
    assert "".join(map(str, selected)) == TIES[scores]


# Scores of thirty classes in tenths, and the order of the classes in TensorFlow 2.21's result.
CLASSES = {
    "655443333656556555564653465365": [
        28,
        25,
        21,
        19,
        9,
        11,
        0,
        14,
        15,
        29,
        26,
        22,
        18,
        17,
        16,
        13,
        12,
        10,
        2,
        1,
        20,
        24,
        4,
        3,
        8,
        7,
        6,
        5,
        23,
        27,
    ],
    "456633663464464455336665644634": [
        20,
        2,
        3,
        27,
        6,
        7,
        21,
        10,
        24,
        22,
        13,
        1,
        17,
        16,
        23,
        25,
        26,
        0,
        29,
        15,
        14,
        12,
        11,
        9,
        19,
        18,
        8,
        5,
        28,
        4,
    ],
    "643446434565636354354543545564": [
        0,
        28,
        5,
        14,
        12,
        10,
        19,
        16,
        21,
        11,
        9,
        24,
        26,
        27,
        25,
        22,
        29,
        20,
        1,
        17,
        8,
        6,
        4,
        3,
        18,
        15,
        13,
        23,
        7,
        2,
    ],
}


@pytest.mark.parametrize("scores", CLASSES)
def test_equal_scores_of_many_classes_stand_in_tensorflows_order(scores):
    given = f32([int(one) for one in scores]).reshape(1, 1, 30) / f32(10)
    result = combined(1, 30, 0.5, 0.2, f32([0, 0, 1, 1]).reshape(1, 1, 1, 4), given)
    assert result.nmsed_classes[0].tolist() == CLASSES[scores]


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(60))
def test_drawn_boxes_with_equal_scores_beside_tensorflow(tf, seed):
    draw = np.random.default_rng(seed)
    batch, count, classes = (int(draw.integers(1, most)) for most in (3, 60, 6))
    shape = (batch, count, int(draw.choice([1, classes])), 2)
    corners = draw.integers(0, 8, shape)
    boxes = np.concatenate([corners, corners + draw.integers(1, 4, shape)], -1).astype(np.float32)
    lowest = -15 if seed % 5 == 0 else 0
    scores = draw.integers(lowest, draw.choice([3, 10, 1000]), (batch, count, classes)) / 10
    arguments = {
        "boxes": boxes,
        "scores": scores.astype(np.float32),
        "max_output_size_per_class": i32(draw.integers(1, 30)),
        "max_total_size": i32(draw.integers(1, 60)),
        "iou_threshold": f32(draw.choice([0, 0.3, 0.5, 1])),
        "score_threshold": f32(draw.choice([-2, -0.5, 0, 0.2])),
        "pad_per_class": bool(draw.integers(2)),
        "clip_boxes": bool(draw.integers(2)),
    }
    found = raw_ops.CombinedNonMaxSuppression(**arguments)
    wanted = tf.raw_ops.CombinedNonMaxSuppression(**arguments)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other.numpy(), strict=True)
