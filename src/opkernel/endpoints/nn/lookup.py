"""Embeddings, and losses of classes that are sampled.

Source: TensorFlow python/ops/embedding_ops.py, nn_impl.py, candidate_sampling_ops.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.global_seed import seeds_of
from opkernel.endpoints.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
)
from opkernel.endpoints.random.distributions import log_uniform_candidate_sampler
from opkernel.endpoints.sparse._parts import sparse_parts
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    like,
    number_like,
    static_rank,
)
from opkernel.types import DataType


def _table(params: Any) -> Any:
    """The rows of an embedding, of which the parts follow one another."""
    if isinstance(params, list | tuple):
        if not params:
            raise ValueError("An embedding has one part or more")
        parts = [convert(part) for part in params]
        return parts[0] if len(parts) == 1 else raw_ops.ConcatV2(values=parts, axis=0)
    return convert(params)


def _limited(rows: Any, max_norm: Any, ids_rank: int | None) -> Any:
    """Rows scaled down to a norm of at most `max_norm`."""
    if max_norm is None:
        return rows
    from opkernel.endpoints.array.choosing import clip_by_norm

    axes = [*range(ids_rank or 0, known_rank(rows, "max_norm"))]
    return clip_by_norm(rows, max_norm, axes=axes)


@composed
def embedding_lookup(
    params: Any, ids: TensorLike, max_norm: TensorLike | None = None, name: str | None = None
) -> Any:
    """The rows of an embedding with these numbers.

    Args:
        params: a matrix with a row for each number, or a list of its parts, of equal sizes.
        ids: int32 or int64 numbers of any shape.
        max_norm: the norm that rows are scaled down to.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: `params` is an empty list.
        InvalidArgumentError: a number is out of range.
    """
    numbers = convert(ids)
    rows = raw_ops.GatherV2(params=_table(params), indices=numbers, axis=0)
    return _limited(rows, max_norm, static_rank(numbers))


@composed
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    combiner: str | None = None,
    max_norm: TensorLike | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Any:
    """The rows of an embedding, combined for each row of a sparse matrix of numbers.

    Args:
        params: a matrix with a row for each number, or a list of its parts.
        sp_ids: a SparseTensor of the numbers, without empty rows.
        sp_weights: a SparseTensor of their weights, or None for 1.
        combiner: "mean" (also if None), "sqrtn" or "sum".
        max_norm: the norm that rows are scaled down to.
        name: a name for the scope of nodes in a graph.
        allow_fast_lookup: ignored: a hint.

    Raises:
        ValueError: `combiner` is another.
        TypeError: `sp_ids` is not a SparseTensor.
    """
    kind = combiner or "mean"
    if kind not in ("mean", "sqrtn", "sum"):
        raise ValueError(f'combiner is "mean", "sqrtn" or "sum", and not {combiner!r}')
    ids = sparse_parts(sp_ids)
    rows = _limited(
        raw_ops.GatherV2(params=_table(params), indices=ids.values, axis=0), max_norm, 1
    )
    segments = cast_to(ids.indices[:, 0], DataType.DT_INT32)
    if sp_weights is None:
        return _combined(rows, segments, kind)
    weights = cast_to(sparse_parts(sp_weights).values, dtype_of(rows))
    column = raw_ops.Reshape(
        tensor=weights, shape=np.array([-1, *[1] * (known_rank(rows, kind) - 1)], np.int32)
    )
    total = raw_ops.SegmentSum(data=raw_ops.Mul(x=rows, y=column), segment_ids=segments)
    if kind == "sum":
        return total
    counted = column if kind == "mean" else raw_ops.Square(x=column)
    length = raw_ops.SegmentSum(data=counted, segment_ids=segments)
    if kind == "sqrtn":
        length = raw_ops.Sqrt(x=length)
    return raw_ops.DivNoNan(x=total, y=length)


def _combined(rows: Any, segments: Any, kind: str) -> Any:
    if kind == "sum":
        return raw_ops.SegmentSum(data=rows, segment_ids=segments)
    count = raw_ops.Range(start=0, limit=raw_ops.Shape(input=segments)[0], delta=1)
    op = raw_ops.SparseSegmentMean if kind == "mean" else raw_ops.SparseSegmentSqrtN
    return op(data=rows, indices=count, segment_ids=segments)


@composed
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = "mean",
    default_id: int | None = None,
    max_norm: TensorLike | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Any:
    """embedding_lookup_sparse, for rows that may be empty, and numbers that may be negative.

    Args:
        embedding_weights: a matrix with a row for each number, or a list of its parts.
        sparse_ids: a SparseTensor of the numbers; negative ones are left out.
        sparse_weights: a SparseTensor of their weights, or None; numbers whose weight is not positive
            are left out, unless the combiner is "sum".
        combiner: "mean", "sqrtn" or "sum".
        default_id: the number that stands for an empty row; None for zeros.
        max_norm: the norm that rows are scaled down to.
        name: a name for the scope of nodes in a graph.
        allow_fast_lookup: ignored: a hint.
    """
    ids = sparse_parts(sparse_ids)
    weights = None if sparse_weights is None else sparse_parts(sparse_weights)
    kept = raw_ops.GreaterEqual(x=ids.values, y=number_like(ids.values, 0))
    if weights is not None and combiner != "sum":
        positive = raw_ops.Greater(x=weights.values, y=number_like(weights.values, 0))
        kept = raw_ops.LogicalAnd(x=kept, y=positive)
    number = 0 if default_id is None else default_id
    ids, empty = _filled(ids, kept, number)
    if weights is not None:
        weights, _ = _filled(weights, kept, 1.0)
    found = embedding_lookup_sparse(embedding_weights, ids, weights, combiner, max_norm)
    if default_id is not None:
        return found
    shape = np.array([-1, *[1] * (known_rank(found, "embedding") - 1)], np.int32)
    column = raw_ops.Reshape(tensor=empty, shape=shape)
    return raw_ops.SelectV2(condition=column, t=number_like(found, 0), e=found)


def _filled(tensor: Any, kept: Any, value: float) -> tuple[Any, Any]:
    """The elements that are kept, with `value` in empty rows; and which rows were empty."""
    places = raw_ops.Reshape(tensor=raw_ops.Where(condition=kept), shape=np.array([-1], np.int32))
    indices = raw_ops.GatherV2(params=tensor.indices, indices=places, axis=0)
    values = raw_ops.GatherV2(params=tensor.values, indices=places, axis=0)
    found = raw_ops.SparseFillEmptyRows(
        indices=indices,
        values=values,
        dense_shape=tensor.dense_shape,
        default_value=number_like(values, value),
    )
    return tensor._replace(indices=found[0], values=found[1]), found[2]


@composed
def compute_accidental_hits(
    true_classes: TensorLike,
    sampled_candidates: TensorLike,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Which of the classes that were sampled are right ones.

    Args:
        true_classes: the right classes, int64 of the shape [batch, `num_true`].
        sampled_candidates: the classes that were sampled, int64.
        num_true: how many right classes an example has.
        seed: a seed beside the global one.
        name: a name for the scope of nodes in a graph.

    Returns:
        The rows, the numbers of the samples, and a very low number for each.
    """
    return raw_ops.ComputeAccidentalHits(
        true_classes=like(true_classes, DataType.DT_INT64),
        sampled_candidates=like(sampled_candidates, DataType.DT_INT64),
        num_true=num_true,
        **seeds_of(seed, true_classes),
    )


def _sampled_logits(
    parts: tuple[Any, Any, Any, Any], num_true: int, sampled: Any, is_cleaned: bool
) -> tuple[Any, Any]:
    """Logits of the right and of the sampled classes, and labels for them."""
    weights, biases, labels, inputs = parts
    table, offsets, given = _table(weights), _table(biases), convert(inputs)
    right = cast_to(convert(labels), DataType.DT_INT64)
    if static_rank(right) == 1:
        right = raw_ops.ExpandDims(input=right, axis=-1)
    classes, expected_right, expected = (raw_ops.StopGradient(input=part) for part in sampled)
    classes = cast_to(classes, DataType.DT_INT64)
    rows = raw_ops.GatherV2(params=table, indices=right, axis=0)
    true = raw_ops.Einsum(inputs=[given, rows], equation="bd,btd->bt")
    true = raw_ops.AddV2(x=true, y=raw_ops.GatherV2(params=offsets, indices=right, axis=0))
    chosen = raw_ops.GatherV2(params=table, indices=classes, axis=0)
    other = raw_ops.MatMul(a=given, b=chosen, transpose_b=True)
    other = raw_ops.AddV2(x=other, y=raw_ops.GatherV2(params=offsets, indices=classes, axis=0))
    if is_cleaned:
        hits = raw_ops.ComputeAccidentalHits(
            true_classes=right, sampled_candidates=classes, num_true=num_true
        )
        places = raw_ops.Pack(values=[cast_to(hits[0], DataType.DT_INT64), hits[1]], axis=1)
        shape = raw_ops.Shape(input=other, out_type=DataType.DT_INT64)
        other = raw_ops.AddV2(
            x=other, y=raw_ops.ScatterNd(indices=places, updates=hits[2], shape=shape)
        )
    true = raw_ops.Sub(x=true, y=raw_ops.Log(x=expected_right))
    other = raw_ops.Sub(x=other, y=raw_ops.Log(x=expected))
    share = raw_ops.RealDiv(x=raw_ops.OnesLike(x=true), y=number_like(true, num_true))
    logits = raw_ops.ConcatV2(values=[true, other], axis=1)
    return logits, raw_ops.ConcatV2(values=[share, raw_ops.ZerosLike(x=other)], axis=1)


@composed
def nce_loss(
    weights: Any,
    biases: Any,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str | None = "nce_loss",
) -> Any:
    """The noise-contrastive loss: right classes against sampled ones, as many yes-or-no questions.

    Args:
        weights: a matrix with a row for each class, or a list of its parts.
        biases: a number for each class.
        labels: the right classes, int64 of the shape [batch, `num_true`].
        inputs: a vector for each example.
        num_sampled: how many classes to sample.
        num_classes: how many classes there are.
        num_true: how many right classes an example has.
        sampled_values: what a candidate sampler gave; those of log_uniform_candidate_sampler if None.
        remove_accidental_hits: leave out samples that are right.
        name: a name for the scope of nodes in a graph.

    Returns:
        A loss for each example.
    """
    sampled = sampled_values or log_uniform_candidate_sampler(
        labels, num_true, num_sampled, True, num_classes
    )
    parts = weights, biases, labels, inputs
    logits, wanted = _sampled_logits(parts, num_true, sampled, remove_accidental_hits)
    losses = sigmoid_cross_entropy_with_logits(wanted, logits)
    return raw_ops.Sum(input=losses, axis=np.array([1], np.int32))


@composed
def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str | None = "sampled_softmax_loss",
) -> Any:
    """The cross entropy of right classes among sampled ones; the arguments are those of nce_loss."""
    sampled = sampled_values or log_uniform_candidate_sampler(
        labels, num_true, num_sampled, True, num_classes, seed
    )
    parts = weights, biases, labels, inputs
    logits, wanted = _sampled_logits(parts, num_true, sampled, remove_accidental_hits)
    return softmax_cross_entropy_with_logits(raw_ops.StopGradient(input=wanted), logits)
