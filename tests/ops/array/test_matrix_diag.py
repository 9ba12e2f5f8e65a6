import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

MATRIX = np.arange(12, dtype=np.int32).reshape(3, 4)
ALIGNMENTS = ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]
BANDS = st.tuples(st.integers(-2, 3), st.integers(-2, 3)).map(sorted)


def part(matrix=MATRIX, **arguments):
    return raw_ops.MatrixDiagPartV3(**{"input": matrix, "k": 0, "padding_value": -9} | arguments)


def diag(diagonal, **arguments):
    defaults = {"k": 0, "num_rows": -1, "num_cols": -1, "padding_value": 0}
    return raw_ops.MatrixDiagV3(diagonal=np.array(diagonal), **defaults | arguments)


@pytest.mark.parametrize(
    ("align", "first", "last"),
    [
        ("RIGHT_LEFT", [-9, 2, 7], [4, 9, -9]),
        ("LEFT_RIGHT", [2, 7, -9], [-9, 4, 9]),
        ("LEFT_LEFT", [2, 7, -9], [4, 9, -9]),
        ("RIGHT_RIGHT", [-9, 2, 7], [-9, 4, 9]),
    ],
)
def test_short_diagonals_are_padded_on_the_side_that_align_leaves(align, first, last):
    stack = part(k=[-1, 2], align=align)
    assert stack.tolist() == [first, [1, 6, 11], [0, 5, 10], last]


@given(BANDS, st.sampled_from(ALIGNMENTS))
def test_setting_what_was_taken_out_changes_nothing_else(band, align):
    stack = part(k=band, align=align)
    for base in (MATRIX, np.zeros_like(MATRIX)):
        result = raw_ops.MatrixSetDiagV3(input=base, diagonal=stack, k=band, align=align)
        inside = np.tri(3, 4, band[1]) - np.tri(3, 4, band[0] - 1)
        np.testing.assert_array_equal(result, np.where(inside, MATRIX, base))


@given(BANDS, st.sampled_from(ALIGNMENTS))
def test_diag_puts_back_what_part_takes_out(band, align):
    stack = np.stack([part(k=band, align=align)] * 2)
    matrices = diag(stack, k=band, align=align, num_rows=3, num_cols=4, padding_value=7)
    inside = np.tri(3, 4, band[1]) - np.tri(3, 4, band[0] - 1)
    np.testing.assert_array_equal(matrices, [np.where(inside, MATRIX, 7)] * 2)


def test_the_first_version_is_about_the_main_diagonal():
    assert raw_ops.MatrixDiagPart(input=MATRIX).tolist() == [0, 5, 10]
    assert raw_ops.MatrixDiag(diagonal=[1, 2]).tolist() == [[1, 0], [0, 2]]
    result = raw_ops.MatrixSetDiag(input=MATRIX, diagonal=[7, 8, 9])
    assert np.diagonal(result).tolist() == [7, 8, 9]


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [
        ({"k": 1}, (4, 4)),
        ({"k": -2}, (5, 5)),
        ({"k": 1, "num_rows": 7}, (7, 4)),
        ({"k": 1, "num_cols": 6}, (3, 6)),
        ({"k": [0]}, (3, 3)),
    ],
)
def test_sizes_that_are_not_given_are_the_smallest(arguments, shape):
    assert diag([1, 2, 3], **arguments).shape == shape


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 1, "num_rows": 2}, "The number of rows is too small"),
        ({"k": 1, "num_rows": 7, "num_cols": 9}, "not consistent with the specified d_lower"),
        ({"k": [0, 1]}, "number of diagonals provided in the input does not match"),
        ({"k": [1, 0]}, "must not be larger than upper_diag_index: 1 > 0"),
        ({"k": [1, 2, 3]}, "only one or two elements, received 3 elements"),
        ({"k": [[1]]}, r"diag_index must be a scalar or vector, received shape: \[1,1\]"),
        ({"num_rows": [3]}, "num_rows must be a scalar"),
        ({"padding_value": [3]}, "padding_value must be a scalar"),
    ],
)
def test_diag_refuses(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        diag([1, 2, 3], **arguments)


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (4, "lower_diag_index is out of bound: 4. It must be between -3 and 4"),
        (-3, "lower_diag_index is out of bound: -3. It must be between -3 and 4"),
        ([0, 4], "upper_diag_index is out of bound: 4"),
    ],
)
def test_part_refuses_diagonals_outside_of_the_matrix(k, message):
    with pytest.raises(InvalidArgumentError, match=message):
        part(k=k)


def test_set_refuses_diagonals_of_another_length():
    with pytest.raises(InvalidArgumentError, match=r"Expected diagonal shape: \[3\]"):
        raw_ops.MatrixSetDiagV3(input=MATRIX, diagonal=[[1, 2, 3]], k=0)


def test_matrices_without_rows_have_empty_diagonals():
    assert part(MATRIX[:0]).shape == (0,)
    assert diag(np.zeros((2, 0), np.int32)).shape == (2, 0, 0)
