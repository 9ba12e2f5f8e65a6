"""Bytes as numbers, and compressed bytes: DecodeRaw, DecodePaddedRaw, DecodeCompressed.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/decode_raw_op.cc, decode_padded_raw_op.cc,
core/kernels/decode_compressed_op.cc.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opkernel.device.string_tensors import gather_bytes, map_strings
from opkernel.device.work_clock import in_time, string_work
from opkernel.errors import DataLossError, InvalidArgumentError, UnimplementedError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op, unchanged_shape
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.kernel_types import COMPLEX
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def decode_padded_raw_shape(c: InferenceContext) -> None:
    """A dimension of `fixed_length` bytes of numbers after those of the strings."""
    width = c.make_dim_for_scalar_input(1)
    size = c.get_attr("out_type").size
    c.set_output(0, c.concatenate(c.input(0), c.vector(c.divide(width, size, True))))


DECODE_RAW = register_op(
    "DecodeRaw",
    inputs=["bytes: string"],
    outputs=["output: out_type"],
    attrs=[
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}",
        "little_endian: bool = true",
    ],
    shape_fn=shape_rule("[...] -> [..., ?]"),
    doc="The bytes of each string as numbers; all strings have one length.",
)

DECODE_PADDED_RAW = register_op(
    "DecodePaddedRaw",
    inputs=["input_bytes: string", "fixed_length: int32"],
    outputs=["output: out_type"],
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
    if length % size:
        raise InvalidArgumentError(
            f"Input to DecodeRaw has length {length} that is not a multiple of {size}, the size of "
            f"{out_type.string}"
        )
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
    if width % size:
        raise InvalidArgumentError(
            f"fixed_length ({width}) must be a multiple of the size of out_type ({size})"
        )
    shape = check_allocation((*strings.shape, width // size), out_type)
    padded = np.zeros((strings.size, width), np.uint8)
    for row, text in zip(padded, in_time(strings.flat, string_work), strict=True):
        row[: len(text)] = np.frombuffer(text, np.uint8, min(len(text), width))
    return _numbers(padded.reshape(-1), out_type, little_endian).reshape(shape)


def _numbers(data: Any, dtype: DataType, little_endian: bool) -> Any:
    if dtype is DataType.DT_BOOL:
        return data != 0
    part = dtype.size // 2 if dtype.is_complex else dtype.size
    if not little_endian and part > 1:
        data = np.ascontiguousarray(data.reshape(-1, part)[:, ::-1]).reshape(-1)
    return data.view(dtype.numpy_dtype)


DECODE_COMPRESSED = register_op(
    "DecodeCompressed",
    inputs=["bytes: string"],
    outputs=["output: string"],
    attrs=["compression_type: string = ''"],
    shape_fn=unchanged_shape,
    doc="Each string decompressed: ZLIB, GZIP, or as it is.",
)

_WINDOW_BITS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
_TAKEN, _MADE = 1 << 12, 1 << 20
"""So many bytes are taken, and made, at a time."""


@register_kernel(DECODE_COMPRESSED, factory=True)
def decode_compressed(*, compression_type: str) -> Callable[[Any], Any]:
    if compression_type == "ZSTD":
        raise UnimplementedError("DecodeCompressed of ZSTD is not supported; use ZLIB or GZIP")
    if compression_type not in ("", *_WINDOW_BITS):
        raise InvalidArgumentError("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")
    if not compression_type:
        return lambda tensor: tensor.copy()
    bits = _WINDOW_BITS[compression_type]

    def decompressed(text: bytes) -> bytes:
        return gather_bytes(in_time(_pieces(text, bits), string_work), "a decompressed string")

    return lambda tensor: map_strings(decompressed, tensor)


def _pieces(text: bytes, window_bits: int) -> Iterator[bytes]:
    """What all members of a string hold, piece by piece.

    As in TensorFlow, a string that ends too early gives what it has.
    """
    view, at = memoryview(text), 0
    while at < len(text):
        stream, given = zlib.decompressobj(window_bits), b""
        while not stream.eof:
            if not given:
                given = bytes(view[at : at + _TAKEN])
                at += len(given)
            try:
                piece, is_over = stream.decompress(given, _MADE), not given
            except zlib.error as error:
                raise DataLossError(f"The compressed string is damaged: {error}") from error
            if is_over and not piece and not stream.eof:
                return
            given = stream.unconsumed_tail
            yield piece
        if window_bits == zlib.MAX_WBITS:
            return
        at -= len(stream.unused_data)
