"""Losses of classes by their logits.

Source: TensorFlow python/ops/nn_ops.py, nn_impl.py, ctc_ops.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    like,
    number_like,
    pair,
    static_shape,
)
from opkernel.ops.registration import NARROW_FLOATS
from opkernel.types import DataType


def _of_one_shape(labels: Any, logits: Any) -> None:
    """Raise ValueError for shapes that differ."""
    first, second = static_shape(labels), static_shape(logits)
    if first is None or second is None:
        return
    is_same = len(first) == len(second) and all(
        None in (a, b) or a == b for a, b in zip(first, second, strict=True)
    )
    if not is_same:
        raise ValueError(f"Labels and logits have one shape, and not {first} and {second}")


@composed
def sigmoid_cross_entropy_with_logits(
    labels: TensorLike | None = None, logits: TensorLike | None = None, name: str | None = None
) -> Any:
    """The cross entropy of each element as a class of its own, which is right to the degree of its label.

    Args:
        labels: numbers from 0 to 1.
        logits: numbers of the same type and shape.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: the shapes differ, or an argument is missing.
    """
    if labels is None or logits is None:
        raise ValueError("sigmoid_cross_entropy_with_logits takes labels and logits")
    x, z = convert(logits), convert(labels)
    _of_one_shape(z, x)
    zeros = raw_ops.ZerosLike(x=x)
    positive = raw_ops.GreaterEqual(x=x, y=zeros)
    linear = raw_ops.Sub(
        x=raw_ops.SelectV2(condition=positive, t=x, e=zeros), y=raw_ops.Mul(x=x, y=z)
    )
    negative = raw_ops.SelectV2(condition=positive, t=raw_ops.Neg(x=x), e=x)
    return raw_ops.AddV2(x=linear, y=raw_ops.Log1p(x=raw_ops.Exp(x=negative)))


@composed
def weighted_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, pos_weight: TensorLike, name: str | None = None
) -> Any:
    """sigmoid_cross_entropy_with_logits, in which errors of right classes count `pos_weight` times."""
    x, z = convert(logits), convert(labels)
    _of_one_shape(z, x)
    one = number_like(x, 1.0)
    more = raw_ops.Sub(x=like(pos_weight, dtype_of(x)), y=one)
    weight = raw_ops.AddV2(x=one, y=raw_ops.Mul(x=more, y=z))
    soft = raw_ops.Log1p(x=raw_ops.Exp(x=raw_ops.Neg(x=raw_ops.Abs(x=x))))
    rest = raw_ops.AddV2(x=soft, y=raw_ops.Relu(features=raw_ops.Neg(x=x)))
    linear = raw_ops.Mul(x=raw_ops.Sub(x=one, y=z), y=x)
    return raw_ops.AddV2(x=linear, y=raw_ops.Mul(x=weight, y=rest))


@composed
def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: int = -1, name: str | None = None
) -> Any:
    """The cross entropy of classes along an axis.

    Args:
        labels: the probability of each class.
        logits: a logit for each class, of the same shape.
        axis: the axis of classes.
        name: a name for the scope of nodes in a graph.

    Returns:
        The losses, in the shape without the axis.
    """
    x = convert(logits)
    z = cast_to(convert(labels), dtype_of(x))
    wide = dtype_of(x) in NARROW_FLOATS
    if wide:
        given, x, z = dtype_of(x), cast_to(x, DataType.DT_FLOAT), cast_to(z, DataType.DT_FLOAT)
    rank = known_rank(x, "softmax_cross_entropy_with_logits")
    if axis % rank != rank - 1:
        order = [*(n for n in range(rank) if n != axis % rank), axis % rank]
        perm = np.array(order, np.int32)
        x, z = raw_ops.Transpose(x=x, perm=perm), raw_ops.Transpose(x=z, perm=perm)
    shape = raw_ops.Shape(input=x)
    losses = raw_ops.SoftmaxCrossEntropyWithLogits(features=_rows(x), labels=_rows(z))[0]
    losses = raw_ops.Reshape(tensor=losses, shape=shape[:-1])
    return cast_to(losses, given) if wide else losses


def _rows(x: Any) -> Any:
    """A tensor as a matrix with its last axis as columns."""
    columns = raw_ops.Shape(input=x)[-1:]
    shape = raw_ops.ConcatV2(values=[np.array([-1], np.int32), columns], axis=0)
    return raw_ops.Reshape(tensor=x, shape=shape)


@composed
def sparse_softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, name: str | None = None
) -> Any:
    """The cross entropy of classes along the last axis, of which one is right.

    Args:
        labels: the right class of each row, int32 or int64.
        logits: a logit for each class; one axis more than `labels`.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: the shapes do not fit.
        InvalidArgumentError: a label is not a class.
    """
    x, z = convert(logits), convert(labels)
    wide = dtype_of(x) in NARROW_FLOATS
    given = dtype_of(x)
    if wide:
        x = cast_to(x, DataType.DT_FLOAT)
    first, second = static_shape(z), static_shape(x)
    if first is not None and second is not None:
        if not second or len(first) != len(second) - 1:
            raise ValueError(f"Logits have one axis more than labels, and not {second} and {first}")
        if any(None not in (a, b) and a != b for a, b in zip(first, second[:-1], strict=True)):
            raise ValueError(f"Labels have the shape of logits without its last axis, not {first}")
    shape = raw_ops.Shape(input=z)
    losses = raw_ops.SparseSoftmaxCrossEntropyWithLogits(
        features=_rows(x), labels=raw_ops.Reshape(tensor=z, shape=np.array([-1], np.int32))
    )[0]
    losses = raw_ops.Reshape(tensor=losses, shape=shape)
    return cast_to(losses, given) if wide else losses


@composed
def log_poisson_loss(
    targets: TensorLike,
    log_input: TensorLike,
    compute_full_loss: bool = False,
    name: str | None = None,
) -> Any:
    """The loss of the logarithm of a mean, for numbers of a Poisson distribution.

    Args:
        targets: the numbers.
        log_input: the logarithms of the means predicted, of the same shape.
        compute_full_loss: add Stirling's approximation of the part that does not depend on the means.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: the shapes differ.
    """
    x, z = pair(log_input, targets)
    _of_one_shape(z, x)
    loss = raw_ops.Sub(x=raw_ops.Exp(x=x), y=raw_ops.Mul(x=x, y=z))
    if not compute_full_loss:
        return loss
    half = number_like(z, 0.5)
    around = raw_ops.Log(x=raw_ops.Mul(x=number_like(z, 2 * math.pi), y=z))
    product = raw_ops.Sub(x=raw_ops.Mul(x=z, y=raw_ops.Log(x=z)), y=z)
    stirling = raw_ops.AddV2(x=product, y=raw_ops.Mul(x=half, y=around))
    zeros, ones = raw_ops.ZerosLike(x=z), raw_ops.OnesLike(x=z)
    is_small = raw_ops.LogicalAnd(
        x=raw_ops.GreaterEqual(x=z, y=zeros), y=raw_ops.LessEqual(x=z, y=ones)
    )
    return raw_ops.AddV2(x=loss, y=raw_ops.SelectV2(condition=is_small, t=zeros, e=stirling))
