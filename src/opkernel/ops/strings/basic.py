"""Strings as wholes: StringLower, StringUpper, StringLength, StringStrip, base 64, and scripts of Unicode.

`scripts.txt` (written by tools/record_unicode_tables.py) has the runs of code points of one script.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/string_join_op.cc, string_length_op.cc,
string_lower_op.cc, string_upper_op.cc, core/kernels/base64_ops.cc, tsl/platform/base64.cc,
core/kernels/unicode_script_op.cc.
"""

import binascii
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from opkernel.device.string_tensors import joining, map_strings, string_tensor
from opkernel.device.work_clock import in_time, parts_work, string_work
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape


def string_join_shape(c: InferenceContext) -> None:
    """The shape of all inputs that are no scalars."""
    shape = c.unknown_shape()
    ranks = [c.rank(c.input(i)) for i in range(c.num_inputs())]
    if not any(ranks):
        shape = c.scalar()
    for i, rank in enumerate(ranks):
        if rank > 0:
            shape = c.merge(shape, c.input(i))
    c.set_output(0, shape)


STRING_JOIN = register_op(
    "StringJoin",
    inputs=["inputs: N * string"],
    outputs=["output: string"],
    attrs=["N: int >= 0", "separator: string = ''"],
    shape_fn=string_join_shape,
    doc="The strings of all inputs at each place, one after the other, `separator` between them.",
)


@register_kernel(STRING_JOIN, factory=True)
def string_join(*, separator: str) -> Callable[[list[Any]], Any]:
    glue = separator.encode("utf-8", "surrogateescape")

    def join(inputs: list[Any]) -> Any:
        shape: tuple[int, ...] = ()
        for tensor in inputs:
            if tensor.ndim and shape not in ((), tensor.shape):
                raise InvalidArgumentError(
                    "Input shapes do not match: "
                    f"{TensorShape(shape)} vs. {TensorShape(tensor.shape)}"
                )
            shape = tensor.shape or shape
        columns = [np.broadcast_to(tensor, shape).flat for tensor in inputs]
        rows = zip(*columns, strict=True) if columns else [()]
        return string_tensor(shape, map(joining(glue), in_time(rows, parts_work)))

    return join


STRING_LENGTH = register_op(
    "StringLength",
    inputs=["input: string"],
    outputs=["output: int32"],
    attrs=["unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"],
    shape_fn=unchanged_shape,
    doc="The length of each string, in bytes or characters.",
)

_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


@register_kernel(STRING_LENGTH, factory=True)
def string_length(*, unit: str) -> Callable[[Any], Any]:
    length = len if unit == "BYTE" else _count_characters

    def lengths(tensor: Any) -> Any:
        texts = in_time(tensor.flat, string_work)
        found = np.fromiter(map(length, texts), np.int32, tensor.size)
        return found.reshape(tensor.shape)

    return lengths


def _count_characters(text: bytes) -> int:
    """The bytes that begin a character; the text need not be valid."""
    return len(text.translate(None, _CONTINUATION_BYTES))


def _declare_case_op(
    name: str, doc: str, of_bytes: Callable[[bytes], bytes], of_text: Callable[[str], str]
) -> OpHandle:
    op = register_op(
        name,
        inputs=["input: string"],
        outputs=["output: string"],
        attrs=["encoding: string = ''"],
        shape_fn=unchanged_shape,
        doc=f"{doc}: those of ASCII, or all where `encoding` is utf-8.",
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

    return op


STRING_LOWER = _declare_case_op(
    "StringLower", "Each string with its letters in lower case", bytes.lower, str.lower
)
STRING_UPPER = _declare_case_op(
    "StringUpper", "Each string with its letters in upper case", bytes.upper, str.upper
)


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


@register_kernel(ENCODE_BASE64, factory=True)
def encode_base64(*, pad: bool) -> Callable[[Any], Any]:
    function = _encoded if pad else lambda text: _encoded(text).rstrip(b"=")
    return lambda tensor: map_strings(function, tensor)


@register_kernel(DECODE_BASE64)
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


UNICODE_SCRIPT = register_op(
    "UnicodeScript",
    inputs=["input: int32"],
    outputs=["output: int32"],
    shape_fn=unchanged_shape,
    doc="ICU's number of the script of each code point; -1 for what is none.",
)


@functools.cache
def _runs() -> tuple[Any, Any]:
    """Where the runs begin, and the script of each, with what is no code point around."""
    lines = Path(__file__).with_name("scripts.txt").read_text("ascii").splitlines()
    runs = [line.split() for line in lines]
    starts = [int(start, 16) for start, _ in runs]
    scripts = [int(script) for _, script in runs]
    return np.array([*starts, 0x110000], np.int32), np.array([-1, *scripts, -1], np.int32)


@register_kernel(UNICODE_SCRIPT)
def unicode_script(input: Any) -> Any:
    starts, scripts = _runs()
    return np.asarray(scripts[np.searchsorted(starts, input, side="right")])
