"""Strings in parts: StringSplit, StringSplitV2, StringStrip.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/string_split_op.cc, string_strip_op.cc.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import map_strings, string_tensor
from opkernel.device.work_clock import in_time, string_work
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_scalar, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


class Split(NamedTuple):
    """A way to split strings.

    Attributes:
        parts: The parts of a string.
        most_bytes: How many bytes these take at most, found in about a fifth of the time.
    """

    parts: Callable[[bytes], list[bytes]]
    most_bytes: Callable[[bytes], int]


_LONG, _OF_PART = 1 << 12, 41
"""Strings so long are charged before they are split: the bytes of a part beside its content."""

_SPLIT_SHAPE = shape_rule("[?], [] -> [?, 2], [?], [2]")
_OUTPUTS = ["indices: int64", "values: string", "shape: int64"]

STRING_SPLIT = register_op(
    "StringSplit",
    inputs=["input: string", "delimiter: string"],
    outputs=_OUTPUTS,
    attrs=["skip_empty: bool = true"],
    shape_fn=_SPLIT_SHAPE,
    doc="The parts of each string between any bytes of `delimiter`, as a sparse matrix; all bytes if it is empty.",
)

STRING_SPLIT_V2 = register_op(
    "StringSplitV2",
    inputs=["input: string", "sep: string"],
    outputs=_OUTPUTS,
    attrs=["maxsplit: int = -1"],
    shape_fn=_SPLIT_SHAPE,
    doc="The parts of each string between `sep`, or between blanks if it is empty, as a sparse matrix.",
)


@register_kernel(STRING_SPLIT)
def string_split(tensor: Any, delimiter: Any, *, skip_empty: bool) -> tuple[Any, Any, Any]:
    _check_ranks(tensor, delimiter, "delimiter")
    return _sparse_parts(tensor, _at_any_byte(delimiter.item(), skip_empty))


@register_kernel(STRING_SPLIT_V2)
def string_split_v2(tensor: Any, sep: Any, *, maxsplit: int) -> tuple[Any, Any, Any]:
    _check_ranks(tensor, sep, "sep")
    return _sparse_parts(tensor, _at_separator(sep.item(), max(maxsplit, -1)))


def _check_ranks(tensor: Any, separator: Any, name: str) -> None:
    require_vector(tensor, "input must be a vector, got shape: {}")
    require_scalar(separator, f"{name} must be a scalar, got shape: {{}}")


def _at_any_byte(delimiters: bytes, skip_empty: bool) -> Split:
    if not delimiters:
        return Split(
            lambda text: [text[i : i + 1] for i in range(len(text))], lambda text: 8 * len(text)
        )
    first = delimiters[:1]
    as_first = bytes.maketrans(delimiters, first * len(delimiters))

    def plain(text: bytes) -> bytes:
        """With one delimiter in the place of all: the parts hold none."""
        return text.translate(as_first) if len(delimiters) > 1 else text

    def split(text: bytes) -> list[bytes]:
        parts = plain(text).split(first) if text else []
        return [part for part in parts if part] if skip_empty else parts

    return Split(split, lambda text: _size(text, plain(text).count(first)))


def _at_separator(separator: bytes, limit: int) -> Split:
    if limit == 0:
        return Split(lambda text: [text], lambda text: 8)
    if separator:
        return Split(
            lambda text: text.split(separator, limit),
            lambda text: _size(text, text.count(separator)),
        )
    if limit < 0:
        return Split(bytes.split, _size_of_words)

    def split(text: bytes) -> list[bytes]:
        parts = text.split(None, limit)
        if len(parts) == limit:  # what is left after the last of these parts is nothing
            parts.append(b"")
        return parts

    return Split(split, _size_of_words)


_AS_BLANKS = bytes(b" "[0] if byte in b" \t\n\r\x0b\x0c" else b"x"[0] for byte in range(256))


def _size_of_words(text: bytes) -> int:
    return _size(text, text.translate(_AS_BLANKS).count(b" x"))


def _size(text: bytes, cuts: int) -> int:
    """The bytes that the parts of a string take that is cut so often."""
    return len(text) + _OF_PART * (cuts + 1)


def _sparse_parts(texts: Iterable[bytes], split: Split) -> tuple[Any, Any, Any]:
    """Indices, values and shape of the matrix whose rows are the parts of the strings."""
    values: list[bytes] = []
    counts = []
    with making_bytes("parts of strings") as made:
        for text in in_time(texts, string_work):
            if len(text) > _LONG:
                made.add(split.most_bytes(text))
            parts = split.parts(text)
            if len(text) <= _LONG:
                made.add(_size(text, len(parts)))
            counts.append(len(parts))
            values += parts
    check_allocation((len(values), 2), DataType.DT_INT64)
    lengths = np.array(counts, np.int64)
    starts = np.cumsum(lengths) - lengths
    indices = np.empty((len(values), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(lengths.size), lengths)
    indices[:, 1] = np.arange(len(values)) - np.repeat(starts, lengths)
    shape = np.array([lengths.size, lengths.max(initial=0)], np.int64)
    return indices, string_tensor((len(values),), values), shape


STRING_STRIP = register_op(
    "StringStrip",
    inputs=["input: string"],
    outputs=["output: string"],
    shape_fn=unchanged_shape,
    doc="Each string without the blanks at its ends.",
)


@register_kernel(STRING_STRIP)
def string_strip(tensor: Any) -> Any:
    return map_strings(bytes.strip, tensor)
