import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import int64

NAN = np.nan


@given(st.lists(st.integers(0, 9), min_size=0, max_size=12), st.lists(st.integers(-1, 10)))
def test_bounds(row, values):
    rows = np.stack([np.sort(np.array(row, np.int8))] * 2)
    values = np.stack([np.array(values, np.int8)] * 2)
    lower = raw_ops.LowerBound(sorted_inputs=rows, values=values)
    upper = raw_ops.UpperBound(sorted_inputs=rows, values=values)
    assert lower.dtype == upper.dtype == np.int32
    np.testing.assert_array_equal(lower, [np.searchsorted(rows[0], values[0])] * 2)
    np.testing.assert_array_equal(upper, [np.searchsorted(rows[0], values[0], "right")] * 2)


def test_nan_ends_up_where_the_comparisons_lead():
    arguments = {
        "sorted_inputs": np.array([[1, 2, 2, 3, NAN]]),
        "values": np.array([[0, 2, 5, NAN]]),
        "out_type": int64,
    }
    assert raw_ops.LowerBound(**arguments).tolist() == [[0, 1, 4, 0]]
    assert raw_ops.UpperBound(**arguments).tolist() == [[0, 5, 5, 5]]


def test_it_refuses():
    matrix, vector = np.zeros((2, 3)), np.zeros(3)
    with pytest.raises(InvalidArgumentError, match="rank 1 for `sorted_inputs` argument"):
        raw_ops.LowerBound(sorted_inputs=vector, values=matrix)
    with pytest.raises(InvalidArgumentError, match="rank 1 for `values` argument"):
        raw_ops.LowerBound(sorted_inputs=matrix, values=vector)
    with pytest.raises(InvalidArgumentError, match="Leading dim_size of both tensors must match"):
        raw_ops.UpperBound(sorted_inputs=matrix, values=matrix[:1])
