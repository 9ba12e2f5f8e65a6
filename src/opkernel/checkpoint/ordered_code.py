"""Names of slices as bytes whose order is that of the slices: the keys of their data in tables.

Source: TensorFlow tsl/lib/strings/ordered_code.cc, core/util/saved_tensor_slice_util.cc
(EncodeTensorNameSlice).
"""

from __future__ import annotations

import re

from opkernel.checkpoint.tensor_slice import TensorSlice

_ESCAPED = {b"\0": b"\0\xff", b"\xff": b"\xff\0"}


def slice_key(name: str, tensor_slice: TensorSlice) -> bytes:
    """The key of the data of a slice of a tensor."""
    parts = [_number(0), _string(name.encode()), _number(tensor_slice.rank)]
    for start, length in tensor_slice.extents:
        parts += [_signed(start), _signed(length)]
    return b"".join(parts)


def _number(value: int) -> bytes:
    """A number >= 0: how many bytes it has, and these, the highest first."""
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(data)]) + data


def _string(value: bytes) -> bytes:
    """A string with an end that sorts before all of its continuations."""
    return re.sub(rb"[\0\xff]", lambda match: _ESCAPED[match[0]], value) + b"\0\1"


def _signed(value: int) -> bytes:
    """A number of any sign: the first bits tell how many bytes it has."""
    magnitude = ~value if value < 0 else value
    length = magnitude.bit_length() // 7 + 1
    if length == 1:
        return bytes([(value & 0xFF) ^ 0x80])
    header = ((0xFFFF << (16 - length)) & 0xFFFF).to_bytes(2, "big")
    data = bytearray(value.to_bytes(10, "big", signed=True)[-length:])
    data[0] ^= header[0]
    data[1] ^= header[1]
    return bytes(data)
