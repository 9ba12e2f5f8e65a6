from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError

f16 = partial(np.array, dtype=np.float16)
f32 = partial(np.array, dtype=np.float32)
c64 = partial(np.array, dtype=np.complex64)
i32 = partial(np.array, dtype=np.int32)

NAN, INF = np.nan, np.inf


def test_select_chooses_elements_rows_or_all():
    t, e = f32([[1, 2], [3, 4]]), f32([[5, 6], [7, 8]])
    one = raw_ops.Select(condition=np.array([[True, False], [False, True]]), x=t, y=e)
    assert one.tolist() == [[1, 6], [7, 4]]
    assert raw_ops.Select(condition=np.array([True, False]), x=t, y=e).tolist() == [[1, 2], [7, 8]]
    assert raw_ops.Select(condition=np.bool_(False), x=t, y=e).tolist() == e.tolist()


@pytest.mark.parametrize(
    ("condition", "t", "e", "message"),
    [
        ((2, 2), (2,), (2,), "same size and shape"),
        ((2,), (3, 2), (3, 2), "saw: 3 vs. 2"),
        ((1,), (), (1,), "at least a vector"),
        ((), (1,), (2,), "must have the same size"),
        ((1, 3, 2), (1, 3, 2), (2, 5, 3), "same size and shape"),
    ],
)
def test_select_does_not_broadcast(condition, t, e, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Select(condition=np.ones(condition, bool), x=np.ones(t), y=np.ones(e))


def test_select_v2_broadcasts():
    t = np.array([[b"x"], [b"y"]], object)
    result = raw_ops.SelectV2(condition=np.array([True, False]), t=t, e=np.array(b"-", object))
    assert result.tolist() == [[b"x", b"-"], [b"y", b"-"]]
    with pytest.raises(InvalidArgumentError, match="must be broadcastable"):
        raw_ops.SelectV2(condition=np.ones(2, bool), t=np.ones(3), e=np.ones(1))


def test_where():
    x = f32([[0, NAN], [-0.0, 2]])
    result = raw_ops.Where(condition=x)
    assert result.dtype == np.int64
    assert result.tolist() == [[0, 1], [1, 1]]
    assert raw_ops.Where(condition=np.zeros((2, 0, 3), bool)).shape == (0, 3)


def test_what_where_refuses():
    with pytest.raises(InvalidArgumentError, match="Unhandled input dimensions: 0"):
        raw_ops.Where(condition=np.bool_(True))
    with pytest.raises(UnimplementedError):
        raw_ops.Where(condition=f16([1]))


def test_clip_takes_nan_for_no_bound():
    t = f32([1, 5, 9, NAN])
    low, high = f32([2, NAN, 0, 0]), f32([3, 4, NAN, 7])
    result = raw_ops.ClipByValue(t=t, clip_value_min=low, clip_value_max=high)
    np.testing.assert_array_equal(result, f32([2, 4, 9, NAN]))


def test_the_lower_bound_wins():
    result = raw_ops.ClipByValue(
        t=i32([1, 5, 9]), clip_value_min=np.int32(6), clip_value_max=np.int32(4)
    )
    assert result.tolist() == [6, 6, 6]


def test_complex_numbers_are_clipped_part_by_part():
    result = raw_ops.ClipByValue(
        t=c64([9 - 3j, 2 + 1j]),
        clip_value_min=np.complex64(0 + 1j),
        clip_value_max=np.complex64(4 + 2j),
    )
    assert result.tolist() == [4 + 1j, 2 + 1j]


def test_bounds_do_not_broadcast():
    with pytest.raises(InvalidArgumentError, match="same shape as input, or a scalar"):
        raw_ops.ClipByValue(t=f32([1, 2]), clip_value_min=f32([0]), clip_value_max=np.float32(1))
