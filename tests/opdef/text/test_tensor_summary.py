import numpy as np
import pytest

from opkernel.opdef.text.summary import summarize_tensor, summarize_values, tensor_byte_size
from opkernel.proto import TensorProto, TensorShapeProto
from opkernel.types import DataType, ResourceHandle, tensor_to_proto

Dim = TensorShapeProto.Dim


def proto(dtype, shape, **fields):
    dims = TensorShapeProto(dim=[Dim(size=size) for size in shape])
    return TensorProto(dtype=dtype, tensor_shape=dims, **fields)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.int32(5), "Tensor<type: int32 shape: [] values: 5>"),
        (
            np.array([1, 2.5, 1 / 3], np.float32),
            "Tensor<type: float shape: [3] values: 1 2.5 0.333333343>",
        ),
        (np.arange(4), "Tensor<type: int64 shape: [4] values: 0 1 2...>"),
        (np.arange(6).reshape(2, 3), "Tensor<type: int64 shape: [2,3] values: [0 1 2]...>"),
        (np.arange(4).reshape(2, 2), "Tensor<type: int64 shape: [2,2] values: [0 1][2...]...>"),
        (np.arange(3).reshape(3, 1), "Tensor<type: int64 shape: [3,1] values: [0][1][2]>"),
        (
            np.ones([2, 2, 2], np.int8),
            "Tensor<type: int8 shape: [2,2,2] values: [[1 1][1...]]...>",
        ),
        (np.zeros([0], np.int32), "Tensor<type: int32 shape: [0] values: >"),
        (np.zeros([3, 0], np.int32), "Tensor<type: int32 shape: [3,0] values: >"),
        (np.array([True, False]), "Tensor<type: bool shape: [2] values: 1 0>"),
        (np.float64(1 / 3), "Tensor<type: double shape: [] values: 0.33333333333333331>"),
        (np.array([1j, 2]), "Tensor<type: complex128 shape: [2] values: ? ?>"),
        (np.float16(0.1), "Tensor<type: half shape: [] values: 0.0999755859>"),
        (
            np.array([b'a"b\x01', b"x"], object),
            'Tensor<type: string shape: [2] values: a\\"b\\001 x>',
        ),
    ],
)
def test_values(array, text):
    assert summarize_tensor(tensor_to_proto(array)) == text


def test_a_resource():
    handle = np.empty((), object)
    handle[()] = ResourceHandle(device="d", container="c", name="x", maybe_type_name="Var")
    assert summarize_tensor(tensor_to_proto(handle, DataType.DT_RESOURCE)) == (
        'Tensor<type: resource shape: [] values: <ResourceHandle(name="x", device="d", '
        'container="c", type="Var", dtype and shapes : "[  ]")>>'
    )


def test_empty_variants():
    text = "Tensor<type: variant shape: [2] values: <[empty]> <[empty]>>"
    assert summarize_tensor(proto(DataType.DT_VARIANT, [2])) == text


def test_number_of_values():
    rows = np.array([[1, 2], [3, 4]], np.int32)
    assert summarize_values(rows, DataType.DT_INT32, -1) == "[1 2][3 4]"
    assert summarize_values(rows, DataType.DT_INT32, 0) == "..."
    assert summarize_values(rows != 0, DataType.DT_BOOL, 0) == ""


def test_what_cannot_or_should_not_be_decoded():
    assert summarize_tensor(TensorProto()) == "<Invalid TensorProto: >"
    assert summarize_tensor(proto(DataType.DT_INT32, [-1])) == (
        "<TensorProto: dtype: DT_INT32 tensor_shape { dim { size: -1 } }>"
    )
    assert summarize_tensor(proto(DataType.DT_FLOAT, [10**7])) == (
        "<TensorProto: dtype: DT_FLOAT tensor_shape { dim { size: 10000000 } }>"
    )
    assert summarize_tensor(proto(DataType.DT_FLOAT, [], tensor_content=b"abc")) == (
        '<Invalid TensorProto: dtype: DT_FLOAT tensor_shape { } tensor_content: "abc">'
    )


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (proto(DataType.DT_INT32, [2, 3]), 24),
        (proto(DataType.DT_STRING, [2]), 0),
        (proto(1000, [2]), 0),
        (proto(DataType.DT_INT32, [-1]), -1),
        (proto(DataType.DT_INT32, [-2]), -1),
        (proto(DataType.DT_INT64, [2**62]), -1),
    ],
)
def test_byte_size(value, size):
    assert tensor_byte_size(value) == size
