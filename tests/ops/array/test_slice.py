import numpy as np
import pytest

from opkernel import int16, int32, kernel_function, raw_ops
from opkernel.errors import InvalidArgumentError

MATRIX = np.arange(12, dtype=np.int16).reshape(3, 4)


def test_minus_one_takes_what_is_left():
    result = raw_ops.Slice(input=MATRIX, begin=[1, 2], size=[-1, 1])
    assert result.tolist() == [[6], [10]]


def test_it_is_a_view():
    cut = kernel_function("Slice", T=int16, Index=int32)
    assert np.shares_memory(cut(MATRIX, np.int32([1, 2]), np.int32([-1, 1])), MATRIX)


def test_a_scalar_is_its_own_slice():
    empty = np.zeros(0, np.int32)
    assert raw_ops.Slice(input=np.float32(3), begin=empty, size=empty) == 3


@pytest.mark.parametrize(
    ("begin", "size", "message"),
    [
        ([4, 0], [0, 0], r"Expected begin\[0\] in \[0, 3\], but got 4"),
        ([-1, 0], [1, 1], r"Expected begin\[0\] in \[0, 3\], but got -1"),
        ([0, 2], [1, 3], r"Expected size\[1\] in \[0, 2\], but got 3"),
        ([0, 2], [1, -2], r"Expected size\[1\] in \[0, 2\], but got -2"),
        ([0], [1], r"1-D tensors of size 2, but got shapes \[1\] and \[1\] instead"),
    ],
)
def test_it_refuses(begin, size, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Slice(input=MATRIX, begin=begin, size=size)


def test_of_an_empty_dimension_only_nothing_can_be_taken():
    with pytest.raises(InvalidArgumentError, match=r"when input.dim_size\(0\) == 0"):
        raw_ops.Slice(input=np.zeros(0), begin=[1], size=[0])
