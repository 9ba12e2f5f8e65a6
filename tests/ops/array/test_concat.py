import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

A = np.array([[1, 2], [3, 4]], np.uint16)
B = np.array([[5], [6]], np.uint16)


@pytest.mark.parametrize("axis", [1, -1, [1]])
def test_concat(axis):
    expected = [[1, 2, 5], [3, 4, 6]]
    assert raw_ops.ConcatV2(values=[A, B], axis=axis).tolist() == expected
    assert raw_ops.Concat(values=[A, B], concat_dim=axis).tolist() == expected


@pytest.mark.parametrize(
    ("values", "axis", "message"),
    [
        (
            [A, B],
            0,
            r"Dimension 1 in both shapes must be equal: shape\[0\] = \[2,2\] vs. shape\[1\]",
        ),
        ([A, A], 2, r"dimensions in the range \[-2, 2\), but got 2"),
        (
            [A, A[0]],
            0,
            r"Ranks of all input tensors should match: .*\[2,2\] vs. shape\[1\] = \[2\]",
        ),
        ([A[0, 0], A[0, 0]], 0, "Can't concatenate scalars"),
        ([A, A], [0, 1], r"axis tensor should be a scalar integer, but got shape \[2\]"),
    ],
)
def test_concat_refuses(values, axis, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.ConcatV2(values=values, axis=axis)


def test_offsets_are_where_concat_puts_the_parts():
    offsets = raw_ops.ConcatOffset(concat_dim=-1, shape=[[2, 2], [2, 1], [2, 5]])
    assert [offset.tolist() for offset in offsets] == [[0, 0], [0, 2], [0, 3]]


@pytest.mark.parametrize(
    ("axis", "shapes", "message"),
    [
        (2, [[1, 2], [1, 2]], "Concat dim is out of range: 2 vs. 2"),
        (0, [[1, 2], [1]], "input 1 should contain 2 elements, but got 1"),
        (0, [[1, 2], [1, 3]], r"Input 1 has shape \[1 3\] and doesn't match input 0 .*\[1 2\]"),
        (0, [[1, 2], 3], r"input 1 should be a vector, but got shape \[\]"),
    ],
)
def test_offsets_refuse(axis, shapes, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.ConcatOffset(concat_dim=axis, shape=shapes)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_pack(axis):
    result = raw_ops.Pack(values=[A, A + 10], axis=axis)
    np.testing.assert_array_equal(result, np.stack([A, A + 10], axis))
    assert result.dtype == np.uint16


def test_packed_scalars_keep_their_type_and_strings_their_bytes():
    packed = raw_ops.Pack(values=[np.float16(1), np.float16(2)])
    assert (packed.tolist(), packed.dtype) == ([1, 2], np.float16)
    assert raw_ops.Pack(values=[b"a\0", b""]).tolist() == [b"a\0", b""]


def test_pack_refuses():
    with pytest.raises(InvalidArgumentError, match=r"axis = 3 not in \[-3, 3\)"):
        raw_ops.Pack(values=[A, A], axis=3)
    with pytest.raises(InvalidArgumentError, match=r"\[2,2\] != values\[1\].shape = \[2,1\]"):
        raw_ops.Pack(values=[A, B])


def test_the_axis_that_numpy_takes_for_none():
    with pytest.raises(InvalidArgumentError, match=r"in the range \[-1, 1\), but got -2147483648"):
        raw_ops.ConcatV2(values=[np.arange(2), np.arange(2)], axis=np.int32(-(2**31)))
