"""EncodeBase64 and DecodeBase64: strings in base64 with the digits - and _, as in the addresses of web pages.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/base64_ops.cc, tsl/platform/base64.cc.
"""

import binascii
import string
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import numpy as np

from opkernel.device.string_buffer import StringBatch, string_batches, strings_between
from opkernel.device.string_tensors import string_tensor
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.registration import register_kernel

ENCODE_BASE64 = register_op(
    "EncodeBase64(input: string) -> output: string",
    attrs=["pad: bool = false"],
    shape_fn=unchanged_shape,
    doc="Each string in base64, filled up with = if `pad`.",
)

DECODE_BASE64 = register_op(
    "DecodeBase64(input: string) -> output: string",
    shape_fn=unchanged_shape,
    doc="Each string from base64, with or without = at its end.",
)

_FOR_WEB = bytes.maketrans(b"+/", b"-_")
_FROM_WEB = bytes.maketrans(b"-_", b"+/")
DIGITS = (string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_").encode()
"""The digits, by their values."""
FILL = b"="[0]
LENGTH_FAULT, DIGIT_FAULT = 1, 2
_FAULTS = {
    LENGTH_FAULT: "Base64 string length cannot be 1 modulo 4.",
    DIGIT_FAULT: "Invalid character found in base64.",
}


def encode(data: Any, splits: Any, pad: bool) -> tuple[Any, Any, Any]:
    """The strings of a buffer in base64: bytes, and where each string begins and ends in them."""
    lengths = np.diff(splits)
    groups = (lengths + 2) // 3
    filled = _filled_up(data, splits, lengths, 3 * groups, b"\0")
    encoded = binascii.b2a_base64(filled, newline=False).translate(_FOR_WEB)
    found = np.frombuffer(bytearray(encoded), np.uint8)
    stops = np.cumsum(4 * groups)
    begins = stops - 4 * groups
    ends = begins + (4 * lengths + 2) // 3
    if not pad:
        return found, begins, ends
    for missing in (1, 2):
        found[stops[stops - ends >= missing] - missing] = FILL
    return found, begins, stops


def decode(data: Any, splits: Any) -> tuple[Any, Any, Any, int]:
    """The strings of a buffer from base64, as of `encode`, and the fault of one of them or 0.

    The bits left over at the end of a string do not count.
    """
    lengths = np.diff(splits)
    for _ in range(2):  # up to two = are no digits, where there are whole groups with them
        ends = splits[:-1] + lengths
        is_whole = (np.diff(splits) % 4 == 0) & (lengths > 0)
        lengths[is_whole] -= data[ends[is_whole] - 1] == FILL
    if (lengths % 4 == 1).any():
        return data, splits, splits, LENGTH_FAULT
    groups = (lengths + 3) // 4
    digits = _filled_up(data, splits, lengths, 4 * groups, b"A")
    if digits.translate(None, DIGITS):
        return data, splits, splits, DIGIT_FAULT
    found = np.frombuffer(binascii.a2b_base64(digits.translate(_FROM_WEB)), np.uint8)
    begins = np.cumsum(3 * groups) - 3 * groups
    return found, begins, begins + 3 * lengths // 4, 0


def _filled_up(data: Any, splits: Any, lengths: Any, sizes: Any, fill: bytes) -> bytes:
    """The beginnings of strings, of these lengths, with `fill` behind each up to its size."""
    whole = data.tobytes()
    rows = zip(splits.tolist(), (splits[:-1] + lengths).tolist(), sizes.tolist(), strict=False)
    return b"".join([whole[a:b].ljust(size, fill) for a, b, size in rows])


Encode = Callable[[Any, Any, bool], tuple[Any, Any, Any]]
"""A function as `encode`."""
Decode = Callable[[Any, Any], tuple[Any, Any, Any, int]]
"""A function as `decode`."""


StringsBetween = Callable[[Any, Any, Any], Iterable[bytes]]
"""A function as `strings_between`."""


def register_base64(
    encode: Encode,
    decode: Decode,
    strings: StringsBetween = strings_between,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernels of EncodeBase64 and DecodeBase64 with functions for buffers of strings."""

    def encode_base64(tensor: Any, *, pad: bool) -> Any:
        parts = (strings(*encode(*batch.joined(), pad)) for batch in string_batches(tensor))
        return string_tensor(tensor.shape, chain.from_iterable(parts))

    def decoded(batch: StringBatch) -> Iterable[bytes]:
        *found, fault = decode(*batch.joined())
        if fault:
            raise InvalidArgumentError(_FAULTS[fault])
        return strings(*found)

    def decode_base64(tensor: Any) -> Any:
        parts = map(decoded, string_batches(tensor))
        return string_tensor(tensor.shape, chain.from_iterable(parts))

    register_kernel(ENCODE_BASE64, registry=registry)(encode_base64)
    register_kernel(DECODE_BASE64, registry=registry)(decode_base64)


register_base64(encode, decode)
