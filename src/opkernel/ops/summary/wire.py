"""Summaries in their wire format: a tag may be any bytes, and serialized parts are not parsed again.

The fields stand in the order of their numbers, as TensorFlow writes them.

Source: TensorFlow core/framework/summary.proto, core/util/event.proto.
"""

import struct
from collections.abc import Iterable
from typing import Any

from opkernel.device.string_tensors import gather_bytes, joining, string_tensor
from opkernel.device.work_clock import in_time, string_work
from opkernel.types.varints import varint

_BYTES = 2
_VALUE = 1
"""The number of the field of Summary."""
_SIMPLE_VALUE = struct.Struct("<Bf")
_SIMPLE_VALUE_TAG = 2 << 3 | 5
TAG, IMAGE, HISTO, AUDIO, NODE_NAME, TENSOR, METADATA = 1, 4, 5, 6, 7, 8, 9
"""The numbers of fields of Summary.Value."""


def field(number: int, content: bytes) -> bytes:
    """A field of bytes, or of a serialized message."""
    return joining(b"")([bytes([number << 3 | _BYTES]), varint(len(content)), content])


def simple_value(value: float) -> bytes:
    """The field `simple_value`, which is a float32."""
    return _SIMPLE_VALUE.pack(_SIMPLE_VALUE_TAG, value)


def value(tag: bytes, *fields: bytes) -> bytes:
    """A Summary.Value: its tag, unless that is empty, and its other fields."""
    return joining(b"")([*([field(TAG, tag)] if tag else []), *fields])


def summary(values: Iterable[bytes]) -> bytes:
    """A Summary of serialized values."""
    pieces = (field(_VALUE, one) for one in in_time(values, string_work))
    return gather_bytes(pieces, "a summary")


def summary_tensor(values: Iterable[bytes]) -> Any:
    """A Summary of serialized values, as a scalar."""
    return string_tensor((), [summary(values)])
