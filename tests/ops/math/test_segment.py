from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError

i32 = partial(np.array, dtype=np.int32)
f32 = partial(np.array, dtype=np.float32)
NAN = np.nan
HIGHEST = float(np.finfo(np.float32).max)
DATA = f32([[1, 2], [3, 4], [5, 6], [-7, 8]])


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("SegmentSum", [[4, 6], [0, 0], [-2, 14]]),
        ("SegmentProd", [[3, 8], [1, 1], [-35, 48]]),
        ("SegmentMean", [[2, 3], [0, 0], [-1, 7]]),
        ("SegmentMax", [[3, 4], [0, 0], [5, 8]]),
        ("SegmentMin", [[1, 2], [0, 0], [-7, 6]]),
    ],
)
def test_sorted_segments(op, expected):
    result = getattr(raw_ops, op)(data=DATA, segment_ids=i32([0, 0, 2, 2]))
    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("op", "expected", "empty"),
    [
        ("UnsortedSegmentSum", [-7, 8], 0),
        ("UnsortedSegmentProd", [-7, 8], 1),
        ("UnsortedSegmentMax", [-7, 8], -HIGHEST),
        ("UnsortedSegmentMin", [-7, 8], HIGHEST),
    ],
)
def test_unsorted_segments(op, expected, empty):
    segment = getattr(raw_ops, op)
    result = segment(data=DATA, segment_ids=i32([2, -1, -5, 0]), num_segments=3)
    assert result.tolist() == [expected, [empty, empty], [1, 2]]
    assert segment(data=DATA[0], segment_ids=i32(1), num_segments=2).tolist() == [
        [empty] * 2,
        [1, 2],
    ]


@given(
    ids=st.lists(st.integers(-1, 4), max_size=12),
    op=st.sampled_from(["Sum", "Prod", "Max", "Min"]),
)
def test_unsorted_against_a_loop(ids, op):
    data = np.arange(1, len(ids) * 2 + 1, dtype=np.int64).reshape(-1, 2)
    fold: Any = {"Sum": np.sum, "Prod": np.prod, "Max": np.max, "Min": np.min}[op]
    result = getattr(raw_ops, f"UnsortedSegment{op}")(
        data=data, segment_ids=np.array(ids, np.int64), num_segments=5
    )
    for segment in {i for i in ids if i >= 0}:
        rows = data[[i == segment for i in ids]]
        assert result[segment].tolist() == fold(rows, axis=0).tolist()


def test_ids_of_several_dimensions():
    data = np.arange(12, dtype=np.int32).reshape(2, 3, 2)
    ids = i32([[0, 1, 0], [1, 1, -1]])
    result = raw_ops.UnsortedSegmentSum(data=data, segment_ids=ids, num_segments=2)
    assert result.tolist() == [[4, 6], [16, 19]]


def test_extrema_with_nan_go_on_after_it():
    ids = i32([0, 0, 0, 1])
    assert raw_ops.SegmentMax(data=f32([5, NAN, 2, 3]), segment_ids=ids).tolist() == [2, 3]
    result = raw_ops.SegmentMin(data=f32([5, 2, NAN, 3]), segment_ids=ids)
    np.testing.assert_array_equal(result, [NAN, 3])


def test_integer_mean_truncates():
    assert raw_ops.SegmentMean(data=i32([-7, 2, 0]), segment_ids=i32([0, 0, 0])).tolist() == [-1]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 1, 0, 2], "segment ids are not increasing"),
        ([-1, 0, 0, 1], r"Segment id -1 out of range \[0, 2\)"),
        ([-3, -2, -2, -1], "segment ids must be >= 0"),
        ([0, 1], "same size as dimension 0"),
        ([[0, 1, 2, 3]], "segment_ids should be a vector"),
    ],
)
def test_wrong_sorted_ids(ids, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.SegmentSum(data=DATA, segment_ids=i32(ids))


@pytest.mark.parametrize(
    ("ids", "segments", "message"),
    [
        ([0, 1, 5, 0], 3, r"segment_ids\[2\] = 5 is out of range \[0, 3\)"),
        ([[0, 1], [0, 3]], 3, "data.shape"),
        ([0, 1, 0, 0], -1, "num_segments == -1 must not be negative"),
        ([0, 1, 0, 0], [3], "num_segments should be a scalar"),
    ],
)
def test_wrong_unsorted_ids(ids, segments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.UnsortedSegmentSum(data=DATA[:4], segment_ids=i32(ids), num_segments=i32(segments))


def test_number_of_segments_is_limited():
    with pytest.raises(ResourceExhaustedError):
        raw_ops.UnsortedSegmentSum(
            data=f32([1]), segment_ids=i32([0]), num_segments=np.int64(2**50)
        )
    with pytest.raises(ResourceExhaustedError):
        raw_ops.SegmentSum(data=f32([1]), segment_ids=np.array([2**50], np.int64))


@pytest.mark.parametrize(
    ("kind", "scale"), [("Sum", [1, 1]), ("Mean", [1 / 3, 1]), ("SqrtN", [3**-0.5, 1])]
)
def test_sparse_segments_and_their_gradients(kind, scale):
    indices, ids = i32([0, 3, 3, 1]), i32([0, 0, 0, 2])
    args = {"indices": indices, "segment_ids": ids}
    sums = f32([[-13, 18], [0, 0], [3, 4]]) * f32([[scale[0]], [1], [scale[1]]])
    result = getattr(raw_ops, f"SparseSegment{kind}")(data=DATA, **args)
    np.testing.assert_allclose(result, sums, rtol=1e-6)
    counted = getattr(raw_ops, f"SparseSegment{kind}WithNumSegments")
    np.testing.assert_allclose(counted(data=DATA, **args, num_segments=4), [*sums, [0, 0]], 1e-6)
    grad = f32([[1], [10], [100]])
    rows = [[scale[0]], [100 * scale[1]], [0], [2 * scale[0]]]
    dense = getattr(raw_ops, f"SparseSegment{kind}Grad")(grad=grad, **args, output_dim0=4)
    np.testing.assert_allclose(dense, rows, rtol=1e-6)
    sparse, places = getattr(raw_ops, f"SparseSegment{kind}GradV2")(
        grad=grad, **args, dense_output_dim0=4
    )
    assert places.tolist() == [0, 1, 3]
    np.testing.assert_allclose(sparse, [rows[0], rows[1], rows[3]], rtol=1e-6)


@pytest.mark.parametrize(
    ("indices", "ids", "segments", "message"),
    [
        ([0, 4], [0, 1], 2, r"indices\[1\] == 4 out of range \[0, 4\)"),
        ([0, 1], [0, 2], 2, "segment ids must be < num_segments"),
        ([0, 1], [0], 2, "should have same size"),
        ([0, 1], [0, 2**31 - 1], 2, "Last segment id must be < kintmax"),
    ],
)
def test_wrong_sparse_segments(indices, ids, segments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.SparseSegmentSumWithNumSegments(
            data=DATA, indices=i32(indices), segment_ids=i32(ids), num_segments=segments
        )
