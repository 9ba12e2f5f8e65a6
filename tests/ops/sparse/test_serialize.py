"""Sparse tensors in strings, variants and maps."""

import base64

import numpy as np
import pytest

from opkernel import errors, raw_ops
from opkernel.proto import TensorProto
from opkernel.testing import assert_outputs, run_op
from opkernel.types import tensor_to_proto

VALUES = np.array([1.0, 2.0, 3.0], np.float32)
SHAPE = np.array([4, 3])
SORTED = (np.array([[0, 1], [2, 0], [2, 2]]), np.array([2.0, 1.0, 3.0], np.float32), SHAPE)


def test_strings_are_written_as_tensorflow_writes_them():
    words = np.array([b"hello world", b"a", "héllo".encode()], object)
    indices = np.array([[0, 0], [0, 1], [0, 2]])
    serialized = run_op("SerializeSparse", [indices, words, np.array([1, 3])]).outputs[0]
    assert base64.b64encode(serialized[1]) == b"CAcSBBICCAMiFQsBBmhlbGxvIHdvcmxkYWjDqWxsbw=="


@pytest.mark.parametrize("out_type", ["string", "variant"])
def test_rows_come_back_as_they_were_serialized(out_type):
    rows = run_op(
        "SerializeManySparse", [SORTED[0], SORTED[1], SHAPE], attrs={"out_type": out_type}
    ).outputs[0]
    assert rows.shape == (4, 3)
    back = run_op("DeserializeSparse", [rows], attrs={"dtype": "float"})
    assert_outputs(back, *SORTED)
    one = run_op("DeserializeSparse", [rows[2]], attrs={"dtype": "float"})
    assert_outputs(one, np.array([[0], [2]]), np.array([1, 3], np.float32), np.array([3]))


def test_the_dimensions_of_the_strings_come_first_and_the_largest_shape_counts():
    def serialized(indices, shape):
        values = np.ones(len(indices), np.float32)
        return run_op("SerializeSparse", [np.array(indices), values, np.array(shape)]).outputs[0]

    table = np.empty((2, 1, 3), object)
    table[0, 0], table[1, 0] = serialized([[1]], [2]), serialized([[0], [4]], [5])
    found = run_op("DeserializeSparse", [table], attrs={"dtype": "float"})
    expected = np.array([[0, 0, 1], [1, 0, 0], [1, 0, 4]])
    assert_outputs(found, expected, np.ones(3, np.float32), np.array([2, 1, 5]))


@pytest.mark.parametrize(
    ("strings", "match"),
    [
        ([b"\xff", b"", b""], "Could not parse"),
        ([b"", b"", b""], ""),
        ([tensor_to_proto(np.zeros((1, 1), np.int64)).SerializeToString()] * 3, "float"),
        ([TensorProto(dtype=9, tensor_content=b"123").SerializeToString()] * 3, ""),
    ],
)
def test_malformed_strings_are_refused(strings, match):
    serialized = np.array([strings], object)
    with pytest.raises(errors.InvalidArgumentError, match=match or None):
        run_op("DeserializeManySparse", [serialized], attrs={"dtype": "float"})


def test_a_map_gives_each_sparse_tensor_once():
    names = {"shared_name": "a_map_gives_each_once"}
    handles = raw_ops.AddManySparseToTensorsMap(
        sparse_indices=SORTED[0], sparse_values=SORTED[1], sparse_shape=SHAPE, **names
    )
    assert handles.tolist() == [0, 2, 1, 3]  # empty rows come last
    one = raw_ops.AddSparseToTensorsMap(
        sparse_indices=np.array([[1]]),
        sparse_values=VALUES[:1],
        sparse_shape=np.array([9]),
        **names,
    )
    taken = raw_ops.TakeManySparseFromTensorsMap(
        sparse_handles=np.array([one, handles[0], handles[1]]), dtype="float", **names
    )
    assert taken.sparse_indices.tolist() == [[0, 1], [1, 1]]
    assert taken.sparse_values.tolist() == [1, 2]
    assert taken.sparse_shape.tolist() == [3, 9]
    with pytest.raises(errors.InvalidArgumentError, match="Unable to find SparseTensor"):
        raw_ops.TakeManySparseFromTensorsMap(sparse_handles=np.array([one]), dtype="float", **names)
    with pytest.raises(errors.InvalidArgumentError, match="type int32"):
        raw_ops.TakeManySparseFromTensorsMap(sparse_handles=handles[2:3], dtype="int32", **names)


def test_rows_out_of_bounds_are_refused():
    for op in ("SerializeManySparse", "AddManySparseToTensorsMap"):
        with pytest.raises(errors.InvalidArgumentError, match="out of bounds"):
            run_op(op, [np.array([[4, 0]]), VALUES[:1], SHAPE])
        with pytest.raises(errors.InvalidArgumentError, match="out of order"):
            run_op(op, [np.array([[1, 0], [0, 0]]), VALUES[:2], SHAPE])
        with pytest.raises(errors.InvalidArgumentError, match="rank"):
            run_op(op, [np.array([[1]]), VALUES[:1], SHAPE[:1]])
        with pytest.raises(errors.ResourceExhaustedError):
            run_op(op, [SORTED[0][:0], VALUES[:0], np.array([2**60, 1])])
