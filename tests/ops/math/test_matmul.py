from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from opkernel.types import bfloat16, float16, float32, int32

f32 = partial(np.array, dtype=np.float32)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_transposes(transpose_a, transpose_b):
    a, b = f32([[1, 2, 3], [4, 5, 6]]), f32([[1, 0], [0, 1], [1, 1]])
    result = raw_ops.MatMul(
        a=a.T if transpose_a else a,
        b=b.T if transpose_b else b,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    assert result.tolist() == [[4, 5], [10, 11]]


def test_matmul_transposes_and_batch_matmul_takes_adjoints():
    x = np.array([[1j, 2]], np.complex64)
    assert raw_ops.MatMul(a=x, b=x, transpose_b=True).tolist() == [[3]]
    assert raw_ops.BatchMatMulV2(x=x, y=x, adj_y=True).tolist() == [[5]]


@pytest.mark.parametrize("op", ["BatchMatMul", "BatchMatMulV2"])
def test_empty_inner_dimension_gives_zeros(op):
    zeros = getattr(raw_ops, op)(x=np.ones((2, 3, 0), np.int32), y=np.ones((2, 0, 4), np.int32))
    assert zeros.tolist() == np.zeros((2, 3, 4)).tolist()
    assert zeros.dtype == np.int32


def test_integers_wrap_around():
    a = np.array([[2**31 - 1, 2]], np.int32)
    assert raw_ops.MatMul(a=a, b=a, transpose_b=True).tolist() == [[5]]


def test_nan_reaches_its_row_and_column():
    x = f32([[1, np.nan], [2, 3]])
    result = raw_ops.MatMul(a=x, b=np.eye(2, dtype=np.float32))
    np.testing.assert_array_equal(result, [[np.nan, np.nan], [2, 3]])


def test_narrow_floats_accumulate_in_float():
    row = np.ones((1, 3000), np.float16)
    assert raw_ops.MatMul(a=row, b=row, transpose_b=True).tolist() == [[3000]]
    assert raw_ops.BatchMatMulV2(x=row, y=row, adj_y=True).tolist() == [[3000]]


def test_batches_broadcast():
    x, y = np.ones((2, 1, 3, 4), np.float32), np.ones((5, 4, 1), np.float32)
    assert raw_ops.BatchMatMulV2(x=x, y=y).shape == (2, 5, 3, 1)
    with pytest.raises(InvalidArgumentError, match="has different ndims"):
        raw_ops.BatchMatMul(x=x, y=y)
    with pytest.raises(InvalidArgumentError, match="compatible batch dimensions"):
        raw_ops.BatchMatMulV2(x=np.ones((2, 1, 1), np.float32), y=np.ones((3, 1, 1), np.float32))


def test_result_type_of_its_own():
    x = np.array([[200, 100]], np.uint8)
    y = np.array([[-128], [127]], np.int8)
    result = raw_ops.BatchMatMulV3(x=x, y=y, Tout=int32)
    assert result.tolist() == [[-12900]]
    assert result.dtype == np.int32
    wide = raw_ops.BatchMatMulV3(x=f32([[2]]).astype(bfloat16.numpy_dtype), y=y[:1], Tout=bfloat16)
    assert wide.astype(np.float32).tolist() == [[-256]]
    with pytest.raises(NotFoundError):
        raw_ops.BatchMatMulV3(x=x, y=y, Tout=float32)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((2, 3), (2, 3), r"Matrix size-incompatible: In\[0\]: \[2, ?3\], In\[1\]: \[2, ?3\]"),
        ((2, 2, 2), (2, 2, 2), r"In\[0\] and In\[1\] ndims must be == 2: 3"),
        ((2,), (2, 2), r"In\[0\] and In\[1\] has different ndims"),
    ],
)
def test_wrong_shapes(a, b, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.MatMul(a=np.ones(a, np.float32), b=np.ones(b, np.float32))


@pytest.mark.parametrize("op", [raw_ops.MatMul, raw_ops.BatchMatMulV2])
@pytest.mark.parametrize(("dtype", "expected"), [(bfloat16, 1.1796875), (float16, 1.1796875)])
def test_products_of_half_and_bfloat16_round_to_the_nearest(op, dtype, expected):
    x = f32([[1.0859375]]).astype(dtype.numpy_dtype)  # the product is 1.1792603
    product = op(**dict(zip("ab" if op is raw_ops.MatMul else "xy", (x, x), strict=True)))
    assert product.dtype == dtype.numpy_dtype
    assert product.tolist() == [[expected]]


def test_sparse_matmul_gives_float():
    a = f32([[0, 2], [0, 0]]).astype(bfloat16.numpy_dtype)
    result = raw_ops.SparseMatMul(a=a, b=f32([[1, 5], [3, 4]]), transpose_a=True, a_is_sparse=True)
    assert result.tolist() == [[0, 0], [2, 10]]
    assert result.dtype == np.float32
    with pytest.raises(InvalidArgumentError, match="b is not a matrix"):
        raw_ops.SparseMatMul(a=f32([[1]]), b=f32([1]))


def test_cross():
    a, b = f32([[1, 0, 0], [1, 2, 3]]), f32([[0, 1, 0], [3, 2, 1]])
    assert raw_ops.Cross(a=a, b=b).tolist() == [[0, 0, 1], [-4, 8, -4]]
    with pytest.raises(FailedPreconditionError, match="3-element vectors"):
        raw_ops.Cross(a=a[:, :2], b=b[:, :2])
    with pytest.raises(InvalidArgumentError, match="Both inputs must be of same shape"):
        raw_ops.Cross(a=a, b=b[0])
