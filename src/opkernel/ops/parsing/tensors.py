"""Tensors as text: ParseTensor, SerializeTensor.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/parse_tensor_op.cc, serialize_tensor_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import joining, string_tensor
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from opkernel.opdef import register_op, scalar_shape, unknown_shape
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.kernel_types import ALL
from opkernel.ops.parsing.wire import write_varint
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

_CONTENT, _STRING = 4 << 3 | 2, 8 << 3 | 2
"""The tags of `tensor_content` and of a string of `string_val`."""
_MOST_BYTES = 1 << 31
_OF_STRING = 80
"""The bytes of a string in lists of its pieces, beside its own."""

SERIALIZE_TENSOR = register_op(
    "SerializeTensor",
    inputs=["tensor: T"],
    outputs=["serialized: string"],
    attrs=["T: type"],
    shape_fn=scalar_shape,
    doc="A tensor as a serialized TensorProto.",
)


@register_kernel(PARSE_TENSOR)
def parse_tensor(serialized: Any, *, out_type: DataType) -> Any:
    require_scalar(serialized, "Expected `serialized` to be a scalar, got shape: {}")
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


@register_kernel(SERIALIZE_TENSOR, types={"T": ALL})
def serialize_tensor(tensor: Any, *, T: DataType) -> Any:
    return string_tensor((), [serialized(tensor, T)])


def serialized(tensor: Any, dtype: DataType, *, strings_are_content: bool = False) -> bytes:
    """The serialized TensorProto of a tensor: written at once, so that it takes memory once.

    Args:
        tensor: The tensor.
        dtype: Its type.
        strings_are_content: Whether the lengths of all strings stand first, and then the strings, in one field.

    Raises:
        InvalidArgumentError: the content is larger than a proto may have.
        ResourceExhaustedError: the text is more than the budget has left.
    """
    if tensor.size and dtype is DataType.DT_STRING:
        with making_bytes("pieces of strings", _OF_STRING * tensor.size):
            return _with_strings(tensor, strings_are_content)
    if tensor.nbytes and dtype.can_memcpy and tensor.nbytes < _MOST_BYTES:
        content = np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data
        head = bytes([_CONTENT]) + write_varint(content.nbytes)
        return joining(b"")([_without_elements(tensor, dtype), head, content])
    text: bytes = tensor_to_proto(tensor, dtype).SerializeToString(deterministic=True)
    return text


def _without_elements(tensor: Any, dtype: DataType) -> bytes:
    shape = TensorShape(tensor.shape).to_proto()
    return TensorProto(dtype=dtype, tensor_shape=shape).SerializeToString(deterministic=True)


def _with_strings(tensor: Any, are_content: bool) -> bytes:
    texts, pieces = tensor.reshape(-1).tolist(), [_without_elements(tensor, DataType.DT_STRING)]
    lengths = [write_varint(len(text)) for text in in_time(texts)]
    if are_content:
        size = sum(map(len, lengths)) + sum(map(len, texts))
        pieces += [bytes([_CONTENT]), write_varint(size), *lengths, *texts]
    else:
        tag = bytes([_STRING])
        for length, text in in_time(zip(lengths, texts, strict=True)):
            pieces += tag, length, text
    return joining(b"")(pieces)
