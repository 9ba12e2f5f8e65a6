import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

SIZES = dict(zip("abcde", (2, 3, 4, 2, 1), strict=True))


def numbers(*shape, dtype=np.int64):
    return (np.arange(np.prod(shape)) % 7 - 3).reshape(shape).astype(dtype)


def einsum(equation, *inputs):
    return raw_ops.Einsum(inputs=list(inputs), equation=equation)


@st.composite
def subscripts(draw):
    inputs = draw(st.lists(st.text("abcde", max_size=4), min_size=1, max_size=2))
    labels = sorted(set("".join(inputs)))
    output = draw(st.permutations(labels)) if labels else []
    return inputs, "".join(output[: draw(st.integers(0, len(labels)))])


@given(subscripts())
def test_against_numpy(parts):
    inputs, output = parts
    operands = [numbers(*(SIZES[label] for label in labels)) for labels in inputs]
    equation = f"{','.join(inputs)}->{output}"
    result = einsum(equation, *operands)
    assert result.dtype == np.int64
    np.testing.assert_array_equal(result, np.einsum(equation, *operands))


@given(
    first=st.lists(st.sampled_from([1, 2, 3]), max_size=2),
    second=st.lists(st.sampled_from([1, 2, 3]), max_size=3),
    equation=st.sampled_from(
        ["...ij,...jk->...ik", "i...j,jk...->ki...", "...ij,kj...->...", "ij...,...j->...ij"]
    ),
)
def test_ellipses_broadcast(first, second, equation):
    shapes = []
    for labels, ellipsis in zip(equation.split("->")[0].split(","), (first, second), strict=True):
        before, _, after = labels.partition("...")
        sizes = {"i": 2, "j": 4, "k": 5}
        shapes.append([*map(sizes.get, before), *ellipsis, *map(sizes.get, after)])
    common = min(len(first), len(second))
    tails = zip(first[len(first) - common :], second[len(second) - common :], strict=True)
    assume(all(a == b or 1 in (a, b) for a, b in tails))
    x, y = numbers(*shapes[0]), numbers(*shapes[1])
    np.testing.assert_array_equal(einsum(equation, x, y), np.einsum(equation, x, y))


@pytest.mark.parametrize(
    ("equation", "x", "y"),
    [  # attention as in BERT
        ("abc,cde->abde", (2, 5, 6), (6, 3, 4)),
        ("aecd,abcd->acbe", (2, 5, 3, 4), (2, 5, 3, 4)),
        ("acbe,aecd->abcd", (2, 3, 5, 5), (2, 5, 3, 4)),
        ("abcd,cde->abe", (2, 5, 3, 4), (3, 4, 6)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64, np.int32])
def test_attention(equation, x, y, dtype):
    x, y = numbers(*x, dtype=dtype), numbers(*y, dtype=dtype)
    result = einsum(equation, x, y)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.einsum(equation, x, y))


def test_diagonals_are_made_without_spreading_nan():
    result = einsum("i->ii", np.array([np.nan, 2], np.float32))
    np.testing.assert_array_equal(result, [[np.nan, 0], [0, 2]])
    np.testing.assert_array_equal(einsum("ij->jij", numbers(2, 3))[:, 1], np.diag(numbers(2, 3)[1]))


def test_result_of_one_operand_is_new_memory():
    x = numbers(2, 3)
    assert not np.shares_memory(einsum("ij->ji", x), x)
    assert not np.shares_memory(einsum("ij->ij", x), x)


def test_empty_dimensions():
    result = einsum("ij,jk->ik", np.ones((2, 0), np.float32), np.ones((0, 3), np.float32))
    assert result.tolist() == np.zeros((2, 3)).tolist()
    assert einsum("ij->i", np.ones((2, 0), np.float32)).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij", [(2, 3)], "exactly one '->' in einsum equation: ij"),
        ("i,j,k->", [(1,)] * 3, "1 or 2 input subscripts in equation 'i,j,k->' but got: 3"),
        ("ij->i", [(2, 3), (2, 3)], "Expected 1 inputs for equation ij->i but got: 2"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "Expected dimension 3 at axis 0"),
        ("ii->i", [(2, 3)], "Expected dimension 2 at axis 1"),
        ("ij->i", [(2,)], "to have rank 2, got 1"),
        ("i...,...->i", [(2, 3), (3, 2)], r"2 broadcasting dimension\(s\) but no ellipsis"),
        ("...i,...i->...", [(2, 3), (4, 3)], "Expected dimension 2 at axis 0"),
    ],
)
def test_errors(equation, shapes, message):
    with pytest.raises(InvalidArgumentError, match=message):
        einsum(equation, *(np.ones(shape, np.float32) for shape in shapes))
