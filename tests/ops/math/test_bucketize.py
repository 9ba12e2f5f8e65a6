"""Bucketize."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_a_boundary_belongs_to_the_bucket_above(dtype: Any) -> None:
    x = np.array([[-5, 0, 2, 3], [5, 8, 11, 12]], dtype)
    found = raw_ops.Bucketize(input=x, boundaries=[0.0, 3.0, 8.0, 11.0])
    assert found.tolist() == [[0, 1, 1, 2], [2, 3, 4, 4]]
    assert found.dtype == np.int32


def test_odd_values() -> None:
    x = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert raw_ops.Bucketize(input=x, boundaries=[0.0, 1.0]).tolist() == [2, 2, 0]
    assert raw_ops.Bucketize(input=np.float64(0.1), boundaries=[0.1]) == 0  # 0.1 as float32 is more
    large = np.array([16777217], np.int32)  # rounds to 16777216 as float32
    assert raw_ops.Bucketize(input=large, boundaries=[16777216.0, 16777218.0]).tolist() == [1]
    assert raw_ops.Bucketize(input=large, boundaries=[]).tolist() == [0]


def test_boundaries_are_sorted() -> None:
    with pytest.raises(InvalidArgumentError, match="Expected sorted boundaries"):
        raw_ops.Bucketize(input=np.float32(0), boundaries=[1.0, 0.0])


@pytest.mark.parametrize(
    ("boundaries", "expected"),
    [
        ([float("nan"), -0.5, -0.25, 0.25], [1, 2, 3, 4, 4]),
        ([-0.5, float("nan"), 0.25], [2, 2, 2, 3, 3]),
        ([-1.0, float("nan"), float("nan"), 2.0, 3.0, float("nan"), 8.0], [3, 3, 3, 6, 7]),
    ],
)
def test_boundaries_of_nan(boundaries: list[float], expected: list[int]) -> None:
    found = raw_ops.Bucketize(input=np.array([-1.0, -0.5, 0.0, 2.0, 9.0]), boundaries=boundaries)
    assert found.tolist() == expected
