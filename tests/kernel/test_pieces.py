"""Functions of arrays are computed piece by piece: the values are those of the whole, and time ends between pieces."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes

from opkernel.device.budget import Budget, spending
from opkernel.errors import DeadlineExceededError
from opkernel.kernel import by_rows, in_pieces, pieces


@pytest.fixture(autouse=True, scope="module")
def _small_pieces():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_PIECE", 5)
        yield


@given(mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=7))
def test_elements_in_pieces(shapes):
    a, b = (np.arange(np.prod(shape)).reshape(shape) for shape in shapes.input_shapes)
    found = in_pieces(lambda x, y: x * 10 + y, a, b)
    assert found.shape == shapes.result_shape
    assert np.array_equal(found, a * 10 + b)


@given(array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=9), st.booleans())
def test_rows(shape, in_two):
    rows = np.arange(np.prod(shape)).reshape(shape)

    def function(some):
        sums = some.sum(axis=tuple(range(1, some.ndim)))
        return (sums, some * 2) if in_two else sums

    found, expected = by_rows(function, rows), function(rows)
    for one, other in zip(*((found, expected) if in_two else ([found], [expected])), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@pytest.mark.parametrize("compute", [in_pieces, by_rows])
def test_time_ends_between_pieces(compute):
    calls: list[np.ndarray] = []

    def noted(some: np.ndarray) -> np.ndarray:
        calls.append(some)
        return some

    with spending(Budget(deadline=time.monotonic() - 1)), pytest.raises(DeadlineExceededError):
        compute(noted, np.zeros((100, 3)))
    assert len(calls) <= 1
