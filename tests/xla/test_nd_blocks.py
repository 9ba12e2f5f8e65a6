"""Tensors cut into blocks; literals from TensorFlow's programs."""

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

pytestmark = pytest.mark.jax

X = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
BLOCKS = [[[1, 2]], [[3, 0]], [[4, 5]], [[6, 0]]]


@opkernel.function(jit_compile=True)
def split(x):
    return raw_ops.XlaSplitND(input=x, N=4, num_splits=[2, 2], paddings=[0, 1])


def test_blocks():
    assert [block.tolist() for block in split(X)] == BLOCKS

    @opkernel.function(jit_compile=True)
    def joined(*blocks):
        return raw_ops.XlaConcatND(inputs=list(blocks), num_concats=[2, 2], paddings=[0, 1])

    np.testing.assert_array_equal(joined(*map(np.array, BLOCKS)), X)
    assert joined(X, X + 6, X + 12, X + 18).tolist() == [
        [1, 2, 3, 7, 8],
        [4, 5, 6, 10, 11],
        [13, 14, 15, 19, 20],
        [16, 17, 18, 22, 23],
    ]


def test_blocks_of_variables():
    variable, other = opkernel.Variable(X), opkernel.Variable(np.zeros((2, 3), np.int32))

    @opkernel.function(jit_compile=True)
    def copy():
        blocks = raw_ops.ReadVariableXlaSplitND(
            resource=variable.handle, T="int32", N=3, num_splits=[1, 3]
        )
        raw_ops.AssignVariableXlaConcatND(resource=other.handle, inputs=blocks, num_concats=[1, 3])
        return blocks[1]

    assert copy().tolist() == [[2], [5]]
    np.testing.assert_array_equal(other.numpy(), X)


def test_a_tensor_that_cannot_be_cut():
    with pytest.raises(InvalidArgumentError, match="cannot be cut into"):
        split(np.zeros((3, 3), np.int32))
