"""Mean and variance.

Source: TensorFlow python/ops/nn_impl.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    like,
    shape_of,
)
from opkernel.ops.registration import NARROW_FLOATS
from opkernel.types import DataType


def _widened(x: Any) -> Any:
    """A tensor in which sums are exact enough: half as float32."""
    return cast_to(x, DataType.DT_FLOAT) if dtype_of(x) in NARROW_FLOATS else x


def _axes(axes: Any) -> list[int]:
    return [int(axis) for axis in np.ravel(np.asarray(axes, np.int64))]


def _squeezed(x: Any, axes: Any, keepdims: bool, dtype: DataType) -> Any:
    if not keepdims and _axes(axes):
        x = raw_ops.Squeeze(input=x, axis=_axes(axes))
    return cast_to(x, dtype)


@composed
def moments(
    x: TensorLike, axes: Any, shift: None = None, keepdims: bool = False, name: str | None = None
) -> tuple[Any, Any]:
    """The mean and the variance over axes.

    Args:
        x: floating point.
        axes: the axes.
        shift: ignored.
        keepdims: keep the axes with size 1.
        name: a name for the scope of nodes in a graph.
    """
    given = convert(x)
    y = _widened(given)
    over = np.array(_axes(axes), np.int32)
    mean = raw_ops.Mean(input=y, axis=over, keep_dims=True)
    away = raw_ops.SquaredDifference(x=y, y=raw_ops.StopGradient(input=mean))
    variance = raw_ops.Mean(input=away, axis=over, keep_dims=True)
    dtype = dtype_of(given)
    return _squeezed(mean, axes, keepdims, dtype), _squeezed(variance, axes, keepdims, dtype)


@composed
def weighted_moments(
    x: TensorLike,
    axes: Any,
    frequency_weights: TensorLike,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean and the variance over axes of elements that count as often as their weights say."""
    given = convert(x)
    y = _widened(given)
    over = np.array(_axes(axes), np.int32)
    weights = cast_to(like(frequency_weights, dtype_of(y)), dtype_of(y))
    weights = raw_ops.AddV2(x=weights, y=raw_ops.ZerosLike(x=y))

    def mean_of(values: Any) -> Any:
        total = raw_ops.Sum(input=raw_ops.Mul(x=weights, y=values), axis=over, keep_dims=True)
        return raw_ops.Mul(x=total, y=share)

    share = raw_ops.Reciprocal(x=raw_ops.Sum(input=weights, axis=over, keep_dims=True))
    mean = mean_of(y)
    variance = mean_of(raw_ops.SquaredDifference(x=y, y=mean))
    dtype = dtype_of(given)
    return _squeezed(mean, axes, keepdims, dtype), _squeezed(variance, axes, keepdims, dtype)


@composed
def sufficient_statistics(
    x: TensorLike,
    axes: Any,
    shift: TensorLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Any, Any, Any, Any]:
    """What mean and variance over axes are computed from.

    Returns:
        How many elements there are, the sum, the sum of squares, and `shift`, which is taken from
        each element before.
    """
    values = convert(x)
    over = np.array(_axes(axes), np.int32)
    sizes = raw_ops.GatherV2(params=shape_of(values), indices=over, axis=0)
    count = cast_to(raw_ops.Prod(input=sizes, axis=np.array([0], np.int32)), dtype_of(values))
    if shift is None:
        first, squares = values, raw_ops.Square(x=values)
        moved = None
    else:
        moved = like(shift, dtype_of(values))
        first = raw_ops.Sub(x=values, y=moved)
        squares = raw_ops.SquaredDifference(x=values, y=moved)
    total = raw_ops.Sum(input=first, axis=over, keep_dims=keepdims)
    return count, total, raw_ops.Sum(input=squares, axis=over, keep_dims=keepdims), moved


@composed
def normalize_moments(
    counts: TensorLike,
    mean_ss: TensorLike,
    variance_ss: TensorLike,
    shift: TensorLike | None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean and the variance from `sufficient_statistics`."""
    total = convert(mean_ss)
    share = raw_ops.Reciprocal(x=like(counts, dtype_of(total)))
    mean = shifted = raw_ops.Mul(x=total, y=share)
    if shift is not None:
        mean = raw_ops.AddV2(x=shifted, y=like(shift, dtype_of(total)))
    squares = raw_ops.Mul(x=like(variance_ss, dtype_of(total)), y=share)
    return mean, raw_ops.Sub(x=squares, y=raw_ops.Square(x=shifted))
