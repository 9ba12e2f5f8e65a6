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

from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import in_time
from opkernel.errors import DataLossError, InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.declared.rules import set_outputs
from opkernel.ops.parsing.proto_fields import FieldCodec, codec_of, message_descriptor
from opkernel.ops.parsing.wire import WireError, fields
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape


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
    "DecodeProtoV2",
    inputs=["bytes: string"],
    outputs=["sizes: int32", "values: output_types"],
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
    "EncodeProto",
    inputs=["sizes: int32", "values: Tinput_types"],
    outputs=["bytes: string"],
    attrs=[
        "field_names: list(string)",
        "message_type: string",
        "descriptor_source: string = 'local://'",
        "Tinput_types: list(type) >= 1",
    ],
    shape_fn=encode_proto_shape,
    doc="Serialized messages of fields: `sizes` says how many of the values each has.",
)


@register_kernel(DECODE_PROTO_V2, device="CPU", factory=True)
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
        rows = [
            _decoded(prepare(text), codecs) for text in in_time(serialized.reshape(-1).tolist())
        ]
        sizes = np.array([[len(one) for one in row] for row in rows], np.int32)
        shape = (*serialized.shape, len(codecs))
        values = [
            _column([row[i] for row in rows], dtype).reshape(*serialized.shape, -1)
            if rows
            else np.zeros((*serialized.shape, 0), dtype.numpy_dtype)
            for i, dtype in enumerate(output_types)
        ]
        return sizes.reshape(shape), values

    return decode


def _codecs(
    message: Descriptor, names: Sequence[str], types: Sequence[DataType]
) -> list[FieldCodec]:
    if len(names) != len(types):
        raise InvalidArgumentError(
            f"field_names and types must have the same length: {len(names)} vs. {len(types)}"
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
                text_format.Parse(text, made)
            else:
                made.MergeFromString(text)
        except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
            raise DataLossError(f"Unable to parse {form} protobuf: {error}") from error
        serialized: bytes = made.SerializeToString()
        return serialized

    return prepare


def _decoded(data: bytes, codecs: Sequence[FieldCodec]) -> list[list[Any]]:
    """The elements of each field; of a field that is not repeated, the last."""
    found: list[list[Any]] = [[] for _ in codecs]
    try:
        for number, wire, start, end in fields(data, 0, len(data)):
            for codec, elements in zip(codecs, found, strict=True):
                if codec.number == number:
                    elements += codec.elements(data, wire, start, end)
    except WireError as error:
        raise DataLossError(f"Unable to parse binary protobuf: {error}") from None
    pairs = zip(codecs, found, strict=True)
    return [elements if codec.is_repeated else elements[-1:] for codec, elements in pairs]


def _column(rows: list[list[Any]], dtype: DataType) -> Any:
    """A row for each message, filled up."""
    width = max(1, *map(len, rows))
    check_allocation((len(rows), width), dtype)
    output = np.zeros((len(rows), width), dtype.numpy_dtype)
    if dtype is DataType.DT_STRING:
        output[...] = b""
    for row, values in zip(output, rows, strict=True):
        row[: len(values)] = values
    return output


@register_kernel(ENCODE_PROTO, device="CPU", factory=True)
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
        counts = sizes.reshape(-1, len(codecs)).tolist()
        flat = [tensor.reshape(len(counts), tensor.shape[-1]).tolist() for tensor in values]
        found = [
            b"".join([codecs[i].written(flat[i][row][: own[i]]) for i in order])
            for row, own in enumerate(in_time(counts))
        ]
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
