"""Tensors as text: ParseTensor, SerializeTensor.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/parse_tensor_op.cc, serialize_tensor_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.device.string_tensors import string_tensor
from opkernel.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from opkernel.opdef import register_op, scalar_shape, unknown_shape
from opkernel.ops.kernel_types import ALL
from opkernel.ops.registration import register_kernel
from opkernel.proto import DecodeError, TensorProto
from opkernel.types import DataType, TensorShape, tensor_from_proto, tensor_to_proto

PARSE_TENSOR = register_op(
    "ParseTensor",
    inputs=["serialized: string"],
    outputs=["output: out_type"],
    attrs=["out_type: type"],
    shape_fn=unknown_shape,
    doc="The tensor in a serialized TensorProto.",
)

SERIALIZE_TENSOR = register_op(
    "SerializeTensor",
    inputs=["tensor: T"],
    outputs=["serialized: string"],
    attrs=["T: type"],
    shape_fn=scalar_shape,
    doc="A tensor as a serialized TensorProto.",
)


@register_kernel(PARSE_TENSOR, device="CPU")
def parse_tensor(serialized: Any, *, out_type: DataType) -> Any:
    if serialized.ndim:
        raise InvalidArgumentError(
            f"Expected `serialized` to be a scalar, got shape: {TensorShape(serialized.shape)}"
        )
    try:
        proto = TensorProto.FromString(serialized.item())
    except DecodeError as error:
        raise InvalidArgumentError("Could not parse `serialized` as TensorProto") from error
    if proto.dtype == DataType.DT_INVALID:
        raise InvalidArgumentError("Cannot parse tensor from proto: it has no type")
    if proto.dtype != out_type:
        raise InvalidArgumentError(
            f"Type mismatch between parsed tensor ({DataType(proto.dtype).string}) and dtype "
            f"({out_type.string})"
        )
    try:
        return np.asarray(tensor_from_proto(proto))
    except ResourceExhaustedError:
        raise
    except OpError as error:
        raise InvalidArgumentError(f"Cannot parse tensor from proto: {error.message}") from error


@register_kernel(SERIALIZE_TENSOR, device="CPU", types={"T": ALL})
def serialize_tensor(tensor: Any, *, T: DataType) -> Any:
    return string_tensor((), [tensor_to_proto(tensor, T).SerializeToString(deterministic=True)])
