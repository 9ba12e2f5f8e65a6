import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError

IMAGE = np.arange(1, 17, dtype=np.float32).reshape(1, 4, 4, 1)


def test_space_to_batch_takes_every_second_row_and_column():
    batch = raw_ops.SpaceToBatchND(input=IMAGE, block_shape=[2, 2], paddings=[[0, 0]] * 2)
    expected = [IMAGE[0, i::2, j::2] for i in range(2) for j in range(2)]
    np.testing.assert_array_equal(batch, expected)
    square = raw_ops.SpaceToBatch(input=IMAGE, block_size=2, paddings=[[0, 0]] * 2)
    np.testing.assert_array_equal(square, expected)


@pytest.mark.parametrize(
    ("shape", "blocks", "borders"),
    [
        ([2, 3], [2], [[1, 0]]),
        ([2, 4, 3], [2, 3], [[1, 1], [0, 3]]),
        ([1, 4, 6, 2, 2], [3, 2], [[2, 0], [0, 0]]),
        ([3, 2], [], np.zeros((0, 2), np.int32)),
    ],
)
def test_batch_to_space_undoes_it(shape, blocks, borders):
    tensor = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    blocks = np.array(blocks, np.int32)
    batch = raw_ops.SpaceToBatchND(input=tensor, block_shape=blocks, paddings=borders)
    assert batch.shape[0] == shape[0] * np.prod(blocks)
    back = raw_ops.BatchToSpaceND(input=batch, block_shape=blocks, crops=borders)
    np.testing.assert_array_equal(back, tensor)


@pytest.mark.parametrize(
    ("blocks", "paddings", "message"),
    [
        ([3, 2], [[0, 0]] * 2, r"padded_shape\[0\]=4 is not divisible by block_shape\[0\]=3"),
        ([2, 0], [[0, 0]] * 2, "must be positive, got value, 0 at index 1"),
        ([2, 2], [[0, 0]], r"paddings should have shape \[2, 2\] instead of \[1,2\]"),
        ([2, 2], [[0, 0], [-2, 0]], "Paddings must be non-negative"),
        ([[2]], [[0, 0]], "block_shape rank should be 1 instead of 2"),
        ([1] * 4, [[0, 0]] * 4, "input rank should be >= 5 instead of 4"),
    ],
)
def test_space_to_batch_refuses(blocks, paddings, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.SpaceToBatchND(input=IMAGE, block_shape=blocks, paddings=paddings)


def test_batch_to_space_refuses():
    with pytest.raises(InvalidArgumentError, match=r"\(1\) is not divisible by .* \(4\)"):
        raw_ops.BatchToSpaceND(input=IMAGE, block_shape=[2, 2], crops=[[0, 0]] * 2)
    with pytest.raises(InvalidArgumentError, match=r"cropped_shape\[0\]=-1 must be non-negative"):
        raw_ops.BatchToSpaceND(input=IMAGE, block_shape=[1], crops=[[3, 2]])
    with pytest.raises(InvalidArgumentError, match="Input rank should be: 4 instead of: 3"):
        raw_ops.BatchToSpace(input=IMAGE[0], block_size=2, crops=[[0, 0]] * 2)


def test_space_to_depth_and_back():
    depth = raw_ops.SpaceToDepth(input=IMAGE, block_size=2)
    assert depth[0].tolist() == [
        [[1, 2, 5, 6], [3, 4, 7, 8]],
        [[9, 10, 13, 14], [11, 12, 15, 16]],
    ]
    np.testing.assert_array_equal(raw_ops.DepthToSpace(input=depth, block_size=2), IMAGE)


def test_space_and_depth_refuse():
    with pytest.raises(InvalidArgumentError, match=r"width 4 and height 4 .* block_size: 3"):
        raw_ops.SpaceToDepth(input=IMAGE, block_size=3)
    with pytest.raises(InvalidArgumentError, match="depth dimension 1 should be divisible by: 4"):
        raw_ops.DepthToSpace(input=IMAGE, block_size=2)
    with pytest.raises(NotFoundError):
        raw_ops.SpaceToDepth(input=IMAGE, block_size=2, data_format="NCHW")
