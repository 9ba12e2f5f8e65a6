"""UnravelIndex."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_every_element_of_a_tensor(dtype: Any) -> None:
    dims = np.array([2, 3, 4], dtype)
    found = raw_ops.UnravelIndex(indices=np.arange(24, dtype=dtype), dims=dims)
    np.testing.assert_array_equal(found.T, list(np.ndindex(2, 3, 4)))
    assert found.dtype == dtype
    assert raw_ops.UnravelIndex(indices=dtype(23), dims=dims).tolist() == [1, 2, 3]


def test_negative_indices_divide_towards_zero() -> None:
    found = raw_ops.UnravelIndex(indices=np.array([-1, -5]), dims=np.array([2, 3]))
    assert found.tolist() == [[0, -1], [-1, -2]]


def test_no_dims() -> None:
    none = np.zeros(0, np.int32)
    assert raw_ops.UnravelIndex(indices=np.int32(0), dims=none).shape == (0,)
    assert raw_ops.UnravelIndex(indices=np.zeros(2, np.int32), dims=none).shape == (0, 2)


@pytest.mark.parametrize(
    ("indices", "dims", "message"),
    [
        ([6], [2, 3], "out of bound"),
        ([1], [0, 3], "contains zero at index 0"),
        ([1], [2, -3], "dim = -3 at index 1"),
        ([1], [65536, 65536], "integer overflow"),
        ([[1]], [2], r"scalar or vector, got \"\[1,1\]\""),
        ([], [2], "empty tensor"),
        ([1], 2, "only be 1-D"),
    ],
)
def test_errors(indices: Any, dims: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.UnravelIndex(indices=np.array(indices, np.int32), dims=np.array(dims, np.int32))
