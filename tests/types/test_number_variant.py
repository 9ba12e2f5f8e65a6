"""Variants that hold one number, as TensorFlow's tests of constants make them."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.proto import TensorProto, VariantTensorDataProto
from opkernel.types import tensor_from_proto, tensor_to_proto


def variant(type_name, number):
    value = VariantTensorDataProto(type_name=type_name, metadata=number.tobytes())
    return tensor_from_proto(TensorProto(dtype=21, tensor_shape={}, variant_val=[value]))


@pytest.mark.parametrize(
    ("type_name", "a", "b", "total"),
    [
        ("int", np.int32(3), np.int32(4), np.int32(7)),
        ("int", np.int32(3), np.int32(2**31 - 1), np.int32(-(2**31) + 2)),
        ("float", np.float32(1.5), np.float32(1e10), np.float32(1e10)),
        ("double", np.float64(2.25), np.float64(0.5), np.float64(2.75)),
        ("bool", np.bool_(True), np.bool_(True), np.bool_(True)),
    ],
)
def test_sums_and_zeros(type_name, a, b, total):
    x, y = variant(type_name, a), variant(type_name, b)
    (summed,) = tensor_to_proto(raw_ops.AddN(inputs=[x, y])).variant_val
    assert (summed.type_name, summed.metadata) == (type_name, total.tobytes())
    (zero,) = tensor_to_proto(raw_ops.ZerosLike(x=x)).variant_val
    assert (zero.type_name, zero.metadata) == (type_name, np.zeros_like(a).tobytes())


def test_what_has_no_sum():
    other = variant("float", np.float32(1))
    with pytest.raises(InternalError, match="int and float"):
        raw_ops.AddN(inputs=[variant("int", np.int32(1)), other])
    with pytest.raises(InternalError):
        raw_ops.AddN(inputs=[tensor_from_proto(TensorProto(dtype=21, tensor_shape={}))] * 2)


def test_bytes_that_are_no_number():
    with pytest.raises(InvalidArgumentError, match="has 8 bytes, not 4"):
        variant("int", np.int64(1))
