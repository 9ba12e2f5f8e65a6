import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import allocation_limit


def f32(value):
    return np.asarray(value, np.float32)


NAN, INF = np.nan, np.inf
BOXES = f32(
    [
        [0, 0, 1, 1],
        [0, 0.1, 1, 1.1],
        [0, -0.1, 1, 0.9],
        [0, 10, 1, 11],
        [1, 11.1, 0, 10.1],  # given by its other two corners
        [0, 100, 1, 101],
    ]
)
SCORES = f32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])


def select(version, boxes=BOXES, scores=SCORES, size=3, iou=0.5, score=0.0, sigma=0.0, **attrs):
    """The selected indices of any version, or all outputs if there are several."""
    inputs = {"boxes": boxes, "scores": scores, "max_output_size": np.asarray(size, np.int32)}
    if version == 1:
        return raw_ops.NonMaxSuppression(**inputs, iou_threshold=iou)
    kind = boxes.dtype.type
    thresholds = {"iou_threshold": iou, "score_threshold": score, "soft_nms_sigma": sigma}
    for name in list(thresholds)[: {2: 1, 3: 2, 4: 2, 5: 3}[version]]:
        inputs[name] = np.asarray(thresholds[name], kind)
    return getattr(raw_ops, f"NonMaxSuppressionV{version}")(**inputs, **attrs)


def indices(version, *args, **given):
    result = select(version, *args, **given)
    return (result[0] if version > 3 else result).tolist()


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_the_best_of_each_group(version):
    assert indices(version) == [3, 0, 5]
    assert indices(version, size=2) == [3, 0]
    assert indices(version, size=30) == [3, 0, 5]
    assert indices(version, iou=1.0, size=30) == [3, 0, 1, 2, 4, 5]
    assert indices(version, size=0) == []
    assert indices(version, BOXES[:0], SCORES[:0]) == []


def test_half():
    assert indices(3, BOXES.astype(np.float16), SCORES.astype(np.float16)) == [3, 0, 5]


def test_of_equal_scores_the_first():
    assert indices(3, scores=np.ones(6, np.float32)) == [0, 3, 5]


def test_scores_must_be_above_the_threshold():
    assert indices(3, score=0.3) == [3, 0]
    assert indices(3, scores=f32([NAN, 0.75, 0.6, INF, 0.5, 0.3])) == [3, 1, 5]


def test_padding():
    chosen, count = select(4, size=5, pad_to_max_output_size=True)
    assert (chosen.tolist(), count) == ([3, 0, 5, 0, 0], 3)
    chosen, scores, count = select(5, size=5, pad_to_max_output_size=True)
    np.testing.assert_array_equal(scores, f32([0.95, 0.9, 0.3, 0, 0]))
    assert count == 3
    assert select(4, size=5)[0].shape == (3,)


def test_soft_suppression_lowers_scores():
    chosen, scores, count = select(5, size=6, sigma=0.5)
    assert chosen.tolist() == [3, 0, 1, 5, 4, 2]
    np.testing.assert_allclose(scores, [0.95, 0.9, 0.384, 0.3, 0.256, 0.197], rtol=0, atol=1e-3)
    assert count == 6
    assert select(5, size=6, sigma=0.5, score=0.25)[0].tolist() == [3, 0, 1, 5, 4]


def test_empty_boxes_overlap_with_nothing():
    boxes = f32([[0, 0, 1, 1], [0.5, 0.5, 0.5, 0.5], [0, 0, 1, 1]])
    assert indices(3, boxes, f32([3, 2, 1]), score=-1) == [0, 1]


def test_boxes_without_numbers_lose_their_score():
    """Recorded from TensorFlow: the overlap with box 0 is no number, and its score becomes -0."""
    boxes = f32([[0, 0, INF, 1], [0, 5, 1, 6], [0, 0, INF, 1]])
    assert indices(2, boxes, f32([-3, -2, -1])) == [2, 1, 0]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"boxes": BOXES[0]}, r"boxes must be 2-D\[4\]"),
        ({"boxes": BOXES[:, :3]}, "boxes must have 4 columns"),
        ({"scores": SCORES[:, None]}, r"scores must be 1-D\[6,1\]"),
        ({"scores": SCORES[:2]}, "scores has incompatible shape"),
        ({"size": [3]}, r"max_output_size must be 0-D, got shape \[1\]"),
        ({"size": -1}, "output size must be non-negative"),
        ({"size": -(2**31)}, "output size must be non-negative"),
        ({"iou": 1.5}, r"iou_threshold must be in \[0, 1\]"),
        ({"iou": NAN}, r"iou_threshold must be in \[0, 1\]"),
    ],
)
def test_what_is_refused(version, given, message):
    with pytest.raises(InvalidArgumentError, match=message):
        select(version, **given)


def test_thresholds_that_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"score_threshold must be 0-D"):
        select(3, score=[0.1])
    for sigma in (-1, NAN):
        with pytest.raises(InvalidArgumentError, match="soft_nms_sigma_val must be non-neg"):
            select(5, sigma=sigma)


def test_padding_has_a_limit():
    huge = 2**31 - 1
    assert len(select(4, size=huge)[0]) == 3
    with allocation_limit(1 << 20), pytest.raises(ResourceExhaustedError):
        select(4, size=huge, pad_to_max_output_size=True)
