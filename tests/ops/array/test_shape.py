import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import int32, int64

TENSOR = np.zeros((2, 0, 3), np.float16)


@pytest.mark.parametrize(("out_type", "dtype"), [(int32, np.int32), (int64, np.int64)])
def test_shape_and_size_are_of_the_type_asked_for(out_type, dtype):
    shape = raw_ops.Shape(input=TENSOR, out_type=out_type)
    assert shape.tolist() == [2, 0, 3]
    assert shape.dtype == dtype
    size = raw_ops.Size(input=TENSOR, out_type=out_type)
    assert (size, size.dtype) == (0, dtype)


def test_shape_of_a_scalar_is_empty():
    shape = raw_ops.Shape(input=np.float32(1))
    assert shape.shape == (0,)
    assert shape.dtype == np.int32


def test_shape_n_and_rank():
    shapes = raw_ops.ShapeN(input=[np.zeros((1, 2)), np.zeros(3)])
    assert [shape.tolist() for shape in shapes] == [[1, 2], [3]]
    assert raw_ops.Rank(input=TENSOR) == 3
    assert raw_ops.Rank(input=b"text") == 0


def test_sizes_beyond_32_bits_need_the_wide_type():
    wide = np.broadcast_to(np.int8(0), (1, 2**31))
    assert raw_ops.Shape(input=wide, out_type=int64).tolist() == [1, 2**31]
    with pytest.raises(InvalidArgumentError, match=r"32-bit.* dim 1 is 2147483648"):
        raw_ops.Shape(input=wide)
    with pytest.raises(InvalidArgumentError, match="2147483648"):
        raw_ops.Size(input=wide)
