import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

TENSOR = np.arange(24, dtype=np.complex64).reshape(2, 3, 4) * (1 + 2j)


@given(st.permutations(range(3)))
def test_transpose(perm):
    result = raw_ops.Transpose(x=TENSOR, perm=perm)
    np.testing.assert_array_equal(result, TENSOR.transpose(perm))
    conjugate = raw_ops.ConjugateTranspose(x=TENSOR, perm=perm)
    np.testing.assert_array_equal(conjugate, TENSOR.conj().transpose(perm))
    inverse = raw_ops.InvertPermutation(x=perm)
    np.testing.assert_array_equal(raw_ops.Transpose(x=result, perm=inverse), TENSOR)


def test_dimensions_may_be_counted_from_the_end():
    assert raw_ops.Transpose(x=TENSOR, perm=[-1, 0, -2]).shape == (4, 2, 3)


def test_the_conjugate_of_strings_is_themselves():
    words = np.array([[b"a", b"b"]], object)
    assert raw_ops.ConjugateTranspose(x=words, perm=[1, 0]).tolist() == [[b"a"], [b"b"]]


@pytest.mark.parametrize(
    ("perm", "message"),
    [
        ([0, 0, 1], r"2 is missing from \{0,0,1\}"),
        ([0, 3, 1], r"3 is out of range \[0 .. 3\)"),
        ([0, 1], r"expects a vector of size 3. But input\(1\) is a vector of size 2"),
        ([[0, 1, 2]], r"perm must be rank 1, got shape \[1,3\]"),
    ],
)
def test_transpose_refuses(perm, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Transpose(x=TENSOR, perm=perm)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([0, 1, 5], "5 is not between 0 and 3"),
        ([0, -1], "-1 is not between 0 and 2"),
        ([1, 1, 2], "1 is duplicated in the input"),
        ([[0]], "invert_permutation expects a 1D vector"),
    ],
)
def test_what_is_no_permutation_has_no_inverse(x, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.InvertPermutation(x=x)
