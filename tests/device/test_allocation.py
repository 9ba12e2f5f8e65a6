"""What may be allocated: sizes are data."""

from typing import Any

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import allocate, allocation_limit, check_allocation
from opkernel.types import float32, int8, string


def test_a_shape_within_the_limit_is_returned() -> None:
    with allocation_limit(24):
        assert check_allocation([2, 3], float32) == (2, 3)
        with pytest.raises(ResourceExhaustedError, match=r"shape\[2, 4\] and type float"):
            check_allocation([2, 4], float32)


@pytest.mark.parametrize("shape", [[-1], [3, -(2**62)], [2**32, 2**31], [0, 2**32, 2**32]])
def test_a_shape_that_is_none(shape: list[int]) -> None:
    for attempt in (check_allocation, allocate):
        with pytest.raises(InvalidArgumentError):
            attempt(shape, int8)


def test_an_empty_shape_that_numpy_has_no_array_for() -> None:
    assert check_allocation([0, 2**31, 2**31], int8) == (0, 2**31, 2**31)
    for dtype in (float32, string):
        with pytest.raises(InvalidArgumentError, match="NumPy has no array of shape"):
            check_allocation([0, 2**31, 2**31], dtype)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), [2, 3], np.array([2, 3]), (3, 0, 2**40)])
def test_allocate_gives_an_array_of_the_shape(shape: tuple[int, ...]) -> None:
    array = allocate(shape, float32)
    assert array.shape == tuple(shape)
    assert array.dtype == np.float32


def test_allocate_refuses_what_exceeds_the_limit() -> None:
    with allocation_limit(24):
        assert allocate([2, 3], float32).nbytes == 24
        with pytest.raises(ResourceExhaustedError, match=r"shape\[2, 4\] and type float"):
            allocate([2, 4], float32)


@pytest.mark.parametrize("shape", [[-2, -3], [2**32 + 1, 2**32 + 1]])
def test_allocate_is_not_fooled_by_products_that_look_small(shape: list[int]) -> None:
    sizes: Any
    for sizes in (shape, [np.int64(size) for size in shape]):
        with np.errstate(all="ignore"), pytest.raises(InvalidArgumentError):
            allocate(sizes, int8)
