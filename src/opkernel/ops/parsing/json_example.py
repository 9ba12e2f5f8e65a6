"""DecodeJSONExample: Example messages from JSON.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/decode_proto_op.cc (example_parsing_ops.cc).
"""

from typing import Any

from opkernel.device.made_bytes import check_bytes
from opkernel.device.string_tensors import map_strings
from opkernel.device.work_clock import check_seconds
from opkernel.errors import InvalidArgumentError
from opkernel.escaping import json_value
from opkernel.opdef import register_op, unchanged_shape
from opkernel.ops.parsing.wire import write_varint
from opkernel.ops.registration import register_kernel
from opkernel.proto import Example, Feature

_SECONDS_AN_ELEMENT = 1e-6
_OF_SIGNS = {b",": 40, b"{": 72, b"[": 64, b'"': 30}
"""The bytes that a value takes beside its text, by the sign that it begins or ends with."""

DECODE_JSONEXAMPLE = register_op(
    "DecodeJSONExample",
    inputs=["json_examples: string"],
    outputs=["binary_examples: string"],
    shape_fn=unchanged_shape,
    doc="The serialized Example message that each string says in JSON.",
)


@register_kernel(DECODE_JSONEXAMPLE)
def decode_json_example(json_examples: Any) -> Any:
    return map_strings(_serialized, json_examples)


def _serialized(text: bytes) -> bytes:
    """The message with its features in the order of the text and its numbers one by one."""
    from google.protobuf import json_format  # slow to import

    check_seconds(text.count(b",") * _SECONDS_AN_ELEMENT, "parsing JSON")
    check_bytes(_times_as_long(text), "values of JSON")
    example = Example()
    try:
        json_format.Parse(text, example)
        features = (json_value(text).get("features") or {}).get("feature") or {}
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"Error while parsing JSON: {error}") from None
    if not example.HasField("features"):
        return b""
    entries = [_entry(key, example.features.feature[key]) for key in features]
    return _field(1, b"".join([_field(1, entry) for entry in entries]))


def _times_as_long(text: bytes) -> int:
    """The bytes of the text as values of Python."""
    return len(text) + sum(of_one * text.count(sign) for sign, of_one in _OF_SIGNS.items())


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + write_varint(len(content)) + content


def _entry(key: str, feature: Feature) -> bytes:
    kind = feature.WhichOneof("kind")
    if kind is None:
        return _field(1, key.encode()) + _field(2, b"")
    if kind == "bytes_list":
        content, number = b"".join([_field(1, one) for one in feature.bytes_list.value]), 1
    elif kind == "float_list":
        packed = feature.float_list.SerializeToString()
        floats = packed[len(packed) - 4 * len(feature.float_list.value) :]
        pieces = [b"\x0d" + floats[i : i + 4] for i in range(0, len(floats), 4)]
        content, number = b"".join(pieces), 2
    else:
        numbers = feature.int64_list.value
        content, number = b"".join([b"\x08" + write_varint(n & 2**64 - 1) for n in numbers]), 3
    return _field(1, key.encode()) + _field(2, _field(number, content))
