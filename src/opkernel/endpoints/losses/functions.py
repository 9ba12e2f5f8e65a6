"""The losses that training needs: of the last axis, one for each example.

The names and formulas are those of `tf.keras.losses`. A mean over the batch is `math.reduce_mean(loss)`.
Source: Keras src/losses/losses.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.linalg.norms import l2_normalize
from opkernel.endpoints.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    number_like,
    static_rank,
    static_shape,
)
from opkernel.types import DataType

_EPSILON = 1e-7
_LAST = np.array([-1], np.int32)


def _both(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Labels and predictions of one floating type, and of one rank."""
    predicted = convert(y_pred)
    if not dtype_of(predicted).is_floating:
        predicted = cast_to(predicted, DataType.DT_FLOAT)
    right = cast_to(convert(y_true), dtype_of(predicted))
    return _of_one_rank(right, predicted), _of_one_rank(predicted, right)


def _of_one_rank(x: Any, other: Any) -> Any:
    """A tensor without the last axis of size 1 that the other lacks; a vector gets one that it lacks."""
    shape, wanted = static_shape(x), static_shape(other)
    if shape is None or wanted is None:
        return x
    if len(shape) == len(wanted) + 1 and shape[-1] == 1 and len(wanted) != 1:
        return raw_ops.Squeeze(input=x, axis=[-1])
    if len(shape) == 1 and len(wanted) == 2 and wanted[-1] == 1:
        return raw_ops.ExpandDims(input=x, axis=-1)
    return x


def _mean(x: Any, axis: int = -1) -> Any:
    return raw_ops.Mean(input=x, axis=np.array([axis], np.int32))


def _sum(x: Any, axis: int = -1) -> Any:
    return raw_ops.Sum(input=x, axis=np.array([axis], np.int32))


def _at_least(x: Any, least: float) -> Any:
    return raw_ops.Maximum(x=x, y=number_like(x, least))


def _clipped(x: Any, low: float, high: float) -> Any:
    return _at_least(raw_ops.Minimum(x=x, y=number_like(x, high)), low)


def _log(x: Any) -> Any:
    return raw_ops.Log(x=x)


@composed
def mean_squared_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """The mean of the squared errors."""
    right, predicted = _both(y_true, y_pred)
    return _mean(raw_ops.SquaredDifference(x=predicted, y=right))


@composed
def mean_absolute_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """The mean of the absolute errors."""
    right, predicted = _both(y_true, y_pred)
    return _mean(raw_ops.Abs(x=raw_ops.Sub(x=right, y=predicted)))


@composed
def mean_absolute_percentage_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """The mean of the absolute errors as parts of the right numbers, in percent."""
    right, predicted = _both(y_true, y_pred)
    size = _at_least(raw_ops.Abs(x=right), _EPSILON)
    part = raw_ops.Abs(x=raw_ops.RealDiv(x=raw_ops.Sub(x=right, y=predicted), y=size))
    mean = _mean(part)
    return raw_ops.Mul(x=number_like(mean, 100), y=mean)


@composed
def mean_squared_logarithmic_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """The mean of the squared differences of `log(1 + y)`."""
    right, predicted = _both(y_true, y_pred)
    first, second = (
        _log(raw_ops.AddV2(x=_at_least(y, _EPSILON), y=number_like(y, 1)))
        for y in (predicted, right)
    )
    return _mean(raw_ops.SquaredDifference(x=first, y=second))


@composed
def huber(y_true: TensorLike, y_pred: TensorLike, delta: float = 1.0) -> Any:
    """The mean of half the squared errors, which grow only linearly beyond `delta`."""
    right, predicted = _both(y_true, y_pred)
    size = raw_ops.Abs(x=raw_ops.Sub(x=predicted, y=right))
    half, limit = number_like(size, 0.5), number_like(size, delta)
    inner = raw_ops.Mul(x=half, y=raw_ops.Square(x=size))
    outer = raw_ops.Sub(
        x=raw_ops.Mul(x=limit, y=size), y=raw_ops.Mul(x=half, y=raw_ops.Square(x=limit))
    )
    is_inside = raw_ops.LessEqual(x=size, y=limit)
    return _mean(raw_ops.SelectV2(condition=is_inside, t=inner, e=outer))


@composed
def log_cosh(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """The mean of the logarithm of the hyperbolic cosine of the errors."""
    right, predicted = _both(y_true, y_pred)
    error = raw_ops.Sub(x=predicted, y=right)
    soft = raw_ops.Softplus(features=raw_ops.Mul(x=error, y=number_like(error, -2)))
    rest = raw_ops.Sub(x=soft, y=number_like(error, np.log(2.0)))
    return _mean(raw_ops.AddV2(x=error, y=rest))


def _signed(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Labels as -1 and 1, where they are 0 and 1, and predictions."""
    predicted = convert(y_pred)
    right = cast_to(convert(y_true), dtype_of(predicted))
    zero, one = number_like(right, 0), number_like(right, 1)
    is_binary = raw_ops.All(
        input=raw_ops.LogicalOr(x=raw_ops.Equal(x=right, y=zero), y=raw_ops.Equal(x=right, y=one)),
        axis=np.arange(static_rank(right) or 0, dtype=np.int32),
    )
    doubled = raw_ops.Sub(x=raw_ops.Mul(x=number_like(right, 2), y=right), y=one)
    return raw_ops.SelectV2(condition=is_binary, t=doubled, e=right), predicted


def _margin(y_true: Any, y_pred: Any) -> Any:
    right, predicted = _signed(y_true, y_pred)
    short = raw_ops.Sub(x=number_like(predicted, 1), y=raw_ops.Mul(x=right, y=predicted))
    return _at_least(short, 0)


@composed
def hinge(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """The mean of `max(1 - y_true * y_pred, 0)`; labels are -1 and 1, or 0 and 1."""
    return _mean(_margin(y_true, y_pred))


@composed
def squared_hinge(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """The mean of `max(1 - y_true * y_pred, 0) ** 2`; labels are -1 and 1, or 0 and 1."""
    return _mean(raw_ops.Square(x=_margin(y_true, y_pred)))


@composed
def categorical_hinge(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """How much the best wrong class is better than the right one, plus 1; at least 0."""
    predicted = convert(y_pred)
    right = cast_to(convert(y_true), dtype_of(predicted))
    good = _sum(raw_ops.Mul(x=right, y=predicted))
    wrong = raw_ops.Sub(x=number_like(right, 1), y=right)
    bad = raw_ops.Max(input=raw_ops.Mul(x=wrong, y=predicted), axis=_LAST)
    return _at_least(raw_ops.AddV2(x=raw_ops.Sub(x=bad, y=good), y=number_like(bad, 1)), 0)


@composed
def poisson(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """The mean of `y_pred - y_true * log(y_pred)`."""
    right, predicted = _both(y_true, y_pred)
    log = _log(raw_ops.AddV2(x=predicted, y=number_like(predicted, _EPSILON)))
    return _mean(raw_ops.Sub(x=predicted, y=raw_ops.Mul(x=right, y=log)))


@composed
def kl_divergence(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """The Kullback-Leibler divergence of probabilities: the sum of `y_true * log(y_true / y_pred)`."""
    predicted = convert(y_pred)
    right = _clipped(cast_to(convert(y_true), dtype_of(predicted)), _EPSILON, 1)
    predicted = _clipped(predicted, _EPSILON, 1)
    ratio = raw_ops.RealDiv(x=right, y=predicted)
    return _sum(raw_ops.Mul(x=right, y=_log(ratio)))


@composed
def cosine_similarity(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Any:
    """The negative cosine of the angle between two vectors: -1 for equal directions."""
    right, predicted = _both(y_true, y_pred)
    product = raw_ops.Mul(x=l2_normalize(right, axis), y=l2_normalize(predicted, axis))
    return raw_ops.Neg(x=_sum(product, axis))


@composed
def binary_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """The mean cross entropy of yes-or-no questions.

    Args:
        y_true: 0 or 1, or numbers between.
        y_pred: probabilities, or logits.
        from_logits: whether predictions are logits.
        label_smoothing: how far labels are moved towards 1/2, from 0 to 1.
        axis: the axis of questions.
    """
    predicted = convert(y_pred)
    right = cast_to(convert(y_true), dtype_of(predicted))
    if label_smoothing:
        right = _smoothed(right, label_smoothing, 0.5)
    if from_logits:
        return _mean(sigmoid_cross_entropy_with_logits(right, predicted), axis)
    chance = _clipped(predicted, _EPSILON, 1 - _EPSILON)
    one = number_like(chance, 1)
    yes = raw_ops.Mul(x=right, y=_log(chance))
    no = raw_ops.Mul(x=raw_ops.Sub(x=one, y=right), y=_log(raw_ops.Sub(x=one, y=chance)))
    return _mean(raw_ops.Neg(x=raw_ops.AddV2(x=yes, y=no)), axis)


def _smoothed(right: Any, part: float, even: Any) -> Any:
    rest = raw_ops.Mul(x=right, y=number_like(right, 1 - part))
    return raw_ops.AddV2(x=rest, y=raw_ops.Mul(x=number_like(right, part), y=_as(right, even)))


def _as(like: Any, value: Any) -> Any:
    return number_like(like, value) if isinstance(value, float) else cast_to(value, dtype_of(like))


@composed
def categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """The cross entropy of classes, of which the right one is given as a probability of each.

    Args:
        y_true: the probability of each class, mostly 0 and 1.
        y_pred: probabilities, or logits.
        from_logits: whether predictions are logits.
        label_smoothing: how far labels are moved towards equal probabilities, from 0 to 1.
        axis: the axis of classes.
    """
    predicted = convert(y_pred)
    right = cast_to(convert(y_true), dtype_of(predicted))
    if label_smoothing:
        count = raw_ops.Shape(input=right)[axis]
        even = raw_ops.Reciprocal(x=cast_to(count, dtype_of(right)))
        right = _smoothed(right, label_smoothing, even)
    if from_logits:
        return softmax_cross_entropy_with_logits(right, predicted, axis=axis)
    total = raw_ops.Sum(input=predicted, axis=np.array([axis], np.int32), keep_dims=True)
    chance = _clipped(raw_ops.RealDiv(x=predicted, y=total), _EPSILON, 1 - _EPSILON)
    return raw_ops.Neg(x=_sum(raw_ops.Mul(x=right, y=_log(chance)), axis))


@composed
def sparse_categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    ignore_class: int | None = None,
    axis: int = -1,
) -> Any:
    """The cross entropy of classes, of which the right one is given as its number.

    Args:
        y_true: the number of the right class, without the axis of classes or with size 1 there.
        y_pred: probabilities, or logits.
        from_logits: whether predictions are logits.
        ignore_class: the number of a class whose examples have the loss 0.
        axis: the axis of classes, the last one.

    Raises:
        ValueError: `axis` is not the last one.
    """
    predicted, right = convert(y_pred), convert(y_true)
    rank = static_rank(predicted)
    if axis != -1 and axis + 1 != rank:
        raise ValueError(f"sparse_categorical_crossentropy takes the last axis, and not {axis}")
    right = cast_to(right, DataType.DT_INT64)
    if rank is not None and static_rank(right) == rank:
        right = raw_ops.Squeeze(input=right, axis=[-1])
    ignored = None
    if ignore_class is not None:
        ignored = raw_ops.Equal(x=right, y=np.int64(ignore_class))
        right = raw_ops.SelectV2(condition=ignored, t=np.int64(0), e=right)
    if not from_logits:
        predicted = _log(_clipped(predicted, _EPSILON, 1 - _EPSILON))
    loss = sparse_softmax_cross_entropy_with_logits(right, predicted)
    if ignored is None:
        return loss
    return raw_ops.SelectV2(condition=ignored, t=number_like(loss, 0), e=loss)
