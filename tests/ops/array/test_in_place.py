"""Empty, the Inplace ops, ParallelConcat; expected values are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

TYPES = ["bfloat16", "half", "float", "double", "int8", "int16", "int32", "int64", "uint8"]
TYPES += ["uint16", "uint32", "uint64", "complex64", "complex128"]


def places(*numbers: int) -> Any:
    return np.array(numbers, np.int32)


@pytest.mark.parametrize("dtype", ["float", "int64", "bool", "complex64", "bfloat16"])
def test_empty_tensors_are_zeros(dtype: str) -> None:
    numpy_dtype = DataType.from_string(dtype).numpy_dtype
    found = raw_ops.Empty(shape=places(2, 3), dtype=numpy_dtype, init=True)
    assert (found.shape, found.dtype) == ((2, 3), numpy_dtype)
    assert not found.astype(bool).any()


def test_empty_strings() -> None:
    assert raw_ops.Empty(shape=places(2), dtype="string").tolist() == [b"", b""]
    assert raw_ops.Empty(shape=places(0, 4), dtype="float32").shape == (0, 4)


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        (places(-1), "must be >= 0"),
        (places(1).reshape(1, 1), r"must be a vector of int32, got shape \[1,1\]"),
        (np.int32(3), "must be a vector of int32"),
        (places(2**30, 2**30, 2**10), r"more than 2\*\*63 - 1 elements"),
    ],
)
def test_wrong_shapes_of_empty(shape: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        raw_ops.Empty(shape=shape, dtype="float32")


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_are_replaced_added_and_subtracted(dtype: str) -> None:
    numpy_dtype = DataType.from_string(dtype).numpy_dtype
    x, v = (
        np.array(one).astype(numpy_dtype) for one in ([[9, 8], [7, 6], [5, 4]], [[1, 2], [3, 1]])
    )
    before = x.copy()
    arguments = {"x": x, "i": places(2, 0), "v": v}
    assert raw_ops.InplaceUpdate(**arguments).tolist() == [[3, 1], [7, 6], [1, 2]]
    assert raw_ops.InplaceAdd(**arguments).tolist() == [[12, 9], [7, 6], [6, 6]]
    assert raw_ops.InplaceSub(**arguments).tolist() == [[6, 7], [7, 6], [4, 2]]
    assert x.tolist() == before.tolist()


def test_places_that_come_again_and_places_beyond_the_end() -> None:
    x = np.float32([1, 2, 3])
    assert raw_ops.InplaceAdd(x=x, i=places(0, 0), v=np.float32([9, 8])).tolist() == [18, 2, 3]
    found = raw_ops.InplaceUpdate(x=x, i=places(5, -5), v=np.float32([9, 1]))
    assert found.tolist() == [1, 1, 9]
    nothing = np.zeros((0, 2), np.float32)
    assert raw_ops.InplaceAdd(x=nothing, i=places(0), v=np.float32([[1, 2]])).shape == (0, 2)


def test_strings_and_truth_values_are_only_replaced() -> None:
    text = np.array([b"a", b"b"], object)
    found = raw_ops.InplaceUpdate(x=text, i=places(0), v=np.array([b"c"], object))
    assert found.tolist() == [b"c", b"b"]
    with pytest.raises(InvalidArgumentError, match="Unsupported data type: string"):
        raw_ops.InplaceAdd(x=text, i=places(0), v=np.array([b"c"], object))
    with pytest.raises(InvalidArgumentError, match="Unsupported data type: bool"):
        raw_ops.InplaceSub(x=np.array([True]), i=places(0), v=np.array([True]))


@pytest.mark.parametrize(
    ("x", "i", "v", "told"),
    [
        ([[1, 2]], 0, [[1, 2]], "i must be a vector"),
        ([[1, 2]], [[0]], [[1, 2]], "i must be a vector"),
        ([[1, 2]], [0], [1], "ranks differ"),
        (1, [0], [1], "ranks differ"),
        (1, [0], 1, "must have rows"),
        ([[1, 2]], [0], [[1]], "at index 1"),
        ([[1, 2]], [0, 1], [[1, 2]], "at index 0"),
    ],
)
def test_wrong_rows(x: Any, i: Any, v: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        raw_ops.InplaceAdd(x=np.float32(x), i=np.int32(i), v=np.float32(v))


def test_rows_one_after_the_other() -> None:
    rows = [np.float32([[1, 2]]), np.float32([[3, 4]])]
    assert raw_ops.ParallelConcat(values=rows, shape=[2, 2]).tolist() == [[1, 2], [3, 4]]
    assert raw_ops.ParallelConcat(values=rows, shape=[3, 2]).tolist()[:2] == [[1, 2], [3, 4]]
    with pytest.raises(InvalidArgumentError, match="row 1 is beyond the 1 rows"):
        raw_ops.ParallelConcat(values=rows, shape=[1, 2])


@pytest.mark.parametrize(
    ("shape", "row", "told"),
    [
        ([1, 2], [1.0], "doesn't match"),
        ([1, 3], [[1.0, 2.0]], "doesn't match"),
        ([2, 1], [[1.0], [2.0]], "doesn't match"),
        ([0, 1], [[1.0]], "beyond the 0 rows"),
        ([None, 1], [[1.0]], "must be known"),
    ],
)
def test_wrong_rows_of_parallel_concat(shape: Any, row: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        raw_ops.ParallelConcat(values=[np.float32(row)], shape=shape)


@pytest.mark.tensorflow
@pytest.mark.parametrize("op", ["InplaceUpdate", "InplaceAdd", "InplaceSub"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "uint8", "int64", "complex64"])
def test_updates_are_tensorflows(tf: Any, op: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    numpy_dtype = tf.as_dtype(dtype).as_numpy_dtype
    x, v = (rng.integers(0, 100, (n, 3)).astype(numpy_dtype) for n in (5, 40))
    i = rng.integers(-9, 9, 40).astype(np.int32)
    expected = getattr(tf.raw_ops, op)(x=tf.identity(x), i=i, v=v).numpy()
    assert np.array_equal(getattr(raw_ops, op)(x=x, i=i, v=v), expected)
