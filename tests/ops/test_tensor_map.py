"""Maps of tensors: what tells keys apart, sums, gradients, their form in files. Expected values are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.ops.tensor_map import TensorMap
from opkernel.proto import VariantTensorDataProto
from opkernel.types import DataType, OpaqueVariant, object_scalar, variant_from_proto

FLOAT, INT32 = DataType.DT_FLOAT, DataType.DT_INT32


def text(*values: bytes) -> Any:
    return np.array(values, object)


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def map_of(*entries: tuple[Any, Any]) -> Any:
    handle = raw_ops.EmptyTensorMap()
    for key, value in entries:
        handle = raw_ops.TensorMapInsert(input_handle=handle, key=key, value=value)
    return handle


def size(handle: Any) -> int:
    return int(raw_ops.TensorMapSize(input_handle=handle))


def lookup(handle: Any, key: Any, dtype: DataType = FLOAT) -> Any:
    return raw_ops.TensorMapLookup(input_handle=handle, key=key, value_dtype=dtype)


NAN = np.array([0x7FC00000], np.uint32).view(np.float32)
OTHER_NAN = np.array([0x7FC00001], np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("key", "other", "are_equal"),
    [
        (floats(0.0), floats(-0.0), False),
        (NAN, NAN, True),
        (NAN, OTHER_NAN, False),
        (np.int32(1), np.int32(1), True),
        (np.int32(1), np.int64(1), False),
        (np.int32(1), np.array([1], np.int32), False),
        (np.zeros((0, 2)), np.zeros((2, 0)), False),
        (text(b"a", b"bc"), text(b"a", b"bc"), True),
        (text(b"a", b"bc"), text(b"ab", b"c"), False),
        (raw_ops.EmptyTensorMap(), raw_ops.EmptyTensorMap(), False),
    ],
)
def test_keys_are_equal_if_their_types_shapes_and_bytes_are(
    key: Any, other: Any, are_equal: bool
) -> None:
    handle = map_of((key, 1))
    assert raw_ops.TensorMapHasKey(input_handle=handle, key=other) == are_equal
    assert size(map_of((key, 1), (other, 2))) == (1 if are_equal else 2)


def test_a_changed_map_leaves_the_old_one_alone() -> None:
    old = map_of((1, floats(2)))
    new = raw_ops.TensorMapInsert(input_handle=old, key=1, value=floats(3))
    none = raw_ops.TensorMapErase(input_handle=new, key=1, value_dtype=FLOAT)
    assert (lookup(old, 1), lookup(new, 1), size(none)) == ([2], [3], 0)
    assert raw_ops.TensorMapStackKeys(input_handle=old, key_dtype=INT32).tolist() == [1]


def test_sums_have_the_keys_of_both() -> None:
    total = raw_ops.AddN(
        inputs=[map_of((1, floats(2)), (2, floats(5))), map_of((1, floats(3)), (text(b"k"), 7))]
    )
    assert (size(total), lookup(total, 1), lookup(total, 2)) == (3, [5], [5])
    assert size(raw_ops.ZerosLike(x=total)) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lookup(map_of((1, floats(2))), 2), 'Could not find key "2"'),
        (lambda: lookup(map_of((1, floats(2))), 1, INT32), "actual float vs. expect int32"),
        (lambda: raw_ops.TensorMapErase(input_handle=map_of(), key=2, value_dtype=FLOAT), "erase"),
        (lambda: raw_ops.TensorMapStackKeys(input_handle=map_of(), key_dtype=INT32), "empty map"),
        (
            lambda: raw_ops.TensorMapStackKeys(input_handle=map_of((1, 1)), key_dtype=FLOAT),
            "requested dtype",
        ),
        (
            lambda: raw_ops.TensorMapStackKeys(
                input_handle=map_of(([1], 1), ([1, 2], 1)), key_dtype=INT32
            ),
            "same shape",
        ),
        (lambda: size(np.array([map_of()] * 2, object)), r"must be a scalar. Saw: \[2\]"),
        (lambda: size(object_scalar(OpaqueVariant())), "not a map"),
        (lambda: raw_ops.AddN(inputs=[map_of((1, 1)), map_of((1, [1]))]), r"One is \[1\] and"),
        (lambda: raw_ops.AddN(inputs=[map_of((1, 1)), map_of((1, floats(1)))]), "element types"),
    ],
)
def test_what_maps_refuse(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()


def test_a_map_and_a_list_have_no_sum() -> None:
    of_list = raw_ops.EmptyTensorList(
        element_shape=np.int32(-1), max_num_elements=-1, element_dtype=FLOAT
    )
    with pytest.raises(InternalError):
        raw_ops.AddN(inputs=[map_of(), of_list])


def test_the_form_in_files() -> None:
    proto = map_of((1, floats(2)), (text(b"k"), 3)).to_proto()
    assert proto.type_name == "tensorflow::TensorMap"
    assert [tensor.dtype for tensor in proto.tensors] == [3, 1, 7, 3]
    read = variant_from_proto(proto)
    assert isinstance(read, TensorMap)
    assert lookup(object_scalar(read), text(b"k"), INT32) == 3
    assert size(object_scalar(OpaqueVariant(proto))) == 2
    with pytest.raises(InvalidArgumentError, match="1 keys and values"):
        TensorMap.from_proto(
            VariantTensorDataProto(type_name=proto.type_name, tensors=proto.tensors[:1])
        )


def _overwritten(x: Any) -> Any:
    handle = map_of((1, x))
    return lookup(raw_ops.TensorMapInsert(input_handle=handle, key=1, value=x * x), 1)


def _erased(x: Any) -> Any:
    handle = map_of((1, x), (2, x * x))
    return lookup(raw_ops.TensorMapErase(input_handle=handle, key=1, value_dtype=FLOAT), 2)


def _both(x: Any) -> Any:
    handle = map_of((1, x), (2, x * x))
    return lookup(handle, 1) * 3.0 + lookup(handle, 2) * lookup(handle, 1)


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (_overwritten, lambda x: 2 * x),
        (_erased, lambda x: 2 * x),
        (_both, lambda x: 3 + 3 * x * x),
    ],
)
def test_gradients_go_to_the_value_that_was_found(function: Any, slope: Any) -> None:
    x = floats(1, 2, 3)
    with opkernel.Graph().as_default() as graph:
        p = opkernel.constant(x)
        (found,) = opkernel.gradients(function(p), p)
    assert opkernel.Session(graph).run(found).tolist() == slope(x).tolist()
