import numpy as np
import pytest

from opkernel import float32, kernel_function, raw_ops
from opkernel.errors import InvalidArgumentError

MATRIX = np.arange(12, dtype=np.float32).reshape(2, 6)


def sizes_of(parts):
    return [part.shape for part in parts]


def test_split_makes_views_that_are_the_tensor_again_side_by_side():
    parts = raw_ops.Split(axis=-1, value=MATRIX, num_split=3)
    assert sizes_of(parts) == [(2, 2)] * 3
    split = kernel_function("Split", T=float32, num_split=3)
    assert all(np.shares_memory(part, MATRIX) for part in split(np.int32(-1), MATRIX))
    np.testing.assert_array_equal(np.concatenate(parts, 1), MATRIX)


@pytest.mark.parametrize(
    ("split_dim", "num_split", "message"),
    [
        (1, 4, r"split_dim 1 \(size = 6\) and num_split 4"),
        (2, 1, r"-input rank\(-2\) <= split_dim < input rank \(2\), but got 2"),
        ([1, 0], 1, "split_dim must be a scalar but has rank 1"),
    ],
)
def test_split_refuses(split_dim, num_split, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Split(axis=split_dim, value=MATRIX, num_split=num_split)


def split_v(sizes, axis=1):
    sizes = np.array(sizes, np.int64)
    return raw_ops.SplitV(value=MATRIX, size_splits=sizes, axis=axis, num_split=len(sizes))


def test_split_v_fills_in_the_size_that_is_minus_one():
    assert sizes_of(split_v([1, -1, 2])) == [(2, 1), (2, 3), (2, 2)]
    assert sizes_of(split_v([6, 0])) == [(2, 6), (2, 0)]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([-1, -1], "There can only be one -1 in the input"),
        ([7, -1], "Determined shape must either match .* Got: 7"),
        ([2, 2], "Determined shape must either match .* Got: 4"),
        ([8, -2], "Split size at index 1 must be >= 0. Got: -2"),
        # A single output is not worked out.
        ([-1], "Input size: 6 output size: -1"),
        ([[3], [3]], "size of the split_tensor must be 1-D .* got 2 -D and 2 elements"),
    ],
)
def test_split_v_refuses(sizes, message):
    with pytest.raises(InvalidArgumentError, match=message):
        split_v(sizes)


@pytest.mark.parametrize("axis", [1, -1])
def test_unpack(axis):
    slices = raw_ops.Unpack(value=MATRIX, num=6, axis=axis)
    assert [part.tolist() for part in slices] == MATRIX.T.tolist()


def test_unpack_refuses_what_it_cannot_count():
    with pytest.raises(InvalidArgumentError, match=r"axis 0 must equal 3, got shape \[2,6\]"):
        raw_ops.Unpack(value=MATRIX, num=3)
    with pytest.raises(InvalidArgumentError, match=r"axis = 2 not in \[-2, 2\)"):
        raw_ops.Unpack(value=MATRIX, num=2, axis=2)
