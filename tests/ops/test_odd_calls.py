"""Calls that `opkernel test` found: each is refused, or answered, as TensorFlow does."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType


def test_sizes_of_split_v_are_a_vector(infer_op):
    attrs = {"T": DataType.DT_FLOAT, "num_split": 1}
    with pytest.raises(InvalidArgumentError, match="must be rank 1 but is rank 0"):
        infer_op(
            "SplitV", "[3]", "[]", "[]", attrs=attrs, constants={1: np.array(3), 2: np.array(0)}
        )


def test_the_size_of_sparse_bincount_is_a_scalar(infer_op):
    attrs = {"Tidx": DataType.DT_INT32, "T": DataType.DT_FLOAT}
    shapes = ["[0,1]", "[0]", "[1]", "[2]", "[0]"]
    with pytest.raises(InvalidArgumentError, match="must be rank 0 but is rank 1"):
        infer_op("SparseBincount", *shapes, attrs=attrs, constants={3: np.array([2, 2])})


def test_a_scalar_can_be_updated_by_a_slice():
    updated = raw_ops.TensorStridedSliceUpdate(
        input=np.float32(1), begin=[0], end=[0], strides=[1], value=np.float32([5]), new_axis_mask=1
    )
    assert (updated.shape, float(updated)) == ((), 5.0)


def test_the_side_input_of_a_fused_batch_norm_has_the_shape_of_the_input():
    ones = np.ones(4, np.float32)
    with pytest.raises(InvalidArgumentError, match="side_input shape"):
        raw_ops._FusedBatchNormEx(  # type: ignore[attr-defined]  # the stub has no internal ops
            x=np.ones((1, 2, 2, 4), np.float32),
            scale=ones,
            offset=ones,
            mean=ones,
            variance=ones,
            side_input=[np.ones(2, np.float32)],
            is_training=False,
        )
