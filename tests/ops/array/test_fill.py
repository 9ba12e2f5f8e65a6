import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError


@pytest.mark.parametrize(
    "value", [np.float16(1.5), np.bool_(True), np.int64(-3), ml_dtypes.bfloat16(2)]
)
def test_fill(value):
    result = raw_ops.Fill(dims=[2, 3], value=value)
    assert (result.shape, result.dtype) == ((2, 3), value.dtype)
    assert (result == value).all()


def test_fill_with_a_string_keeps_all_its_bytes():
    assert raw_ops.Fill(dims=[2], value=b"a\0").tolist() == [b"a\0", b"a\0"]


def test_old_ways_to_write_scalars_and_vectors():
    assert raw_ops.Fill(dims=2, value=[7]).tolist() == [7, 7]
    assert raw_ops.Range(start=[1], limit=4, delta=[1]).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("dims", "value", "message"),
    [
        ([2, -1], 1, "-1"),
        ([[2]], 1, r"dims must represent a vector, got shape \[1,1\]"),
        ([2], [1, 2], r"value must represent a scalar, got shape \[2\]"),
        (np.array([2**40, 2**40]), 1, "elements"),
    ],
)
def test_fill_refuses(dims, value, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Fill(dims=dims, value=value)


def test_fill_takes_no_memory_that_is_not_there():
    with pytest.raises(ResourceExhaustedError, match=r"shape\[1048576, 1048576\] and type int32"):
        raw_ops.Fill(dims=[2**20, 2**20], value=1)


@pytest.mark.parametrize(
    ("start", "limit", "delta", "expected"),
    [
        (3, 18, 5, [3, 8, 13]),
        (3, -4, -3, [3, 0, -3]),
        (5, 5, 1, []),
        (-(2**31), 2**31 - 1, 2**31 - 1, [-(2**31), -1, 2**31 - 2]),
    ],
)
def test_range_of_integers(start, limit, delta, expected):
    result = raw_ops.Range(start=start, limit=limit, delta=delta)
    assert (result.tolist(), result.dtype) == (expected, np.int32)


def test_range_of_floats_does_not_add_up_rounding_errors():
    step = np.float32(0.1)
    result = raw_ops.Range(start=np.float32(0), limit=np.float32(30), delta=step)
    np.testing.assert_array_equal(result, np.arange(300, dtype=np.float32) * step)


@pytest.mark.parametrize(
    ("start", "limit", "delta", "message"),
    [
        (0, 1, 0, "Requires delta != 0"),
        (2, 1, 1, "Requires start <= limit when delta > 0: 2/1"),
        (1, 2, -1, "Requires start >= limit when delta < 0: 1/2"),
        (0.0, np.inf, 1.0, "<= 9223372036854775807"),
        (np.nan, 1.0, 1.0, "Requires start <= limit when delta > 0: nan/1.0"),
        ([1, 2], 3, 1, r"start must be a scalar, not shape \[2\]"),
    ],
)
def test_range_refuses(start, limit, delta, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Range(start=np.array(start), limit=np.array(limit), delta=np.array(delta))


def test_range_wider_than_its_type_can_count():
    ends = {"start": np.int64(-(2**63)), "limit": np.int64(2**63 - 1)}
    with pytest.raises(InvalidArgumentError, match="<= 9223372036854775807"):
        raw_ops.Range(**ends, delta=np.int64(1))


def test_lin_space_ends_where_it_is_told_to():
    start, stop = np.float32(0.1), np.float32(0.7)
    result = raw_ops.LinSpace(start=start, stop=stop, num=4)
    np.testing.assert_allclose(result, [0.1, 0.3, 0.5, 0.7], rtol=1e-6)
    assert result[-1] == stop
    assert raw_ops.LinSpace(start=start, stop=stop, num=1).tolist() == [start]
    with pytest.raises(InvalidArgumentError, match="Requires num > 0: 0"):
        raw_ops.LinSpace(start=start, stop=stop, num=0)


def test_a_range_of_all_numbers_is_a_matter_of_memory():
    with pytest.raises(ResourceExhaustedError):
        raw_ops.Range(start=np.int64(0), limit=np.int64(2**63 - 1), delta=np.int64(1))


def test_a_range_without_end():
    for dtype in (np.float16, np.float32):
        with pytest.raises(InvalidArgumentError, match=r"Requires \(\(limit - start\) / delta\)"):
            raw_ops.Range(start=dtype(1), limit=dtype(np.inf), delta=dtype(1))
