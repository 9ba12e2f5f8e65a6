"""Strings in parts: StringSplit, StringSplitV2, StringStrip.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/string_split_op.cc, string_strip_op.cc.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.declared.rules import fixed_shapes
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.elements import in_time, map_strings, strings_like
from opkernel.types import DataType, TensorShape

Split = Callable[[bytes], list[bytes]]

_SPLIT_SHAPE = fixed_shapes((None, 2), (None,), (2,), input_ranks=(1, 0))
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


@register_kernel(STRING_SPLIT, device="CPU")
def string_split(tensor: Any, delimiter: Any, *, skip_empty: bool) -> tuple[Any, Any, Any]:
    _check_ranks(tensor, delimiter, "delimiter")
    return _sparse_parts(tensor, _at_any_byte(delimiter.item(), skip_empty))


@register_kernel(STRING_SPLIT_V2, device="CPU")
def string_split_v2(tensor: Any, sep: Any, *, maxsplit: int) -> tuple[Any, Any, Any]:
    _check_ranks(tensor, sep, "sep")
    return _sparse_parts(tensor, _at_separator(sep.item(), max(maxsplit, -1)))


def _check_ranks(tensor: Any, separator: Any, name: str) -> None:
    if tensor.ndim != 1:
        raise InvalidArgumentError(
            f"input must be a vector, got shape: {TensorShape(tensor.shape)}"
        )
    if separator.ndim:
        raise InvalidArgumentError(
            f"{name} must be a scalar, got shape: {TensorShape(separator.shape)}"
        )


def _at_any_byte(delimiters: bytes, skip_empty: bool) -> Split:
    if not delimiters:
        return lambda text: [text[i : i + 1] for i in range(len(text))]
    first = delimiters[:1]
    as_first = bytes.maketrans(delimiters, first * len(delimiters))

    def split(text: bytes) -> list[bytes]:
        if not text:
            return []
        # The parts hold no delimiter, so that all may become the first.
        parts = (text.translate(as_first) if len(delimiters) > 1 else text).split(first)
        return [part for part in parts if part] if skip_empty else parts

    return split


def _at_separator(separator: bytes, limit: int) -> Split:
    if limit == 0:
        return lambda text: [text]
    if separator:
        return lambda text: text.split(separator, limit)
    if limit < 0:
        return bytes.split

    def split(text: bytes) -> list[bytes]:
        parts = text.split(None, limit)
        if len(parts) == limit:  # what is left after the last of these parts is nothing
            parts.append(b"")
        return parts

    return split


def _sparse_parts(texts: Iterable[bytes], split: Split) -> tuple[Any, Any, Any]:
    """Indices, values and shape of the matrix whose rows are the parts of the strings."""
    values: list[bytes] = []
    counts = []
    for text in in_time(texts):
        parts = split(text)
        counts.append(len(parts))
        values += parts
    check_allocation((len(values), 2), DataType.DT_INT64)
    lengths = np.array(counts, np.int64)
    starts = np.cumsum(lengths) - lengths
    indices = np.empty((len(values), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(lengths.size), lengths)
    indices[:, 1] = np.arange(len(values)) - np.repeat(starts, lengths)
    shape = np.array([lengths.size, lengths.max(initial=0)], np.int64)
    return indices, strings_like((len(values),), values), shape


STRING_STRIP = register_op(
    "StringStrip",
    inputs=["input: string"],
    outputs=["output: string"],
    shape_fn=unchanged_shape,
    doc="Each string without the blanks at its ends.",
)


@register_kernel(STRING_STRIP, device="CPU")
def string_strip(tensor: Any) -> Any:
    return map_strings(bytes.strip, tensor)
