import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError

TENSOR = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize("axes", [[], [1], [0, 2], [-1, 1]])
def test_reverse(axes):
    expected = np.flip(TENSOR, axes)
    result = raw_ops.ReverseV2(tensor=TENSOR, axis=np.array(axes, np.int32))
    np.testing.assert_array_equal(result, expected)
    dims = [axis in axes or axis - 3 in axes for axis in range(3)]
    np.testing.assert_array_equal(raw_ops.Reverse(tensor=TENSOR, dims=dims), expected)


def test_a_scalar_is_returned_whatever_the_axes():
    assert raw_ops.ReverseV2(tensor=7, axis=[[5]]) == 7


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ([3], r"'axis'\[0\] = 3 is out of valid range \[0, 2"),
        ([1, -2], "axis 1 specified more than once"),
        ([[1]], "'dims' must be 1-dimension, not 2"),
    ],
)
def test_reverse_refuses(axis, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.ReverseV2(tensor=TENSOR, axis=axis)


def test_the_first_form_refuses_empty_tensors_and_wrong_lengths():
    with pytest.raises(InvalidArgumentError, match="Invalid input first dimension"):
        raw_ops.Reverse(tensor=TENSOR[:0], dims=[True] * 3)
    with pytest.raises(InvalidArgumentError, match="'input' has 3'dims' has 1 values"):
        raw_ops.Reverse(tensor=TENSOR, dims=[True])


@pytest.mark.parametrize(("seq_dim", "batch_dim"), [(1, 0), (0, 1), (2, 1), (1, 2)])
def test_of_each_sequence_the_first_elements_are_reversed(seq_dim, batch_dim):
    lengths = np.arange(TENSOR.shape[batch_dim]) % (TENSOR.shape[seq_dim] + 1)
    result = raw_ops.ReverseSequence(
        input=TENSOR, seq_lengths=lengths, seq_dim=seq_dim, batch_dim=batch_dim
    )
    given = np.moveaxis(TENSOR, (batch_dim, seq_dim), (0, 1))
    got = np.moveaxis(result, (batch_dim, seq_dim), (0, 1))
    for one, reversed_one, length in zip(given, got, lengths, strict=True):
        expected = np.concatenate([one[:length][::-1], one[length:]])
        np.testing.assert_array_equal(reversed_one, expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seq_dim": 3}, r"seq_dim must be < input rank \( 3 vs. 3\)"),
        ({"seq_dim": -1}, "Invalid seq_dim -1"),
        ({"batch_dim": -1}, "Invalid batch_dim -1"),
        ({"batch_dim": 1}, "batch_dim == seq_dim == 1"),
        ({"seq_lengths": [1, 4]}, r"seq_lens\(1\) > input.dims\(1\)"),
        ({"seq_lengths": [-1, 1]}, r"seq_lens\(0\) < 0"),
        ({"seq_lengths": [1]}, r"input.dims\(0\), \(1 vs. 2\)"),
        ({"seq_lengths": 1}, "seq_lengths must be 1-dim, not 0"),
    ],
)
def test_reverse_sequence_refuses(arguments, message):
    defaults = {"seq_lengths": [1, 1], "seq_dim": 1, "batch_dim": 0}
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.ReverseSequence(input=TENSOR, **defaults | arguments)


def test_a_rank_of_9():
    with pytest.raises(UnimplementedError, match="rank > 8"):
        raw_ops.ReverseV2(tensor=np.zeros((1,) * 9), axis=[0])
