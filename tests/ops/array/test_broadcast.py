import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as npst

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("multiples", [(1, 1), (2, 3), (0, 2), (3, 1)])
def test_tile(multiples):
    result = raw_ops.Tile(input=MATRIX, multiples=np.array(multiples))
    np.testing.assert_array_equal(result, np.tile(MATRIX, multiples))
    assert not np.shares_memory(result, MATRIX)


def test_tile_refuses_what_tensorflow_has_no_kernel_for_only_where_it_must_repeat():
    narrow = np.array([1, 2], np.uint16)
    assert raw_ops.Tile(input=narrow, multiples=[1]).tolist() == [1, 2]
    with pytest.raises(UnimplementedError, match="DataType : uint16, Dimension : 1"):
        raw_ops.Tile(input=narrow, multiples=[2])


@pytest.mark.parametrize(
    ("multiples", "message"),
    [
        ([1], "vector of length 2 but got length 1"),
        ([[1, 1]], r"Expected multiples to be 1-D, but got shape \[1,2\]"),
        ([1, -1], r"Expected multiples\[1\] >= 0, but got -1"),
        ([2**62, 4], "elements"),
    ],
)
def test_tile_refuses(multiples, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Tile(input=MATRIX, multiples=np.array(multiples))


def test_tile_takes_no_memory_that_is_not_there():
    with pytest.raises(ResourceExhaustedError):
        raw_ops.Tile(input=MATRIX, multiples=np.array([2**30, 2**20]))


@given(npst.mutually_broadcastable_shapes(num_shapes=1, base_shape=(2, 1, 3)))
def test_broadcast_to(shapes):
    (shape,) = shapes.input_shapes
    tensor = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    result = raw_ops.BroadcastTo(input=tensor, shape=np.array(shapes.result_shape))
    np.testing.assert_array_equal(result, np.broadcast_to(tensor, shapes.result_shape))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([3], r"Rank of input \(2\) must be no greater than rank of output shape \(1\)"),
        ([2, 4], r"Incompatible shapes: \[2,3\] vs. \[2,4\]"),
        ([[2, 3]], r"shape must be a vector of \{int32,int64\}, got shape \[1,2\]"),
        ([-1, 3], "-1"),
    ],
)
def test_broadcast_to_refuses(shape, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.BroadcastTo(input=MATRIX, shape=shape)


@pytest.mark.parametrize(
    ("s0", "s1", "shape", "r0", "r1"),
    [
        ([2, 1], [1, 3], [2, 3], [1], [0]),
        ([3], [2, 3], [2, 3], [0], []),
        ([0], [1], [0], [], [0]),
        ([1, 0, 1], [5, 1, 1], [5, 0, 1], [0, 2], [1, 2]),
        ([3], [1, 1, 3], [1, 1, 3], [0, 1], [0, 1]),
        # Equal shapes need no sum, not even along their ones.
        ([1, 3], [1, 3], [1, 3], [], []),
    ],
)
def test_broadcast_args(s0, s1, shape, r0, r1):
    arguments = {"s0": np.array(s0, np.int64), "s1": np.array(s1, np.int64)}
    assert raw_ops.BroadcastArgs(**arguments).tolist() == shape
    reduced = raw_ops.BroadcastGradientArgs(**arguments)
    assert [axes.tolist() for axes in reduced] == [r0, r1]


def test_broadcast_args_refuse():
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[2,3\] vs. \[4\]"):
        raw_ops.BroadcastArgs(s0=[2, 3], s1=[4])
    with pytest.raises(InvalidArgumentError, match=r"In\[1\] must be a vector.\[\]"):
        raw_ops.BroadcastGradientArgs(s0=[2], s1=2)


def test_tile_gives_new_memory_where_a_view_could_repeat():
    column = np.arange(3).reshape(3, 1, 1, 1)
    result = raw_ops.Tile(input=column, multiples=np.array([1, 2, 3, 1]))
    assert result.flags.c_contiguous
    assert not np.shares_memory(result, column)
