"""Strings joined: StringJoin, ReduceJoin, UnsortedSegmentJoin, StringNGrams.

Source: TensorFlow core/ops/string_ops.cc, string_join_op.cc, reduce_join_op.cc,
unsorted_segment_join_op.cc, string_ngrams_op.cc.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, dropwhile
from operator import not_
from typing import Any

import numpy as np

from opkernel.device.string_tensors import joining, string_tensor
from opkernel.device.work_clock import in_time, parts_work
from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.kernel import check_allocation
from opkernel.opdef import (
    InferenceContext,
    reduction_shape,
    register_op,
    segment_reduction_with_num_segments_shape,
)
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import (
    int32_attr,
    require,
    require_equal,
    require_scalar,
)
from opkernel.ops.ragged.gather_range import lengths_to_splits
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType, TensorShape


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
    "StringJoin(inputs: N * string) -> output: string",
    attrs=["N: int >= 0", "separator: string = ''"],
    shape_fn=string_join_shape,
    doc="The strings of all inputs at each place, one after the other, `separator` between them.",
)


@register_kernel(STRING_JOIN)
def string_join(inputs: list[Any], *, separator: str) -> Any:
    shape: tuple[int, ...] = ()
    for tensor in inputs:
        if tensor.ndim and shape not in ((), tensor.shape):
            raise InvalidArgumentError(
                f"Input shapes do not match: {TensorShape(shape)} vs. {TensorShape(tensor.shape)}"
            )
        shape = tensor.shape or shape
    columns = [np.broadcast_to(tensor, shape).flat for tensor in inputs]
    rows = zip(*columns, strict=True) if columns else [()]
    return string_tensor(shape, map(_joining(separator), in_time(rows, parts_work)))


def _joining(separator: str) -> Callable[[Sequence[bytes]], bytes]:
    return joining(separator.encode("utf-8", "surrogateescape"))


REDUCE_JOIN = register_op(
    "ReduceJoin(inputs: string, reduction_indices: int32) -> output: string",
    attrs=["keep_dims: bool = false", "separator: string = ''"],
    shape_fn=reduction_shape,
    doc="The strings along dimensions joined, those of the first of `reduction_indices` next to one another.",
)


@register_kernel(REDUCE_JOIN)
def reduce_join(inputs: Any, reduction_indices: Any, *, keep_dims: bool, separator: str) -> Any:
    reduced = _reduced_dims(reduction_indices.reshape(-1).tolist(), inputs.ndim)
    kept = [i for i in range(inputs.ndim) if i not in reduced]
    shape = tuple(inputs.shape[i] for i in kept)
    with_ones = tuple(1 if i in reduced else n for i, n in enumerate(inputs.shape))
    output = with_ones if keep_dims else shape
    if not reduced:
        return inputs.copy()
    count = int(np.prod(shape))
    rows = inputs.transpose([*kept, *reduced[::-1]]).reshape(count, inputs.size // max(count, 1))
    return string_tensor(output, map(_joining(separator), in_time(rows.tolist(), parts_work)))


def _reduced_dims(indices: list[int], rank: int) -> list[int]:
    dims: list[int] = []
    for index in indices:
        if not -rank <= index < rank:
            raise OutOfRangeError(
                f"Invalid reduction dimension {index} for input with {rank} dimension(s)"
            )
        dim = index % rank
        require(dim not in dims, f"Duplicate reduction dimension {dim}")
        dims.append(dim)
    return dims


UNSORTED_SEGMENT_JOIN = register_op(
    "UnsortedSegmentJoin(inputs: string, segment_ids: Tindices, num_segments: Tnumsegments) "
    "-> output: string",
    attrs=[
        "separator: string = ''",
        "Tindices: {int32, int64}",
        "Tnumsegments: {int32, int64} = DT_INT32",
    ],
    shape_fn=segment_reduction_with_num_segments_shape,
    doc="The strings of each segment joined, in their order.",
)


@register_kernel(UNSORTED_SEGMENT_JOIN, types={"Tindices": INDEX, "Tnumsegments": INDEX})
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, *, separator: str
) -> Any:
    count = _check_segments(inputs, segment_ids, num_segments)
    inner = inputs.shape[segment_ids.ndim :]
    shape = check_allocation((count, *inner), DataType.DT_STRING)
    if 0 in inner:
        return string_tensor(shape, ())
    columns = inputs.reshape(segment_ids.size, int(np.prod(inner))).T
    ids = segment_ids.reshape(-1)
    order = stable_order(ids)
    ends = np.cumsum(np.bincount(ids, minlength=count)).tolist()

    def segments() -> Iterator[list[bytes]]:
        for column in columns:
            strings = column[order].tolist()
            for begin, end in zip([0, *ends], ends, strict=False):
                # before the first that is not empty stands no separator
                yield list(dropwhile(not_, strings[begin:end]))

    joined = map(_joining(separator), in_time(segments(), parts_work))
    return string_tensor((len(columns), count), joined).T.reshape(shape)


def _check_segments(inputs: Any, segment_ids: Any, num_segments: Any) -> int:
    """The number of segments, if the inputs fit together."""
    require_scalar(num_segments, "Number of segments must be a scalar")
    count = int(num_segments)
    require(count >= 0, f"Number of segments must be non-negative but got {count}")
    rank = segment_ids.ndim
    require(rank != 0, "Segment_id cannot have rank 0")
    if rank > inputs.ndim:
        raise OutOfRangeError(
            f"Invalid segment_id rank {rank} for input with {inputs.ndim} dimension(s)"
        )
    for i, (ids, values) in enumerate(zip(segment_ids.shape, inputs.shape, strict=False)):
        if ids != values:
            raise InvalidArgumentError(
                f"Segment dimension is {ids} while input dimension is {values} in rank {i}"
            )
    if segment_ids.size and not 0 <= segment_ids.min() <= segment_ids.max() < count:
        raise InvalidArgumentError(
            "segment_ids are not allowed to exceed num_segments or to have negative values."
        )
    return count


STRING_NGRAMS = register_op(
    "StringNGrams(data: string, data_splits: Tsplits) -> ngrams: string, ngrams_splits: Tsplits",
    attrs=[
        "separator: string",
        "ngram_widths: list(int) >= 0",
        "left_pad: string",
        "right_pad: string",
        "pad_width: int",
        "preserve_short_sequences: bool",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    shape_fn=shape_rule("[?], [?] -> [?], in1"),
    doc="The n-grams of each row, of each width, with `pad_width` pads at its ends (-1: as many as fit).",
)


_NARROW = 8
"""Up to this width, n-grams are made from as many copies of a row."""


@dataclass(frozen=True, slots=True)
class _NGrams:
    """How a row becomes n-grams."""

    widths: list[int]
    left_pad: bytes
    right_pad: bytes
    pad_width: int
    preserve_short: bool

    def pads(self, width: int) -> int:
        """The pads at each end for n-grams of this width."""
        return width - 1 if self.pad_width < 0 else min(self.pad_width, width - 1)

    def counts(self, lengths: Any) -> Any:
        """How many n-grams rows of these lengths have."""
        total = np.zeros_like(lengths)
        for width in self.widths:
            total += np.maximum(lengths + 2 * self.pads(width) - width + 1, 0)
        if self.preserve_short:
            total += (total == 0) & (lengths > 0)
        return total

    def of(self, row: list[bytes]) -> Iterator[Iterable[Sequence[bytes]]]:
        """The n-grams of a row for each width, each as its parts."""
        is_short = self.preserve_short and len(row) > 0
        for width in self.widths:
            pads = self.pads(width)
            padded = [self.left_pad] * pads + row + [self.right_pad] * pads
            if len(padded) >= width:
                is_short = False
                yield _windows(padded, width)
        if is_short:
            pads = max(self.pad_width, 0)
            yield [[self.left_pad] * pads + row + [self.right_pad] * pads]


def _windows(parts: list[bytes], width: int) -> Iterable[Sequence[bytes]]:
    """All runs of so many parts."""
    if width <= _NARROW:
        return zip(*[parts[i:] for i in range(width)], strict=False)
    return (parts[i : i + width] for i in range(len(parts) - width + 1))


@register_kernel(STRING_NGRAMS, types={"Tsplits": INDEX}, factory=True)
def string_n_grams(
    *,
    separator: str,
    ngram_widths: list[int],
    left_pad: str,
    right_pad: str,
    pad_width: int,
    preserve_short_sequences: bool,
    Tsplits: DataType,
) -> Callable[[Any, Any], tuple[Any, Any]]:
    int32_attr("pad_width", pad_width)
    for width in ngram_widths:
        int32_attr("ngram_widths", width)
    glue, left, right = (
        text.encode("utf-8", "surrogateescape") for text in (separator, left_pad, right_pad)
    )
    grams = _NGrams(ngram_widths, left, right, pad_width, preserve_short_sequences)

    def compute(data: Any, data_splits: Any) -> tuple[Any, Any]:
        if any(width <= 0 for width in ngram_widths):
            raise InvalidArgumentError("ngram_widths must contain positive values")
        splits = data_splits.reshape(-1)
        if splits.size:
            _check_splits(splits, data.size)
        if not (splits.size and data.size):
            return string_tensor(data.shape, [b""] * data.size), data_splits.copy()
        counts = grams.counts(np.diff(splits.astype(np.int64)))
        _check_size(grams, int(counts.sum()))
        output_splits = lengths_to_splits(counts, Tsplits)
        rows = zip(splits.tolist(), splits.tolist()[1:], strict=False)
        flat = data.reshape(-1).tolist()
        of_widths = chain.from_iterable(grams.of(flat[a:b]) for a, b in in_time(rows))
        found = chain.from_iterable(of_widths)
        ngrams = string_tensor((int(counts.sum()),), map(joining(glue), in_time(found, parts_work)))
        return ngrams, output_splits.reshape(data_splits.shape)

    return compute


def _check_size(grams: _NGrams, count: int) -> None:
    """Refuse rows with pads, and so many n-grams, as do not fit."""
    pads = [2 * grams.pads(width) for width in grams.widths]
    check_allocation((max([1, *pads]),), DataType.DT_STRING)
    check_allocation((count,), DataType.DT_STRING)


def _check_splits(splits: Any, size: int) -> None:
    """Raise InvalidArgumentError unless the splits go up from 0 to the size."""
    require_equal(splits[0], 0, "First split value must be 0, got {}")
    before, after = splits[:-1], splits[1:]
    wrong = np.flatnonzero((after < before) | (after > size))
    if wrong.size:
        at = wrong[0]
        raise InvalidArgumentError(
            f"Invalid split value {after[at]}, must be in [{before[at]}, {size}]"
        )
    require_equal(size, splits[-1], "Last split value must be data size. Expected {}, got {}")
