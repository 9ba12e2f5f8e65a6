"""Connectionist temporal classification: labels of sequences without their times.

Source: TensorFlow python/ops/ctc_ops.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.array.choosing import boolean_mask
from opkernel.endpoints.array.making import sequence_mask
from opkernel.endpoints.math.reductions import reduce_max
from opkernel.endpoints.sparse._parts import sparse_parts
from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    static_shape,
)
from opkernel.types import DataType


def ctc_greedy_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    merge_repeated: bool = True,
    blank_index: int | None = None,
) -> tuple[list[SparseTensor], Any]:
    """The likeliest class at each time, without blanks.

    Args:
        inputs: logits, [time, batch, classes].
        sequence_length: the length of each sequence, int32.
        merge_repeated: merge equal classes that follow one another.
        blank_index: which class is the blank; the last one if None.

    Returns:
        A list of one SparseTensor of classes, [batch, time]; and the negative sum of the logits.
    """
    blank = -1 if blank_index is None else blank_index
    found = raw_ops.CTCGreedyDecoder(
        inputs=inputs,
        sequence_length=sequence_length,
        merge_repeated=merge_repeated,
        blank_index=blank,
    )
    return [SparseTensor(found[0], found[1], found[2])], found[3]


def ctc_beam_search_decoder(
    inputs: TensorLike, sequence_length: TensorLike, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Any]:
    """The likeliest sequences of classes, by a search that keeps `beam_width` of them.

    Args:
        inputs: logits, [time, batch, classes]; the last class is the blank.
        sequence_length: the length of each sequence, int32.
        beam_width: how many sequences are kept at each time.
        top_paths: how many to give.

    Returns:
        A list of SparseTensors of classes, [batch, time]; and the logarithm of each one's probability.
    """
    found = raw_ops.CTCBeamSearchDecoder(
        inputs=inputs,
        sequence_length=sequence_length,
        beam_width=beam_width,
        top_paths=top_paths,
        merge_repeated=False,
    )
    parts = zip(found[0], found[1], found[2], strict=True)
    return [SparseTensor(*part) for part in parts], found[3]


@composed
def ctc_loss(
    labels: Any,
    logits: TensorLike,
    label_length: TensorLike | None,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Any:
    """The negative logarithm of the probability of each sequence of labels.

    Args:
        labels: a SparseTensor, or [batch, length] with `label_length`. int32.
        logits: [time, batch, classes].
        label_length: the length of each sequence of labels; None for sparse labels.
        logit_length: the length of each sequence of logits.
        logits_time_major: whether the first axis of `logits` is time; otherwise the batch is.
        unique: ignored: a hint.
        blank_index: which class is the blank, negative from the end; 0 for dense labels if None.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: sparse labels come without `blank_index`.
    """
    is_sparse = isinstance(labels, tuple) and len(labels) == 3
    if is_sparse and blank_index is None:
        raise ValueError("blank_index has to be given with sparse labels")
    x = convert(logits)
    if not logits_time_major:
        x = raw_ops.Transpose(x=x, perm=np.array([1, 0, 2], np.int32))
    classes = (static_shape(x) or [None])[-1]
    if known_rank(x, "ctc_loss") != 3 or classes is None:
        raise ValueError("ctc_loss takes logits of rank 3 with a known number of classes")
    blank = (0 if blank_index is None else blank_index) % classes
    found = sparse_parts(labels) if is_sparse else _sparse(convert(labels), convert(label_length))
    values = cast_to(found.values, DataType.DT_INT32)
    if blank != classes - 1:
        order = [*range(blank), *range(blank + 1, classes), blank]
        x = raw_ops.GatherV2(params=x, indices=np.array(order, np.int32), axis=2)
        later = raw_ops.Cast(x=raw_ops.Greater(x=values, y=np.int32(blank)), DstT=DataType.DT_INT32)
        values = raw_ops.Sub(x=values, y=later)
    return raw_ops.CTCLoss(
        inputs=x,
        labels_indices=found.indices,
        labels_values=values,
        sequence_length=cast_to(convert(logit_length), DataType.DT_INT32),
        preprocess_collapse_repeated=False,
        ctc_merge_repeated=True,
    )[0]


def _sparse(labels: Any, lengths: Any) -> SparseTensor:
    """The first labels of each row, as a sparse tensor."""
    size = raw_ops.Shape(input=labels)[1]
    numbers = raw_ops.Range(start=np.int32(0), limit=size, delta=np.int32(1))
    ends = raw_ops.ExpandDims(input=cast_to(lengths, DataType.DT_INT32), axis=-1)
    indices = raw_ops.Where(condition=raw_ops.Less(x=numbers, y=ends))
    values = raw_ops.GatherNd(params=labels, indices=indices)
    return SparseTensor(indices, values, raw_ops.Shape(input=labels, out_type=DataType.DT_INT64))


@composed
def collapse_repeated(labels: TensorLike, seq_length: TensorLike, name: str | None = None) -> Any:
    """Sequences of labels without those that equal the one before.

    Args:
        labels: [batch, time].
        seq_length: the length of each sequence, [batch].
        name: a name for the scope of nodes in a graph.

    Returns:
        The labels, [batch, longest], with 0 after the end of a sequence; and the new lengths, of the type of
        `seq_length`.

    Raises:
        ValueError: the labels are no matrix.
    """
    x, lengths = convert(labels), convert(seq_length)
    if known_rank(x, "collapse_repeated") != 2:
        raise ValueError("collapse_repeated takes labels of the shape [batch, time]")
    others = raw_ops.NotEqual(x=x[:, 1:], y=x[:, :-1])
    first = raw_ops.OnesLike(x=raw_ops.Cast(x=x[:, :1], DstT=DataType.DT_BOOL))
    is_kept = raw_ops.ConcatV2(values=[first, others], axis=1)
    is_kept = raw_ops.LogicalAnd(x=is_kept, y=sequence_mask(lengths, raw_ops.Shape(input=x)[1]))
    count = raw_ops.Sum(
        input=raw_ops.Cast(x=is_kept, DstT=DataType.DT_INT32), axis=np.array([1], np.int32)
    )
    longest = reduce_max(count)
    places = raw_ops.Where(condition=sequence_mask(count, longest))
    shape = raw_ops.Pack(values=[raw_ops.Shape(input=x)[0], longest])
    found = raw_ops.ScatterNd(
        indices=places, updates=boolean_mask(x, is_kept), shape=cast_to(shape, DataType.DT_INT64)
    )
    return found, cast_to(count, dtype_of(lengths))


@composed
def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> Any:
    """The labels of each sequence once, in the order of their first places.

    Args:
        labels: [batch, time].
        name: a name for the scope of nodes in a graph.

    Returns:
        The labels, int64 [batch, time] with 0 behind them; and where each given label is among them, int32.

    Raises:
        ValueError: the labels are no matrix.
    """
    x = convert(labels)
    if known_rank(x, "ctc_unique_labels") != 2:
        raise ValueError("ctc_unique_labels takes labels of the shape [batch, time]")
    equal = raw_ops.Equal(x=x[:, :, None], y=x[:, None, :])
    first = raw_ops.ArgMax(
        input=raw_ops.Cast(x=equal, DstT=DataType.DT_INT32),
        dimension=np.int32(2),
        output_type=DataType.DT_INT32,
    )
    number = raw_ops.Range(start=np.int32(0), limit=raw_ops.Shape(input=x)[1], delta=np.int32(1))
    is_first = raw_ops.Equal(x=first, y=number)
    rank = raw_ops.Cumsum(
        x=raw_ops.Cast(x=is_first, DstT=DataType.DT_INT32), axis=np.int32(1), exclusive=True
    )
    index = raw_ops.GatherV2(params=rank, indices=first, axis=np.int32(1), batch_dims=1)
    rows = raw_ops.Where(condition=is_first)[:, 0]
    columns = cast_to(boolean_mask(rank, is_first), DataType.DT_INT64)
    unique = raw_ops.ScatterNd(
        indices=raw_ops.Pack(values=[rows, columns], axis=1),
        updates=cast_to(boolean_mask(x, is_first), DataType.DT_INT64),
        shape=raw_ops.Shape(input=x, out_type=DataType.DT_INT64),
    )
    return unique, index
