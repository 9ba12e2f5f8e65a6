"""Fields of any protocol buffers as tensors: DecodeProtoV2, EncodeProto.

Source: TensorFlow core/ops/decode_proto_ops.cc, encode_proto_ops.cc, core/kernels/decode_proto_op.cc,
encode_proto_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from google.protobuf import message_factory, text_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from opkernel.device.made_bytes import MadeBytes, making_bytes
from opkernel.device.string_tensors import joining, string_tensor
from opkernel.device.work_clock import check_seconds, in_time, string_work
from opkernel.errors import DataLossError, InvalidArgumentError
from opkernel.kernel import check_allocation, counted
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.ops.input_checks import require, require_equal
from opkernel.ops.parsing.wire import (
    Column,
    FieldCodec,
    WireError,
    codec_of,
    fields,
    message_descriptor,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

_OF_ELEMENT = 48
"""The bytes of an element of a field, beside eight for each byte of the message."""
_SECONDS_A_BYTE = 5e-7
"""The time that protobuf takes at least for a byte of text."""


def decode_proto_shape(c: InferenceContext) -> None:
    """A dimension of fields, or of the elements of one, after those of the strings."""
    fields = len(c.get_attr("output_types"))
    lengths: list[int | None] = [fields, *[None] * fields]
    set_outputs(c, [c.concatenate(c.input(0), c.vector(length)) for length in lengths])


def encode_proto_shape(c: InferenceContext) -> None:
    """The dimensions that all values share, but the last."""
    batch = c.unknown_shape()
    for i in reversed(range(1, c.num_inputs())):
        values = c.with_rank_at_least(c.input(i), 2)
        batch = c.merge(c.subshape(values, 0, -1), batch)
    c.set_output(0, batch)


DECODE_PROTO_V2 = register_op(
    "DecodeProtoV2(bytes: string) -> sizes: int32, values: output_types",
    attrs=[
        "message_type: string",
        "field_names: list(string)",
        "output_types: list(type) >= 0",
        "descriptor_source: string = 'local://'",
        "message_format: string = 'binary'",
        "sanitize: bool = false",
    ],
    shape_fn=decode_proto_shape,
    doc="Fields of serialized messages: how many elements each has, and these, filled up with zeros.",
)

ENCODE_PROTO = register_op(
    "EncodeProto(sizes: int32, values: Tinput_types) -> bytes: string",
    attrs=[
        "field_names: list(string)",
        "message_type: string",
        "descriptor_source: string = 'local://'",
        "Tinput_types: list(type) >= 1",
    ],
    shape_fn=encode_proto_shape,
    doc="Serialized messages of fields: `sizes` says how many of the values each has.",
)


@register_kernel(DECODE_PROTO_V2, factory=True)
def decode_proto(
    *,
    message_type: str,
    field_names: list[str],
    output_types: list[DataType],
    descriptor_source: str,
    message_format: str,
    sanitize: bool,
) -> Callable[[Any], Any]:
    message = message_descriptor(descriptor_source, message_type)
    codecs = _codecs(message, field_names, output_types)
    if message_format not in ("binary", "text"):
        raise InvalidArgumentError(f"format must be one of binary or text, not {message_format}")
    prepare = _preparation(message, message_format, sanitize)

    def decode(serialized: Any) -> Any:
        require(serialized.size, "bytes must have at least one message")
        shape = check_allocation((*serialized.shape, len(codecs)), DataType.DT_INT32)
        sizes = counted(np.zeros((serialized.size, len(codecs)), np.int32))
        columns = [codec.new_column() for codec in codecs]
        with making_bytes("elements of messages") as made:
            for text, row in zip(in_time(serialized.flat, string_work), sizes, strict=True):
                row[:] = _decode(prepare(text), codecs, columns, made)
        values = [
            _filled_up(column, sizes[:, i], dtype).reshape(*serialized.shape, -1)
            for i, (column, dtype) in enumerate(zip(columns, output_types, strict=True))
        ]
        return sizes.reshape(shape), values

    return decode


def _codecs(
    message: Descriptor, names: Sequence[str], types: Sequence[DataType]
) -> list[FieldCodec]:
    require_equal(
        len(names), len(types), "field_names and types must have the same length: {} vs. {}"
    )
    return [codec_of(message, name, dtype) for name, dtype in zip(names, types, strict=True)]


def _preparation(message: Descriptor, form: str, sanitize: bool) -> Callable[[bytes], bytes]:
    """The function that gives the binary form of a string."""
    if form == "binary" and not sanitize:
        return bytes
    new = message_factory.GetMessageClass(message)

    def prepare(text: bytes) -> bytes:
        made = new()
        try:
            if form == "text":
                check_seconds(len(text) * _SECONDS_A_BYTE, "parsing a message as text")
                text_format.Parse(text, made)
            else:
                made.MergeFromString(text)
        except (DecodeError, text_format.ParseError, UnicodeDecodeError, RecursionError) as error:
            raise DataLossError(f"Unable to parse {form} protobuf: {error}") from error
        return made.SerializeToString()

    return prepare


def _decode(
    data: bytes, codecs: Sequence[FieldCodec], columns: Sequence[Column], made: MadeBytes
) -> list[int]:
    """Add the elements of a message to the columns of its fields; how many each field has.

    Of a field that is not repeated, the last counts.
    """
    before = [len(column) for column in columns]
    chosen = list(zip(codecs, columns, strict=True))
    try:
        for number, wire, start, end in in_time(fields(data, 0, len(data))):
            for codec, column in chosen:
                if codec.number == number:
                    made.add(8 * (end - start) + _OF_ELEMENT)
                    column += codec.elements(data, wire, start, end)
    except WireError as error:
        raise DataLossError(f"Unable to parse binary protobuf: {error}") from None
    for (codec, column), size in zip(chosen, before, strict=True):
        if not codec.is_repeated:
            del column[size:-1]
    return [len(column) - size for column, size in zip(columns, before, strict=True)]


def _filled_up(column: Column, sizes: Any, dtype: DataType) -> Any:
    """A row for each message: its elements in a column, filled up."""
    width = max(1, int(sizes.max(initial=0)))
    shape = check_allocation((len(sizes), width), dtype)
    if dtype is not DataType.DT_STRING:
        output = counted(np.zeros(shape, dtype.numpy_dtype))
        output[np.arange(width) < sizes[:, None]] = column
        return output
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    fill = [b""] * width
    rows = zip([0, *ends], ends, strict=False)
    texts = (text for a, b in rows for text in (*column[a:b], *fill[b - a :]))
    return string_tensor(shape, in_time(texts))


@register_kernel(ENCODE_PROTO, factory=True)
def encode_proto(
    *,
    field_names: list[str],
    message_type: str,
    descriptor_source: str,
    Tinput_types: list[DataType],
) -> Callable[[Any, list[Any]], Any]:
    message = message_descriptor(descriptor_source, message_type)
    codecs = _codecs(message, field_names, Tinput_types)
    order = sorted(range(len(codecs)), key=lambda i: codecs[i].number)

    def encode(sizes: Any, values: list[Any]) -> Any:
        shape = _check_values(sizes, values)
        counts = sizes.reshape(-1, len(codecs))
        flat = [tensor.reshape(len(counts), tensor.shape[-1]) for tensor in values]
        join = joining(b"")
        found = (
            join([codecs[i].written(flat[i][row, : own[i]]) for i in order])
            for row, own in enumerate(in_time(counts))
        )
        return string_tensor(shape, found)

    return encode


def _check_values(sizes: Any, values: list[Any]) -> tuple[int, ...]:
    """The shape of the messages, if sizes and values fit together."""
    if not values or sizes.ndim < 1 or sizes.shape[-1] != len(values):
        raise InvalidArgumentError(
            f"sizes should be batch_size + [num_fields]: {TensorShape(sizes.shape)} for "
            f"{len(values)} fields"
        )
    shape: tuple[int, ...] = sizes.shape[:-1]
    for i, tensor in enumerate(values):
        if tensor.ndim < 1 or tensor.shape[:-1] != shape:
            raise InvalidArgumentError(
                f"Values {i} of shape {TensorShape(tensor.shape)} do not fit the sizes "
                f"{TensorShape(sizes.shape)}"
            )
        own = sizes[..., i]
        if own.size and not 0 <= own.min() <= own.max() <= tensor.shape[-1]:
            raise InvalidArgumentError(
                f"Sizes of values {i} must be between 0 and their last dimension, {tensor.shape[-1]}, got "
                f"{own.min()} to {own.max()}"
            )
    return shape
