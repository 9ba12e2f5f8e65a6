from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops

u8 = partial(np.array, dtype=np.uint8)

SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_shifts_are_bounded_by_the_width(dtype):
    bits = np.dtype(dtype).itemsize * 8
    places = np.array([1, bits - 1, bits, 100], dtype)
    top = np.array(1, dtype) << np.array(bits - 1, dtype)
    ones = np.ones(4, dtype)
    assert raw_ops.LeftShift(x=ones, y=places).tolist() == [2, top, top, top]
    assert raw_ops.RightShift(x=np.full(4, top), y=places).tolist() == [
        top >> np.array(1, dtype),
        *[top >> np.array(bits - 1, dtype)] * 3,
    ]


@pytest.mark.parametrize("dtype", SIGNED)
def test_negative_places_do_not_shift(dtype):
    x, y = np.array([5, -5], dtype), np.array([-1, -100], dtype)
    assert raw_ops.LeftShift(x=x, y=y).tolist() == [5, -5]
    assert raw_ops.RightShift(x=x, y=y).tolist() == [5, -5]


@pytest.mark.parametrize("dtype", SIGNED)
def test_population_count_of_negative_numbers(dtype):
    bits = np.dtype(dtype).itemsize * 8
    result = raw_ops.PopulationCount(x=np.array([[-1, -2], [0, 5]], dtype))
    assert result.dtype == np.uint8
    assert result.tolist() == [[bits, bits - 1], [0, 2]]


def test_population_count_of_views_and_scalars():
    x = np.arange(16, dtype=np.uint16).reshape(4, 4).T
    expected = [[int(v).bit_count() for v in row] for row in x]
    assert raw_ops.PopulationCount(x=x).tolist() == expected
    assert raw_ops.PopulationCount(x=np.int32(7)) == 3


def test_logic():
    x, y = u8([0b1100]), u8([0b1010])
    assert raw_ops.BitwiseAnd(x=x, y=y).tolist() == [0b1000]
    assert raw_ops.BitwiseOr(x=x, y=y).tolist() == [0b1110]
    assert raw_ops.BitwiseXor(x=x, y=y).tolist() == [0b0110]
    assert raw_ops.Invert(x=x).tolist() == [0b11110011]
