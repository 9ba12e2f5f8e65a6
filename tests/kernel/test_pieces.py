"""Functions of arrays are computed piece by piece: the values are those of the whole, and time ends between pieces."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes
from tests.kernel.kernels import make_kernel

from opkernel.device.budget import Budget, spending
from opkernel.errors import DeadlineExceededError, ResourceExhaustedError
from opkernel.kernel import (
    FunctionKernel,
    KernelContract,
    bounded,
    by_rows,
    in_pieces,
    under_budget,
)
from opkernel.kernel.bounded import computed_in_pieces, may_go_in_pieces


@pytest.fixture(autouse=True, scope="module")
def _small_pieces():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded, "_PIECE", 5)
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


@given(mutually_broadcastable_shapes(num_shapes=2, min_side=1, max_dims=3, max_side=7))
def test_no_piece_is_large_and_each_element_is_computed_once(shapes):
    seen = []

    def noted(x, y):
        seen.append(np.broadcast_shapes(x.shape, y.shape))
        return x + y

    in_pieces(noted, *(np.zeros(shape) for shape in shapes.input_shapes))
    assert sum(map(math.prod, seen)) == math.prod(shapes.result_shape)
    row = math.prod(shapes.result_shape) // max(shapes.result_shape, default=1)
    assert max(map(math.prod, seen)) <= max(5, row)


def noting(sizes):
    """A function that gives what it gets, and notes how many elements that has."""

    def noted(some):
        sizes.append(some.size)
        return some

    return noted


@pytest.mark.parametrize(
    ("shape", "parts"),
    [
        ((5,), [5]),
        ((6,), [5, 1]),
        ((11,), [5, 5, 1]),
        ((2, 6), [4, 4, 4]),
        ((7, 1), [5, 2]),
        ((), [1]),
    ],
)
def test_pieces_are_cut_along_the_longest_dimension(shape, parts):
    seen: list[int] = []
    in_pieces(noting(seen), np.zeros(shape))
    assert seen == parts


@pytest.mark.parametrize(
    ("rows", "parts"),
    [(9, [9]), (10, [10]), (11, [5, 5, 1]), (0, [0])],
)
def test_rows_are_taken_together_while_they_are_few(rows, parts):
    seen: list[int] = []
    by_rows(noting(seen), np.zeros(rows))
    assert seen == parts


@pytest.mark.parametrize(("width", "parts"), [(2, [2] * 5 + [1]), (5, [1] * 11), (50, [1] * 11)])
def test_rows_that_are_long_are_taken_some_at_a_time(width, parts):
    seen: list[int] = []
    by_rows(noting(seen), np.zeros((11, width)))
    assert seen == [part * width for part in parts]


ELEMENTWISE = KernelContract(outputs_as_declared=True, elementwise=True)
ONE = {"inputs": ["x: float"], "outputs": ["y: float"]}


@pytest.mark.parametrize(
    ("claims", "declared", "may"),
    [
        (ELEMENTWISE, ONE, True),
        (KernelContract(elementwise=True), ONE, False),
        (KernelContract(outputs_as_declared=True), ONE, False),
        (ELEMENTWISE, {**ONE, "outputs": ["y: float", "z: float"]}, False),
        (ELEMENTWISE, {**ONE, "inputs": ["x: N * float"], "attrs": ["N: int = 1"]}, False),
    ],
)
def test_kernels_that_may_go_in_pieces(claims, declared, may):
    kernel = make_kernel(lambda x: x, **declared)
    assert isinstance(kernel, FunctionKernel)
    assert may_go_in_pieces(kernel, claims) is may


@pytest.mark.parametrize(
    ("shapes", "same_shapes", "parts"),
    [
        ([(12,), (12,)], True, [5, 5, 2]),
        ([(12,), (12,)], False, [5, 5, 2]),
        ([(12,), ()], False, [5, 5, 2]),
        ([(12, 1), (1,)], False, [5, 5, 2]),
        ([(12,), ()], True, [12]),  # of inputs that it may refuse
        ([(12,), (5,)], False, [12]),  # of inputs that it must refuse
    ],
)
def test_a_kernel_goes_in_pieces_where_its_claims_hold(shapes, same_shapes, parts):
    seen: list[int] = []
    checks: list[bool] = []

    def noted(x, y):
        seen.append(x.size)
        return x + 1

    claims = replace(ELEMENTWISE, same_shapes=same_shapes)
    x, y = (np.arange(math.prod(shape)).reshape(shape) for shape in shapes)
    found = computed_in_pieces(noted, claims, [x, y], lambda: checks.append(True))
    np.testing.assert_array_equal(found, x + 1)
    assert seen == parts
    assert len(checks) == len(parts) - 1  # between pieces


def test_a_large_result_is_memory_of_the_step():
    with under_budget(Budget(40)):
        assert in_pieces(np.negative, np.zeros(10, np.float32)).size == 10
        with pytest.raises(ResourceExhaustedError):
            in_pieces(np.negative, np.zeros(11, np.float32))


@pytest.mark.parametrize("compute", [in_pieces, by_rows])
def test_time_ends_between_pieces(compute):
    calls: list[np.ndarray] = []

    def noted(some: np.ndarray) -> np.ndarray:
        calls.append(some)
        return some

    with spending(Budget(deadline=time.monotonic() - 1)), pytest.raises(DeadlineExceededError):
        compute(noted, np.zeros((100, 3)))
    assert len(calls) <= 1
