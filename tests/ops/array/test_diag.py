import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_diag_and_back():
    diagonal = np.array([[1, 2, 3], [4, 5, 6]], np.float16)
    tensor = raw_ops.Diag(diagonal=diagonal)
    assert tensor.shape == (2, 3, 2, 3)
    assert tensor[1, 2, 1, 2] == 6
    assert np.count_nonzero(tensor) == 6
    np.testing.assert_array_equal(raw_ops.DiagPart(input=tensor), diagonal)


def test_diag_part_refuses():
    with pytest.raises(InvalidArgumentError, match=r"even and positive, got shape \[3\]"):
        raw_ops.DiagPart(input=MATRIX[:, 0])
    with pytest.raises(InvalidArgumentError, match=r"\[3,4\]: dimensions 0 and 1 do not match"):
        raw_ops.DiagPart(input=MATRIX)
    with pytest.raises(InvalidArgumentError, match="Input must be at least rank 1, got 0"):
        raw_ops.Diag(diagonal=np.float32(1))


@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (-1, 0), (0, -1), (1, 2), (-1, -1), (3, 4)])
def test_band_part(lower, upper):
    distance = np.arange(4) - np.arange(3)[:, None]
    inside = ((lower < 0) | (distance >= -lower)) & ((upper < 0) | (distance <= upper))
    result = raw_ops.MatrixBandPart(input=MATRIX, num_lower=lower, num_upper=upper)
    np.testing.assert_array_equal(result, np.where(inside, MATRIX, 0))


def test_outside_of_the_band_nan_is_0():
    matrix = np.full((2, 2), np.nan)
    result = raw_ops.MatrixBandPart(input=matrix, num_lower=0, num_upper=0)
    np.testing.assert_array_equal(result, [[np.nan, 0], [0, np.nan]])


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (4, 0, r"less or equal to number of rows \(3\) got: 4"),
        (0, 5, r"less or equal to number of columns \(4\) got: 5"),
        ([0], 0, r"num_lower must be scalar, got shape \[1\]"),
    ],
)
def test_band_part_refuses(lower, upper, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.MatrixBandPart(input=MATRIX, num_lower=lower, num_upper=upper)
