"""What may be allocated: sizes are data."""

import pytest

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import allocation_limit, check_allocation
from opkernel.types import float32, int8, string


def test_a_shape_within_the_limit_is_returned() -> None:
    with allocation_limit(24):
        assert check_allocation([2, 3], float32) == (2, 3)
        with pytest.raises(ResourceExhaustedError, match=r"shape\[2, 4\] and type float"):
            check_allocation([2, 4], float32)


@pytest.mark.parametrize("shape", [[-1], [3, -(2**62)], [2**32, 2**31], [0, 2**32, 2**32]])
def test_a_shape_that_is_none(shape: list[int]) -> None:
    with pytest.raises(InvalidArgumentError):
        check_allocation(shape, int8)


def test_an_empty_shape_that_numpy_has_no_array_for() -> None:
    assert check_allocation([0, 2**31, 2**31], int8) == (0, 2**31, 2**31)
    for dtype in (float32, string):
        with pytest.raises(InvalidArgumentError, match="NumPy has no arrays of shape"):
            check_allocation([0, 2**31, 2**31], dtype)
