"""Tensors and bytes: ParseTensor, SerializeTensor, DecodeRaw, DecodePaddedRaw, DecodeCompressed.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/parse_tensor_op.cc, serialize_tensor_op.cc,
core/kernels/decode_raw_op.cc, decode_padded_raw_op.cc, core/kernels/decode_compressed_op.cc.
"""

import io
import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_buffer import string_batches
from opkernel.device.string_tensors import gather_bytes, joining, map_strings, string_tensor
from opkernel.device.work_clock import in_time, string_work
from opkernel.errors import (
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from opkernel.io.byte_stream import WINDOW_BITS, Inflated
from opkernel.kernel import check_allocation
from opkernel.opdef import (
    InferenceContext,
    register_op,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require, require_scalar
from opkernel.ops.registration import ALL, COMPLEX, register_kernel
from opkernel.proto import DecodeError, TensorProto
from opkernel.types import DataType, TensorShape, tensor_from_proto, tensor_to_proto
from opkernel.types.varints import varint

PARSE_TENSOR = register_op(
    "ParseTensor(serialized: string) -> output: out_type",
    attrs=["out_type: type"],
    shape_fn=unknown_shape,
    doc="The tensor in a serialized TensorProto.",
)

_CONTENT, _STRING = 4 << 3 | 2, 8 << 3 | 2
"""The tags of `tensor_content` and of a string of `string_val`."""
MOST_BYTES = 1 << 31
_OF_STRING = 80
"""The bytes of a string in lists of its pieces, beside its own."""

SERIALIZE_TENSOR = register_op(
    "SerializeTensor(tensor: T) -> serialized: string",
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
    require(proto.dtype != DataType.DT_INVALID, "Cannot parse tensor from proto: it has no type")
    if proto.dtype != out_type:
        types = f"parsed tensor ({DataType(proto.dtype).string}) and dtype ({out_type.string})"
        raise InvalidArgumentError(f"Type mismatch between {types}")
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
    if tensor.nbytes and dtype.can_memcpy and tensor.nbytes < MOST_BYTES:
        content = np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data
        return joining(b"")([head_of_content(tensor.shape, dtype), content])
    return tensor_to_proto(tensor, dtype).SerializeToString(deterministic=True)


@lru_cache(1 << 10)
def head_of_content(shape: tuple[int, ...], dtype: DataType) -> bytes:
    """What stands before the numbers in the serialized TensorProto of a tensor of numbers."""
    size = math.prod(shape) * dtype.size
    return _without_elements(shape, dtype) + bytes([_CONTENT]) + varint(size)


def _without_elements(shape: tuple[int, ...], dtype: DataType) -> bytes:
    proto = TensorProto(dtype=dtype, tensor_shape=TensorShape(shape).to_proto())
    return proto.SerializeToString(deterministic=True)


def _with_strings(tensor: Any, are_content: bool) -> bytes:
    texts, pieces = (
        tensor.reshape(-1).tolist(),
        [_without_elements(tensor.shape, DataType.DT_STRING)],
    )
    lengths = [varint(len(text)) for text in in_time(texts)]
    if are_content:
        size = sum(map(len, lengths)) + sum(map(len, texts))
        pieces += [bytes([_CONTENT]), varint(size), *lengths, *texts]
    else:
        tag = bytes([_STRING])
        for length, text in in_time(zip(lengths, texts, strict=True)):
            pieces += tag, length, text
    return joining(b"")(pieces)


def decode_padded_raw_shape(c: InferenceContext) -> None:
    """A dimension of `fixed_length` bytes of numbers after those of the strings."""
    width = c.make_dim_for_scalar_input(1)
    size = c.get_attr("out_type").size
    c.set_output(0, c.concatenate(c.input(0), c.vector(c.divide(width, size, True))))


DECODE_RAW = register_op(
    "DecodeRaw(bytes: string) -> output: out_type",
    attrs=[
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}",
        "little_endian: bool = true",
    ],
    shape_fn=shape_rule("[...] -> [..., ?]"),
    doc="The bytes of each string as numbers; all strings have one length.",
)

DECODE_PADDED_RAW = register_op(
    "DecodePaddedRaw(input_bytes: string, fixed_length: int32) -> output: out_type",
    attrs=[
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}",
        "little_endian: bool = true",
    ],
    shape_fn=decode_padded_raw_shape,
    doc="The first `fixed_length` bytes of each string as numbers, with zeros for those that are missing.",
)

_PADDED_TYPES = (
    *(DataType.DT_FLOAT, DataType.DT_DOUBLE, DataType.DT_BFLOAT16, DataType.DT_INT8),
    *(DataType.DT_INT16, DataType.DT_INT32, DataType.DT_INT64, DataType.DT_UINT8),
    DataType.DT_UINT16,
)
_TYPES = (*_PADDED_TYPES, *COMPLEX, DataType.DT_HALF, DataType.DT_BOOL)


_OF_TEXT = 1 << 9
"""The work of looking at a string."""


@register_kernel(DECODE_RAW, types={"out_type": _TYPES})
def decode_raw(strings: Any, *, out_type: DataType, little_endian: bool) -> Any:
    texts = strings.reshape(-1).tolist()
    length = len(texts[0]) if texts else 0
    for i, text in enumerate(in_time(texts, _OF_TEXT)):
        if len(text) != length:
            raise InvalidArgumentError(
                "DecodeRaw requires input strings to all be the same size, but element "
                f"{i} has size {len(text)} != {length}"
            )
    size = out_type.size
    multiple = f"a multiple of {size}, the size of {out_type.string}"
    require(length % size == 0, f"Input to DecodeRaw has length {length} that is not {multiple}")
    shape = check_allocation((*strings.shape, length // size), out_type)
    raw = np.frombuffer(bytearray().join(texts), np.uint8)
    return _numbers(raw, out_type, little_endian).reshape(shape)


@register_kernel(DECODE_PADDED_RAW, types={"out_type": _PADDED_TYPES})
def decode_padded_raw(
    strings: Any, fixed_length: Any, *, out_type: DataType, little_endian: bool
) -> Any:
    require_scalar(fixed_length, "k must be scalar, got shape {}")
    width, size = int(fixed_length), out_type.size
    if width <= 0:
        raise InvalidArgumentError(f"fixed_length ({width}) must be greater than zero.")
    message = f"fixed_length ({width}) must be a multiple of the size of out_type ({size})"
    require(width % size == 0, message)
    shape = check_allocation((*strings.shape, width // size), out_type)
    padded, start = np.zeros(strings.size * width, np.uint8), 0
    rows = padded.data
    for texts, _ in string_batches(strings):
        for text in texts:
            rows[start : start + min(len(text), width)] = text[:width]
            start += width
    return _numbers(padded, out_type, little_endian).reshape(shape)


def _numbers(data: Any, dtype: DataType, little_endian: bool) -> Any:
    """The numbers of some bytes, whose order it may change."""
    if dtype is DataType.DT_BOOL:
        return data != 0
    part = dtype.size // 2 if dtype.is_complex else dtype.size
    if not little_endian and part > 1:
        data.view(f"u{part}").byteswap(inplace=True)
    return data.view(dtype.numpy_dtype)


DECODE_COMPRESSED = register_op(
    "DecodeCompressed(bytes: string) -> output: string",
    attrs=["compression_type: string = ''"],
    shape_fn=unchanged_shape,
    doc="Each string decompressed: ZLIB, GZIP, or as it is.",
)

_MADE = 1 << 20
"""So many bytes are made at a time."""


@register_kernel(DECODE_COMPRESSED, factory=True)
def decode_compressed(*, compression_type: str) -> Callable[[Any], Any]:
    if compression_type == "ZSTD":
        raise UnimplementedError("DecodeCompressed of ZSTD is not supported; use ZLIB or GZIP")
    if compression_type not in ("", *WINDOW_BITS):
        raise InvalidArgumentError("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")
    if not compression_type:
        return lambda tensor: tensor.copy()
    bits = WINDOW_BITS[compression_type]

    def decompressed(text: bytes) -> bytes:
        stream = Inflated(io.BytesIO(text), "The compressed string", bits)
        pieces = iter(partial(stream.read, _MADE), b"")
        return gather_bytes(in_time(pieces, string_work), "a decompressed string")

    return lambda tensor: map_strings(decompressed, tensor)
