"""Text joined, cut and read as characters.

Source: TensorFlow python/ops/string_ops.py, python/ops/ragged/ragged_string_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.ragged._rows import (
    as_ragged,
    even_rows,
    from_tensor,
    is_ragged,
    splits_of_rows,
)
from opkernel.endpoints.ragged.tensor import RaggedTensor
from opkernel.endpoints.tensors import (
    TensorLike,
    all_axes,
    composed,
    convert,
    known_rank,
)
from opkernel.types import DataType


def _by_text(input: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function of a vector, which gives a row for each text, to texts of any rank.

    A row of one text is a tensor; those of a matrix are rows of rows. The function may give a tuple.
    """
    texts = as_ragged(input)
    if is_ragged(texts):
        return _each(
            lambda found: texts.with_flat_values(found), _by_text(texts.flat_values, function)
        )
    rank = known_rank(texts, "Text")
    if rank == 0:
        row = np.array([1], np.int32)
        found = function(raw_ops.Reshape(tensor=texts, shape=row))
        return _each(lambda rows: rows.values, found)
    if rank == 1:
        return function(texts)
    shape = raw_ops.Shape(input=texts)
    joined = raw_ops.ConcatV2(values=[np.array([-1], np.int32), shape[2:]], axis=0)
    inner = _by_text(raw_ops.Reshape(tensor=texts, shape=joined), function)
    return _each(lambda rows: even_rows(rows, shape[0], shape[1]), inner)


def _each(function: Callable[[Any], Any], found: Any) -> Any:
    """Apply a function to a ragged tensor, or to each of several."""
    if isinstance(found, list):
        return [function(part) for part in found]
    return function(found)


def _rows(found: Any) -> RaggedTensor:
    """The sparse result of a split as rows."""
    rows = raw_ops.Cast(x=found[0][:, 0], DstT=DataType.DT_INT32)
    count = raw_ops.Cast(x=found[2][0], DstT=DataType.DT_INT32)
    return RaggedTensor(found[1], splits_of_rows(rows, count))


@composed
def split(
    input: TensorLike, sep: TensorLike | None = None, maxsplit: int = -1, name: str | None = None
) -> Any:
    """The parts of each text between separators.

    Args:
        input: texts; a RaggedTensor too.
        sep: the separator; any whitespace if None or empty.
        maxsplit: the most separators that are looked at; -1 for all.
        name: a name for the scope of nodes in a graph.

    Returns:
        A RaggedTensor with one axis more; the parts of a scalar as a tensor.
    """
    separator = "" if sep is None else sep
    return _by_text(
        input,
        lambda x: _rows(raw_ops.StringSplitV2(input=x, sep=separator, maxsplit=maxsplit)),
    )


@composed
def bytes_split(input: TensorLike, name: str | None = None) -> Any:
    """The bytes of each text: a RaggedTensor with one axis more; those of a scalar as a tensor."""

    def pieces(x: Any) -> RaggedTensor:
        return _rows(raw_ops.StringSplit(input=x, delimiter="", skip_empty=False))

    return _by_text(input, pieces)


@composed
def ngrams(
    data: Any,
    ngram_width: int | Sequence[int],
    separator: str = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Neighbours of each row joined, `ngram_width` at a time.

    Args:
        data: texts: a vector, a matrix or a RaggedTensor with one ragged level.
        ngram_width: how many to join, or several such numbers.
        separator: what to put between them.
        pad_values: a text, or two, that stand before and after each row; none if None.
        padding_width: how many of them; one less than the width if None.
        preserve_short_sequences: join all of a row that is shorter than the width.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: a width is not positive.
        TypeError: `pad_values` is neither a text nor two.
    """
    left, right, width = _pads(pad_values, padding_width)
    widths = [ngram_width] if isinstance(ngram_width, int) else [*ngram_width]
    if min(widths) < 1 or (padding_width is not None and padding_width < 1):
        raise ValueError(f"Widths are 1 or more, and not {ngram_width} and {padding_width}")
    texts = as_ragged(data)
    is_dense = not is_ragged(texts)
    is_vector = is_dense and known_rank(texts, "ngrams") == 1
    if is_vector:
        texts = even_rows(texts, 1, raw_ops.Size(input=texts))
    elif not is_ragged(texts):
        texts = from_tensor(texts)
    found, splits = raw_ops.StringNGrams(
        data=texts.flat_values,
        data_splits=texts.nested_row_splits[-1],
        separator=separator,
        ngram_widths=widths,
        left_pad=left,
        right_pad=right,
        pad_width=width,
        preserve_short_sequences=preserve_short_sequences,
    )
    if is_vector:
        return found
    if is_dense:
        wide = raw_ops.Cast(x=splits, DstT=DataType.DT_INT64)
        columns = raw_ops.Max(input=wide[1:] - wide[:-1], axis=np.array([0], np.int32))
        return raw_ops.Reshape(tensor=found, shape=raw_ops.Pack(values=[np.int64(-1), columns]))
    return RaggedTensor(found, splits)


def _pads(pad_values: Any, padding_width: int | None) -> tuple[Any, Any, int]:
    """What stands before and after each row, and how often; -1 for one less than the width."""
    if pad_values is None:
        return "", "", 0
    pads = (pad_values, pad_values) if isinstance(pad_values, str | bytes) else pad_values
    if not isinstance(pads, list | tuple) or len(pads) != 2:
        raise TypeError(f"pad_values is a text or two, and not {pad_values!r}")
    return pads[0], pads[1], -1 if padding_width is None else padding_width


@composed
def reduce_join(
    inputs: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    separator: str = "",
    name: str | None = None,
) -> Any:
    """Texts joined over axes: all if `axis` is None."""
    x = convert(inputs)
    axes = all_axes(x)[::-1] if axis is None else axis
    return raw_ops.ReduceJoin(
        inputs=x, reduction_indices=axes, keep_dims=keepdims, separator=separator
    )


@composed
def format(
    template: str,
    inputs: Any,
    placeholder: str = "{}",
    summarize: int = 3,
    name: str | None = None,
) -> Any:
    """A text in which tensors stand for placeholders.

    Args:
        template: the text.
        inputs: a tensor, or a list with one for each placeholder.
        placeholder: what stands for a tensor.
        summarize: how many entries at either end of an axis are shown; -1 for all.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: there are more or fewer placeholders than tensors.
    """
    values = [*inputs] if isinstance(inputs, list | tuple) else [inputs]
    if template.count(placeholder) != len(values):
        raise ValueError(
            f"The template has {template.count(placeholder)} placeholders, and {len(values)} tensors "
            "are given"
        )
    return raw_ops.StringFormat(
        inputs=[convert(value) for value in values],
        template=template,
        placeholder=placeholder,
        summarize=summarize,
    )


def _decoded(
    input: Any, encoding: str, attrs: dict[str, Any], function: Callable[[Any, Any], Any]
) -> Any:
    """What a function makes of the code points and byte offsets of texts."""

    def decode(x: Any) -> Any:
        splits, points, starts = raw_ops.UnicodeDecodeWithOffsets(
            input=x, input_encoding=encoding, **attrs
        )
        return function(RaggedTensor(points, splits), RaggedTensor(starts, splits))

    return _by_text(input, decode)


@composed
def unicode_decode(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of each text.

    Args:
        input: texts.
        input_encoding: "UTF-8", "UTF-16-BE" and others.
        errors: what to do with invalid bytes: "strict" (an error), "replace" or "ignore".
        replacement_char: the code point for "replace".
        replace_control_characters: replace those below 32 too.
        name: a name for the scope of nodes in a graph.

    Returns:
        An int32 RaggedTensor with one axis more; the code points of a scalar as a tensor.
    """
    attrs = _attrs(errors, replacement_char, replace_control_characters)
    return _decoded(input, input_encoding, attrs, lambda points, starts: points)


def _attrs(errors: str, replacement: int, is_control: bool = False) -> dict[str, Any]:
    return {
        "errors": errors,
        "replacement_char": replacement,
        "replace_control_characters": is_control,
    }


@composed
def unicode_decode_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of each text, and the byte at which each begins; see unicode_decode."""
    attrs = _attrs(errors, replacement_char, replace_control_characters)
    found = _decoded(input, input_encoding, attrs, lambda points, starts: [points, starts])
    return tuple(found)


def _characters(points: RaggedTensor) -> RaggedTensor:
    """Each code point as a text of its own."""
    count = raw_ops.Size(input=points.values, out_type=DataType.DT_INT64)
    splits = raw_ops.Range(start=np.int64(0), limit=count + np.int64(1), delta=np.int64(1))
    found = raw_ops.UnicodeEncode(
        input_values=points.values, input_splits=splits, output_encoding="UTF-8"
    )
    return RaggedTensor(found, points.row_splits)


@composed
def unicode_split(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The characters of each text, as UTF-8; see unicode_decode."""
    attrs = _attrs(errors, replacement_char)
    return _decoded(input, input_encoding, attrs, lambda points, starts: _characters(points))


@composed
def unicode_split_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The characters of each text, as UTF-8, and the byte at which each begins; see unicode_decode."""
    attrs = _attrs(errors, replacement_char)

    def characters(points: Any, starts: Any) -> Any:
        return [_characters(points), starts]

    return tuple(_decoded(input, input_encoding, attrs, characters))


@composed
def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The texts with these code points: the last axis, which may be ragged.

    Args:
        input: int32 code points: a vector, a matrix or a RaggedTensor with one ragged level.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: what to do with numbers that are no code points: "strict", "replace" or "ignore".
        replacement_char: the code point for "replace".
        name: a name for the scope of nodes in a graph.
    """
    points = as_ragged(input)
    is_vector = not is_ragged(points) and known_rank(points, "unicode_encode") == 1
    if is_vector:
        points = even_rows(points, 1, raw_ops.Size(input=points))
    elif not is_ragged(points):
        points = from_tensor(points)
    encoding: Any = output_encoding
    mode: Any = errors
    found = raw_ops.UnicodeEncode(
        input_values=points.flat_values,
        input_splits=points.nested_row_splits[-1],
        output_encoding=encoding,
        errors=mode,
        replacement_char=replacement_char,
    )
    if is_vector:
        return raw_ops.Reshape(tensor=found, shape=np.zeros(0, np.int32))
    outer = points
    if outer.ragged_rank > 1:
        return _outer(outer, found)
    return found


def _outer(points: RaggedTensor, texts: Any) -> RaggedTensor:
    """Texts in the rows of all levels of code points but the innermost."""
    inner = points.values
    is_last = inner.ragged_rank == 1
    return RaggedTensor(texts if is_last else _outer(inner, texts), points.row_splits)
