"""Strings in parts: StringSplit, StringSplitV2.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/string_split_op.cc.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.made_bytes import MadeBytes, making_bytes
from opkernel.device.string_buffer import StringBatch, counts_in_strings, string_batches
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import in_time, string_work
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import int32_attr, require_scalar, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


class Split(NamedTuple):
    """A way to split strings.

    Attributes:
        parts: The parts of a string.
        most_bytes: How many bytes these take at most, found in about a fifth of the time.
        many: Splits many strings at once; None if these must be split one by one.
    """

    parts: Callable[[bytes], list[bytes]]
    most_bytes: Callable[[bytes], int]
    many: "_SplitMany | None" = None


class _SplitMany(NamedTuple):
    """A way to split many strings that stand in one, a byte between them at which all are split.

    Attributes:
        between: The byte.
        plain: Gives the text with this byte in the place of all bytes at which strings are split.
        skips_empty: Whether parts without bytes are left out.
    """

    between: bytes
    plain: Callable[[bytes], bytes]
    skips_empty: bool

    def parts(self, batch: StringBatch, made: MadeBytes) -> tuple[list[bytes], Any]:
        """All parts, and how many each string has."""
        text = self.plain(self.between.join(batch.texts))
        is_part = np.frombuffer(text + self.between, np.uint8) != self.between[0]
        splits = np.zeros(len(batch.texts) + 1, np.int64)
        np.cumsum(batch.lengths + 1, out=splits[1:])
        if self.skips_empty:
            is_part[1:] &= ~is_part[:-1].copy()  # the bytes that begin a part
            counts = counts_in_strings(is_part, splits)
        else:
            counts = counts_in_strings(~is_part, splits)
        made.add(len(text) + _OF_PART * int(counts.sum()))
        parts = text.split(self.between)
        return ([*filter(None, parts)] if self.skips_empty else parts), counts


_LONG, _OF_PART = 1 << 12, 41
"""Strings so long are charged before they are split: the bytes of a part beside its content."""

_SPLIT_SHAPE = shape_rule("[?], [] -> [?, 2], [?], [2]")
_PARTS = "indices: int64, values: string, shape: int64"

STRING_SPLIT = register_op(
    f"StringSplit(input: string, delimiter: string) -> {_PARTS}",
    attrs=["skip_empty: bool = true"],
    shape_fn=_SPLIT_SHAPE,
    doc="The parts of each string between any bytes of `delimiter`, as a sparse matrix; all bytes if it is empty.",
)

STRING_SPLIT_V2 = register_op(
    f"StringSplitV2(input: string, sep: string) -> {_PARTS}",
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
    int32_attr("maxsplit", maxsplit)
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

    def size(text: bytes) -> int:
        return _size(text, plain(text).count(first))

    return Split(split, size, _SplitMany(first, plain, True) if skip_empty else None)


def _at_separator(separator: bytes, limit: int) -> Split:
    if limit == 0:
        return Split(lambda text: [text], lambda text: 8)
    if separator:
        return Split(
            lambda text: text.split(separator, limit),
            lambda text: _size(text, text.count(separator)),
            _SplitMany(separator, bytes, False) if limit < 0 and len(separator) == 1 else None,
        )
    if limit < 0:
        return Split(bytes.split, _size_of_words, _SplitMany(b" ", _with_blanks, True))

    def split(text: bytes) -> list[bytes]:
        parts = text.split(None, limit)
        if len(parts) == limit:  # what is left after the last of these parts is nothing
            parts.append(b"")
        return parts

    return Split(split, _size_of_words)


_AS_BLANKS = bytes(b" "[0] if byte in b" \t\n\r\x0b\x0c" else b"x"[0] for byte in range(256))


_BLANKS = bytes.maketrans(b"\t\n\r\x0b\x0c", b" " * 5)


def _with_blanks(text: bytes) -> bytes:
    return text.translate(_BLANKS)


def _size_of_words(text: bytes) -> int:
    return _size(text, text.translate(_AS_BLANKS).count(b" x"))


def _size(text: bytes, cuts: int) -> int:
    """The bytes that the parts of a string take that is cut so often."""
    return len(text) + _OF_PART * (cuts + 1)


def _parts(texts: Any, split: Split, made: MadeBytes) -> tuple[list[bytes], Any]:
    """The parts of strings, and how many each has."""
    values: list[bytes] = []
    counts = []
    for text in in_time(texts, string_work):
        if len(text) > _LONG:
            made.add(split.most_bytes(text))
        parts = split.parts(text)
        if len(text) <= _LONG:
            made.add(_size(text, len(parts)))
        counts.append(len(parts))
        values += parts
    return values, counts


def _many_parts(texts: Any, split: Split, made: MadeBytes) -> tuple[list[bytes], Any]:
    """As `_parts`, for some strings at a time."""
    assert split.many is not None
    values: list[bytes] = []
    counts = [np.zeros(0, np.int64)]
    for batch in string_batches(texts):
        parts, of_each = split.many.parts(batch, made)
        values += parts
        counts.append(of_each)
    return values, np.concatenate(counts)


def _sparse_parts(texts: Any, split: Split) -> tuple[Any, Any, Any]:
    """Indices, values and shape of the matrix whose rows are the parts of the strings."""
    with making_bytes("parts of strings") as made:
        values, counts = (_many_parts if split.many else _parts)(texts, split, made)
    check_allocation((len(values), 2), DataType.DT_INT64)
    lengths = np.array(counts, np.int64)
    starts = np.cumsum(lengths) - lengths
    indices = np.empty((len(values), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(lengths.size), lengths)
    indices[:, 1] = np.arange(len(values)) - np.repeat(starts, lengths)
    shape = np.array([lengths.size, lengths.max(initial=0)], np.int64)
    return indices, string_tensor((len(values),), values), shape
