import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

MATRIX = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
NO_PADDINGS = np.zeros((0, 2), np.int32)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=2))
def test_pad(paddings):
    result = raw_ops.Pad(input=MATRIX, paddings=np.array(paddings, np.int64))
    np.testing.assert_array_equal(result, np.pad(MATRIX, paddings))
    assert not np.shares_memory(result, MATRIX)


def test_pad_with_a_value_and_with_empty_strings():
    result = raw_ops.PadV2(input=MATRIX[0], paddings=[[1, 2]], constant_values=np.float32(-1))
    assert result.tolist() == [-1, 1, 2, 3, -1, -1]
    assert raw_ops.Pad(input=[b"a"], paddings=[[1, 0]]).tolist() == [b"", b"a"]
    assert raw_ops.Pad(input=np.float32(3), paddings=NO_PADDINGS) == 3


@pytest.mark.parametrize(
    ("paddings", "message"),
    [
        ([[0, 0]], r"must be the rank of inputs\[1,2\] \[2,3\]"),
        ([[0], [0]], r"paddings must be a matrix with 2 columns: \[2,1\]"),
        ([[0, 0], [-1, 0]], "Paddings must be non-negative: -1 0"),
    ],
)
def test_pad_refuses(paddings, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Pad(input=MATRIX, paddings=paddings)


def test_pad_refuses_a_value_that_is_no_scalar():
    with pytest.raises(InvalidArgumentError, match=r"must be a scalar. Found: \[1\]"):
        raw_ops.PadV2(input=MATRIX, paddings=[[0, 0]] * 2, constant_values=MATRIX[0, :1])


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@given(
    st.tuples(st.integers(0, 1), st.integers(0, 1)), st.tuples(st.integers(0, 2), st.integers(0, 2))
)
def test_mirror_pad(mode, rows, columns):
    paddings = [rows, columns]
    result = raw_ops.MirrorPad(input=MATRIX, paddings=np.array(paddings, np.int32), mode=mode)
    np.testing.assert_array_equal(result, np.pad(MATRIX, paddings, mode.lower()))


def test_the_image_is_not_larger_than_the_tensor():
    with pytest.raises(
        InvalidArgumentError, match="less than the dimension size: 3, 0 not less than 3"
    ):
        raw_ops.MirrorPad(input=MATRIX[0], paddings=[[3, 0]], mode="REFLECT")
    with pytest.raises(InvalidArgumentError, match="dimension size: 0, 4 greater than 3"):
        raw_ops.MirrorPad(input=MATRIX[0], paddings=[[0, 4]], mode="SYMMETRIC")


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_the_gradient_is_the_transpose_of_the_padding(mode):
    paddings = np.array([[1, 0], [2, 1]], np.int32)
    padded = raw_ops.MirrorPad(input=MATRIX, paddings=paddings, mode=mode)
    weights = np.arange(padded.size, dtype=np.float32).reshape(padded.shape)
    grad = raw_ops.MirrorPadGrad(input=weights, paddings=paddings, mode=mode)
    assert np.vdot(grad, MATRIX) == np.vdot(weights, padded)


def test_the_gradient_refuses_paddings_larger_than_its_output():
    arguments = {"input": np.zeros(5, np.float32), "mode": "SYMMETRIC"}
    with pytest.raises(InvalidArgumentError, match="6 was not less than 5"):
        raw_ops.MirrorPadGrad(paddings=[[3, 3]], **arguments)
    with pytest.raises(InvalidArgumentError, match="output dimension size: 3, 0 greater than 2"):
        raw_ops.MirrorPadGrad(paddings=[[3, 0]], **arguments)
