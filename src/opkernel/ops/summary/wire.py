"""Summaries in their wire format: a tag may be any bytes, and serialized parts are not parsed again.

The fields stand in the order of their numbers, as TensorFlow writes them.

Source: TensorFlow core/framework/summary.proto, core/util/event.proto.
"""

import struct
from collections.abc import Iterable
from itertools import chain
from typing import Any

from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import joining, string_tensor
from opkernel.device.work_clock import in_time
from opkernel.types.varints import varint

_BYTES = 2
_VALUE = 1
"""The number of the field of Summary."""
_SIMPLE_VALUE = struct.Struct("<Bf")
_SIMPLE_VALUE_TAG = 2 << 3 | 5
TAG, IMAGE, HISTO, AUDIO, NODE_NAME, TENSOR, METADATA = 1, 4, 5, 6, 7, 8, 9
"""The numbers of fields of Summary.Value."""


def field(number: int, *parts: bytes) -> list[bytes]:
    """A field of bytes, or of a serialized message, which is given in parts."""
    return [bytes([number << 3 | _BYTES]) + varint(sum(map(len, parts))), *parts]


def simple_value(value: float) -> list[bytes]:
    """The field `simple_value`, which is a float32."""
    return [_SIMPLE_VALUE.pack(_SIMPLE_VALUE_TAG, value)]


def value(tag: bytes, *fields: list[bytes]) -> list[bytes]:
    """A Summary.Value: its tag, unless that is empty, and its other fields."""
    return [*(field(TAG, tag) if tag else []), *chain.from_iterable(fields)]


def summary(values: Iterable[list[bytes]]) -> bytes:
    """A Summary of values, each in parts; they are charged as an iterator makes them."""
    parts: list[bytes] = []
    with making_bytes("a summary") as made:
        for one in in_time(values):
            parts += field(_VALUE, *one)
            made.add(sum(map(len, one)))
        return joining(b"")(parts)


def summary_tensor(values: Iterable[list[bytes]]) -> Any:
    """A Summary of values, each in parts, as a scalar."""
    return string_tensor((), [summary(values)])
