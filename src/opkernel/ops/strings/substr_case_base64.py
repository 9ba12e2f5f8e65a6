"""Each string changed or measured: Substr, StringStrip, StringLower, StringUpper, StringLength, EncodeBase64 and back.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/substr_op.cc, string_strip_op.cc, string_lower_op.cc,
string_upper_op.cc, string_length_op.cc, base64_ops.cc, tsl/platform/base64.cc.
"""

import binascii
import re
from collections.abc import Callable, Iterable
from itertools import starmap
from typing import Any

import numpy as np

from opkernel.device.string_tensors import map_strings, string_tensor
from opkernel.device.work_clock import in_time, string_work
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import InferenceContext, broadcast_binary_op_shape, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.input_checks import broadcast_shape, require, require_equal
from opkernel.ops.registration import INDEX, register_kernel

STRING_LENGTH = register_op(
    "StringLength(input: string) -> output: int32",
    attrs=["unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"],
    shape_fn=unchanged_shape,
    doc="The length of each string, in bytes or characters.",
)

_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


@register_kernel(STRING_LENGTH)
def string_length(tensor: Any, *, unit: str) -> Any:
    length = len if unit == "BYTE" else _count_characters
    found = np.fromiter(map(length, in_time(tensor.flat, string_work)), np.int32, tensor.size)
    return found.reshape(tensor.shape)


def _count_characters(text: bytes) -> int:
    """The bytes that begin a character; the text need not be valid."""
    return len(text.translate(None, _CONTINUATION_BYTES))


def _register_case(
    name: str, case: str, of_bytes: Callable[[bytes], bytes], of_text: Callable[[str], str]
) -> None:
    op = register_op(
        f"{name}(input: string) -> output: string",
        attrs=["encoding: string = ''"],
        shape_fn=unchanged_shape,
        doc=f"Each string with its letters in {case} case: those of ASCII, or all where `encoding` is utf-8.",
    )

    def convert_utf8(text: bytes) -> bytes:
        """Converted up to the first NUL, where TensorFlow's conversion ends the string."""
        return of_text(text.partition(b"\0")[0].decode("utf-8", "replace")).encode()

    @register_kernel(op, factory=True)
    def convert(*, encoding: str) -> Callable[[Any], Any]:
        if encoding not in ("", "utf-8"):
            raise InvalidArgumentError(
                f"only utf-8 or '' (no encoding) is supported, received {encoding}"
            )
        function = convert_utf8 if encoding else of_bytes
        return lambda tensor: map_strings(function, tensor)


_register_case("StringLower", "lower", bytes.lower, str.lower)
_register_case("StringUpper", "upper", bytes.upper, str.upper)


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
_DIGITS = re.compile(rb"[A-Za-z0-9_-]*")


def _encoded(text: bytes) -> bytes:
    return binascii.b2a_base64(text, newline=False).translate(_FOR_WEB)


@register_kernel(ENCODE_BASE64)
def encode_base64(tensor: Any, *, pad: bool) -> Any:
    return map_strings(_encoded if pad else lambda text: _encoded(text).rstrip(b"="), tensor)


@register_kernel(DECODE_BASE64)
def decode_base64(tensor: Any) -> Any:
    return map_strings(_decoded, tensor)


def _decoded(text: bytes) -> bytes:
    """The bits left over at the end do not count."""
    digits = text
    if len(text) % 4 == 0:
        digits = text[:-2] + text[-2:].rstrip(b"=")
    require(len(digits) % 4 != 1, "Base64 string length cannot be 1 modulo 4.")
    require(_DIGITS.fullmatch(digits), "Invalid character found in base64.")
    return binascii.a2b_base64(digits.translate(_FROM_WEB) + b"==")


STRING_STRIP = register_op(
    "StringStrip(input: string) -> output: string",
    shape_fn=unchanged_shape,
    doc="Each string without the blanks at its ends.",
)


@register_kernel(STRING_STRIP)
def string_strip(tensor: Any) -> Any:
    return map_strings(bytes.strip, tensor)


_MAX_BROADCAST_RANK = 2
_LONG_TEXT = 256
"""From so many bytes on, NumPy finds the characters of a string faster."""


def substr_shape(c: InferenceContext) -> None:
    """Strings and positions broadcast; positions and lengths have one shape."""
    position, length = c.input(1), c.input(2)
    if c.rank_known(length):
        c.with_rank(position, c.rank(length))
    for i in range(c.rank(position)):
        # Unknown sizes only match unknown ones: the values are compared, not merged.
        if c.dim(position, i).value != c.dim(length, i).value:
            raise InvalidArgumentError(f"pos and len shapes must match: {position} vs. {length}")
    broadcast_binary_op_shape(c)


SUBSTR = register_op(
    "Substr(input: string, pos: T, len: T) -> output: string",
    attrs=["T: {int32, int64}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"],
    shape_fn=substr_shape,
    doc="`len` bytes or characters of each string, from `pos` on; a negative `pos` counts from the end.",
)


@register_kernel(SUBSTR, types={"T": INDEX})
def substr(tensor: Any, pos: Any, len: Any, *, unit: str) -> Any:
    require_equal(pos.shape, len.shape, "pos and len should have the same shape, got: {} vs. {}")
    shape = _common_shape(tensor.shape, pos.shape)
    texts, starts, lengths = (np.broadcast_to(one, shape) for one in (tensor, pos, len))
    part: Callable[[bytes, int, int], bytes] = _bytes if unit == "BYTE" else _Characters().of
    rows = zip(texts.flat, starts.ravel().tolist(), lengths.ravel().tolist(), strict=True)
    timed: Iterable[tuple[bytes, int, int]] = in_time(rows, lambda row: string_work(row[0]))
    return string_tensor(shape, starmap(part, timed))


def _common_shape(texts: tuple[int, ...], positions: tuple[int, ...]) -> tuple[int, ...]:
    if positions in ((), texts):
        return texts
    shape = broadcast_shape(texts, positions, "Incompatible shapes: {} vs. {}")
    if len(shape) > _MAX_BROADCAST_RANK:
        raise UnimplementedError(f"Substr broadcast not implemented for {len(shape)} dimensions")
    return shape


def _bytes(text: bytes, start: int, length: int) -> bytes:
    """A negative length takes all that follows."""
    size = len(text)
    if not -size <= start <= size:
        raise InvalidArgumentError(f"pos {start} out of range for string {text!r}")
    begin = start if start >= 0 else size + start
    return text[begin:] if length < 0 else text[begin : begin + length]


class _Characters:
    """Parts of strings by their characters, which are found once for a string that stands in many rows.

    From the end, TensorFlow finds no characters of a negative length; from the beginning none are asked for.
    """

    def __init__(self) -> None:
        self._text: bytes | None = None
        self._begins: Any = None

    def of(self, text: bytes, start: int, length: int) -> bytes:
        if text is not self._text:
            self._text, self._begins = text, _begins(text)
        size = len(self._begins) - 1
        if not -size <= start <= size or (start < 0 and length < 0):
            raise InvalidArgumentError(f"pos {start} out of range for string")
        begin = start if start >= 0 else size + start
        return text[self._begins[begin] : self._begins[min(begin + max(length, 0), size)]]


def _begins(text: bytes) -> Any:
    """Where characters begin, and the end: the first byte, and each that does not continue a character."""
    if len(text) < _LONG_TEXT:
        return [*(i for i, byte in enumerate(text) if not i or byte & 0xC0 != 0x80), len(text)]
    is_begin = np.frombuffer(text, np.uint8) & 0xC0 != 0x80
    is_begin[0] = True
    return np.append(np.flatnonzero(is_begin), len(text))
