"""Substr: a part of each string, by its position and length.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/substr_op.cc.
"""

from collections.abc import Callable, Iterable
from itertools import starmap
from typing import Any

import numpy as np

from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import in_time, string_work
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import InferenceContext, broadcast_binary_op_shape, register_op
from opkernel.ops.input_checks import require_equal
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape

_MAX_BROADCAST_RANK = 2
_LONG = 256
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
    "Substr",
    inputs=["input: string", "pos: T", "len: T"],
    outputs=["output: string"],
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
    timed: Iterable[tuple[bytes, int, int]] = in_time(rows, _work)
    return string_tensor(shape, starmap(part, timed))


def _common_shape(texts: tuple[int, ...], positions: tuple[int, ...]) -> tuple[int, ...]:
    if positions in ((), texts):
        return texts
    try:
        shape = np.broadcast_shapes(texts, positions)
    except ValueError:
        raise InvalidArgumentError(
            f"Incompatible shapes: {TensorShape(texts)} vs. {TensorShape(positions)}"
        ) from None
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


def _work(row: tuple[bytes, int, int]) -> int:
    return string_work(row[0])


class _Characters:
    """Parts of strings by their characters, which are found once for a string that stands in many rows."""

    def __init__(self) -> None:
        self._text: bytes | None = None
        self._begins: Any = None

    def of(self, text: bytes, start: int, length: int) -> bytes:
        if text is not self._text:
            self._text, self._begins = text, _begins(text)
        size = len(self._begins) - 1
        if not -size <= start <= size:
            raise InvalidArgumentError(f"pos {start} out of range for string")
        begin = start if start >= 0 else size + start
        return text[self._begins[begin] : self._begins[min(begin + max(length, 0), size)]]


def _begins(text: bytes) -> Any:
    """Where characters begin, and the end: the first byte, and each that does not continue a character."""
    if len(text) < _LONG:
        return [*(i for i, byte in enumerate(text) if not i or byte & 0xC0 != 0x80), len(text)]
    is_begin = np.frombuffer(text, np.uint8) & 0xC0 != 0x80
    is_begin[0] = True
    return np.append(np.flatnonzero(is_begin), len(text))
