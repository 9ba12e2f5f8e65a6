"""Substr: a part of each string, by its position and length.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/substr_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import InferenceContext, broadcast_binary_op_shape, register_op
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.elements import in_time, strings_like
from opkernel.types import TensorShape

_MAX_BROADCAST_RANK = 2


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


@register_kernel(SUBSTR, device="CPU", types={"T": INDEX})
def substr(tensor: Any, pos: Any, len: Any, *, unit: str) -> Any:
    if pos.shape != len.shape:
        raise InvalidArgumentError(
            "pos and len should have the same shape, got: "
            f"{TensorShape(pos.shape)} vs. {TensorShape(len.shape)}"
        )
    shape = _common_shape(tensor.shape, pos.shape)
    texts, starts, lengths = (np.broadcast_to(one, shape) for one in (tensor, pos, len))
    part: Callable[[bytes, int, int], bytes] = _bytes if unit == "BYTE" else _characters
    rows = zip(texts.flat, starts.ravel().tolist(), lengths.ravel().tolist(), strict=True)
    return strings_like(shape, [part(*row) for row in in_time(rows)])


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


def _characters(text: bytes, start: int, length: int) -> bytes:
    """Characters begin at the first byte and at each that does not continue one."""
    begins = [i for i, byte in enumerate(text) if not i or byte & 0xC0 != 0x80]
    size = len(begins)
    if not -size <= start <= size:
        raise InvalidArgumentError(f"pos {start} out of range for string")
    begins.append(len(text))
    begin = start if start >= 0 else size + start
    return text[begins[begin] : begins[min(begin + max(length, 0), size)]]
