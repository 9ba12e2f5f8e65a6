import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle
from opkernel.opdef.shapes.shape_handles import DimensionAlgebra as A

MAX = 2**63 - 1
dims = st.builds(DimensionHandle, st.integers(-1, 6))


def test_adding_nothing_gives_the_same_dimension():
    dim, unknown = A.make_dim(6), A.unknown_dim()
    zero = A.make_dim(0)
    assert A.add(dim, 0) is dim
    assert A.add(zero, dim) is dim
    assert A.add(unknown, zero) is unknown
    assert A.subtract(dim, 0) is dim
    assert A.multiply(dim, 1) is dim
    assert A.multiply(A.make_dim(1), dim) is dim
    assert A.divide(unknown, 1, evenly_divisible=True) is unknown
    assert A.multiply(unknown, zero) is zero
    assert A.multiply(zero, unknown) is zero


@pytest.mark.parametrize(
    ("operation", "first", "second", "value"),
    [
        (A.add, 6, 2, 8),
        (A.add, None, 2, -1),
        (A.add, 6, None, -1),
        (A.subtract, 6, 2, 4),
        (A.subtract, None, 6, -1),
        (A.multiply, 6, 2, 12),
        (A.multiply, 6, None, -1),
        (A.multiply, None, 0, 0),
        (A.min, 6, 2, 2),
        (A.min, None, 0, 0),
        (A.min, 0, None, 0),
        (A.min, 6, None, -1),
        (A.max, 6, 2, 6),
        (A.max, None, 0, -1),
    ],
)
def test_arithmetic(operation, first, second, value):
    assert operation(A.make_dim(first), A.make_dim(second)).value == value
    if second is not None:
        assert operation(A.make_dim(first), second).value == value


@given(dims, dims)
def test_min_and_max_are_one_of_the_two_or_unknown(first, second):
    assert A.min(first, second) in (first, second) or not A.value_known(A.min(first, second))
    if A.value_known(first) and A.value_known(second):
        assert A.min(first, second).value == min(first.value, second.value)
        assert A.max(first, second).value == max(first.value, second.value)
        assert A.subtract(A.add(first, second), second).value == first.value


@pytest.mark.parametrize(
    ("operation", "facts"),
    [
        (lambda: A.add(A.make_dim(MAX), 1), "from adding 9223372036854775807 and 1"),
        (lambda: A.subtract(A.make_dim(4), 5), "Negative dimension size.*subtracting 5 from 4"),
        (lambda: A.multiply(A.make_dim(2), MAX), "multiplying 2 and 9223372036854775807"),
        (lambda: A.divide(A.make_dim(6), 0, False), "Divisor must be positive but is 0"),
        (lambda: A.divide(A.make_dim(6), -1, False), "Divisor must be positive but is -1"),
        (lambda: A.divide(A.make_dim(6), 5, True), "evenly divisible by 5 but is 6"),
    ],
)
def test_results_that_are_no_size_are_refused(operation, facts):
    with pytest.raises(InvalidArgumentError, match=facts):
        operation()


def test_divide():
    six = A.make_dim(6)
    assert A.divide(six, 4, evenly_divisible=False).value == 1
    assert A.divide(six, A.make_dim(3), evenly_divisible=True).value == 2
    assert A.divide(six, A.unknown_dim(), evenly_divisible=True).value == -1
    assert A.divide(A.unknown_dim(), 2, evenly_divisible=True).value == -1
