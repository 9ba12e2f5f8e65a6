import numpy as np
import pytest

from opkernel import float32, kernel_function, raw_ops
from opkernel.errors import InvalidArgumentError

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("shape_in", "sizes", "shape_out"),
    [
        ([2, 3], [3, 2], (3, 2)),
        ([2, 3], [-1], (6,)),
        ([2, 3], [3, -1, 1], (3, 2, 1)),
        ([1], [], ()),
        ([0, 3], [-1, 5], (0, 5)),
        # Where a given size is 0, zeros do not count when the size that is -1 is worked out.
        ([0, 3], [-1, 0], (3, 0)),
        ([0, 3], [0, 5, -1], (0, 5, 0)),
    ],
)
def test_reshape(shape_in, sizes, shape_out):
    tensor = np.zeros(shape_in, np.float32)
    result = raw_ops.Reshape(tensor=tensor, shape=np.array(sizes, np.int64))
    assert np.shape(result) == shape_out


def test_one_size_without_brackets_is_a_vector():
    assert raw_ops.Reshape(tensor=MATRIX, shape=6).shape == (6,)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([4], "tensor with 6 values, but the requested shape has 4"),
        ([4, -1], "tensor with 6 values, but the requested shape requires a multiple of 4"),
        ([0, -1], "tensor with 6 values, but the requested shape has 0"),
        ([-1, -1], "Only one input size may be -1, not both 0 and 1"),
        ([-2, -3], "Size 0 must be non-negative, not -2"),
        ([[6]], r"sizes input must be 1-D, not \[1,1\]"),
    ],
)
def test_reshape_refuses(sizes, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Reshape(tensor=MATRIX, shape=np.array(sizes, np.int32))


def test_reshape_of_elements_in_order_is_no_copy():
    reshape = kernel_function("Reshape", T=float32)
    assert np.shares_memory(reshape(MATRIX, np.int32([6])), MATRIX)


@pytest.mark.parametrize(
    ("dims", "shape"),
    [([], (3,)), ([0], (3, 1)), ([-1], (1, 3)), ([0, -1], (3,)), ([0, 0], (3, 1))],
)
def test_squeeze(dims, shape):
    assert raw_ops.Squeeze(input=np.zeros((1, 3, 1)), axis=dims).shape == shape


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([1], r"Can not squeeze dim\[1\], expected a dimension of 1, got 3"),
        ([-2], r"Can not squeeze dim\[1\], expected a dimension of 1, got 3"),
        ([3], "Tried to squeeze dim index 3 for tensor with 3 dimensions"),
    ],
)
def test_squeeze_refuses(dims, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Squeeze(input=np.zeros((1, 3, 1)), axis=dims)


@pytest.mark.parametrize(
    ("dim", "shape"), [(0, (1, 2, 3)), (1, (2, 1, 3)), (-1, (2, 3, 1)), ([-3], (1, 2, 3))]
)
def test_expand_dims(dim, shape):
    assert raw_ops.ExpandDims(input=MATRIX, axis=dim).shape == shape


@pytest.mark.parametrize(
    ("dim", "message"),
    [
        (3, "Tried to expand dim index 3 for tensor with 2 dimensions"),
        (-4, "Tried to expand dim index -4 for tensor with 2 dimensions"),
        ([0, 1], "'dim' must be a tensor with a single value"),
    ],
)
def test_expand_dims_refuses(dim, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.ExpandDims(input=MATRIX, axis=dim)
