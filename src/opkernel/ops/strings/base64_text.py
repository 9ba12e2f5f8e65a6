"""Base64 for the web (- and _ in place of + and /): EncodeBase64, DecodeBase64.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/base64_ops.cc, tsl/platform/base64.cc.
"""

import binascii
import re
from collections.abc import Callable
from typing import Any

from opkernel.device.string_tensors import map_strings
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.registration import register_kernel

ENCODE_BASE64 = register_op(
    "EncodeBase64",
    inputs=["input: string"],
    outputs=["output: string"],
    attrs=["pad: bool = false"],
    shape_fn=unchanged_shape,
    doc="Each string in base64, filled up with = if `pad`.",
)

DECODE_BASE64 = register_op(
    "DecodeBase64",
    inputs=["input: string"],
    outputs=["output: string"],
    shape_fn=unchanged_shape,
    doc="Each string from base64, with or without = at its end.",
)

_FOR_WEB = bytes.maketrans(b"+/", b"-_")
_FROM_WEB = bytes.maketrans(b"-_", b"+/")
_DIGITS = re.compile(rb"[A-Za-z0-9_-]*")


def _encoded(text: bytes) -> bytes:
    return binascii.b2a_base64(text, newline=False).translate(_FOR_WEB)


@register_kernel(ENCODE_BASE64, device="CPU", factory=True)
def encode_base64(*, pad: bool) -> Callable[[Any], Any]:
    function = _encoded if pad else lambda text: _encoded(text).rstrip(b"=")
    return lambda tensor: map_strings(function, tensor)


@register_kernel(DECODE_BASE64, device="CPU")
def decode_base64(tensor: Any) -> Any:
    return map_strings(_decoded, tensor)


def _decoded(text: bytes) -> bytes:
    """The bits left over at the end do not count."""
    digits = text
    if len(text) % 4 == 0:
        digits = text[:-2] + text[-2:].rstrip(b"=")
    if len(digits) % 4 == 1:
        raise InvalidArgumentError("Base64 string length cannot be 1 modulo 4.")
    if not _DIGITS.fullmatch(digits):
        raise InvalidArgumentError("Invalid character found in base64.")
    return binascii.a2b_base64(digits.translate(_FROM_WEB) + b"==")
