"""Reductions over axes, which are all where `axis` is None.

Source: TensorFlow python/ops/math_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    all_axes,
    cast_to,
    composed,
    convert,
    dtype_of,
)
from opkernel.ops.registration import REAL_OF
from opkernel.types import DataType, as_dtype


def _reduced(op: Callable[..., Any], x: Any, axis: Any, keepdims: bool | None) -> Any:
    x = convert(x)
    axes = all_axes(x) if axis is None else axis
    return op(input=x, axis=axes, keep_dims=bool(keepdims))


@composed
def reduce_sum(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The sum over axes, which are dropped unless `keepdims`. The type is the input's."""
    return _reduced(raw_ops.Sum, input_tensor, axis, keepdims)


@composed
def reduce_mean(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The mean over axes; of integers it is rounded towards zero."""
    return _reduced(raw_ops.Mean, input_tensor, axis, keepdims)


@composed
def reduce_prod(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The product over axes."""
    return _reduced(raw_ops.Prod, input_tensor, axis, keepdims)


@composed
def reduce_max(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The largest element over axes; -inf or the type's lowest number where there is none."""
    return _reduced(raw_ops.Max, input_tensor, axis, keepdims)


@composed
def reduce_min(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The smallest element over axes; inf or the type's highest number where there is none."""
    return _reduced(raw_ops.Min, input_tensor, axis, keepdims)


@composed
def reduce_all(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Whether all elements of a bool tensor over axes are true."""
    return _reduced(raw_ops.All, input_tensor, axis, keepdims)


@composed
def reduce_any(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Whether any element of a bool tensor over axes is true."""
    return _reduced(raw_ops.Any, input_tensor, axis, keepdims)


@composed
def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The root of the sum of squares over axes."""
    return _reduced(raw_ops.EuclideanNorm, input_tensor, axis, keepdims)


@composed
def reduce_logsumexp(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """`log(sum(exp(x)))` over axes, computed so that large elements do not overflow."""
    x = convert(input_tensor)
    highest = _reduced(raw_ops.Max, x, axis, True)
    zero = raw_ops.ZerosLike(x=highest)
    highest = raw_ops.SelectV2(condition=raw_ops.IsFinite(x=highest), t=highest, e=zero)
    highest = raw_ops.StopGradient(input=highest)
    total = _reduced(raw_ops.Sum, raw_ops.Exp(x=raw_ops.Sub(x=x, y=highest)), axis, keepdims)
    result = raw_ops.Log(x=total)
    if not keepdims:
        highest = raw_ops.Reshape(tensor=highest, shape=raw_ops.Shape(input=result))
    return raw_ops.AddV2(x=result, y=highest)


@composed
def reduce_variance(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The mean squared distance from the mean over axes. Floating point or complex.

    Raises:
        TypeError: the elements are integers.
    """
    x = convert(input_tensor)
    if dtype_of(x).is_integer:
        raise TypeError(
            f"reduce_variance takes floating-point or complex tensors, and got {dtype_of(x).tf_name}; "
            "opkernel.cast converts them"
        )
    away = raw_ops.Sub(x=x, y=_reduced(raw_ops.Mean, x, axis, True))
    if dtype_of(x).is_complex:
        product = raw_ops.Mul(x=away, y=raw_ops.Conj(input=away))
        squares = raw_ops.Real(input=product, Tout=REAL_OF[dtype_of(x)])
    else:
        squares = raw_ops.Square(x=away)
    return _reduced(raw_ops.Mean, squares, axis, keepdims)


@composed
def reduce_std(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The standard deviation over axes: the root of `reduce_variance`."""
    return raw_ops.Sqrt(x=reduce_variance(input_tensor, axis, keepdims))


@composed
def count_nonzero(
    input: TensorLike,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = DataType.DT_INT64,
    name: str | None = None,
) -> Any:
    """How many elements over axes are not zero, as numbers of `dtype`; not empty, for strings."""
    x = convert(input)
    zero = b"" if dtype_of(x) == DataType.DT_STRING else np.zeros((), dtype_of(x).numpy_dtype)
    nonzero = raw_ops.Cast(x=raw_ops.NotEqual(x=x, y=zero), DstT=DataType.DT_INT64)
    return cast_to(_reduced(raw_ops.Sum, nonzero, axis, keepdims), dtype)


@composed
def zero_fraction(value: TensorLike, name: str | None = None) -> Any:
    """Which part of the elements are zero: a float32 scalar, NaN for an empty tensor."""
    x = convert(value)
    zeros = raw_ops.Equal(x=x, y=np.zeros((), dtype_of(x).numpy_dtype))
    return _reduced(raw_ops.Mean, raw_ops.Cast(x=zeros, DstT=DataType.DT_FLOAT), None, False)


def _arg(op: Callable[..., Any], x: Any, axis: Any, output_type: DTypeLike) -> Any:
    return op(input=x, dimension=0 if axis is None else axis, output_type=output_type)


@composed
def argmax(
    input: TensorLike,
    axis: Any = None,
    output_type: DTypeLike = DataType.DT_INT64,
    name: str | None = None,
) -> Any:
    """The index of the largest element along an axis, the first of equal ones; axis None is 0."""
    return _arg(raw_ops.ArgMax, input, axis, output_type)


@composed
def argmin(
    input: TensorLike,
    axis: Any = None,
    output_type: DTypeLike = DataType.DT_INT64,
    name: str | None = None,
) -> Any:
    """The index of the smallest element along an axis, the first of equal ones; axis None is 0."""
    return _arg(raw_ops.ArgMin, input, axis, output_type)


@composed
def bincount(
    arr: TensorLike,
    weights: TensorLike | None = None,
    minlength: TensorLike | None = None,
    maxlength: TensorLike | None = None,
    dtype: DTypeLike = DataType.DT_INT32,
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Any:
    """How often each number from 0 on occurs, or the sum of its weights.

    Args:
        arr: integers, none negative. int32 or int64; others become int32.
        weights: a number for each element of `arr`, which is counted instead of 1.
        minlength: the least length of the result.
        maxlength: the greatest; larger numbers are not counted.
        dtype: the type of counts, where there are no weights.
        name: a name for the scope of nodes in a graph.
        axis: None or 0 to count the whole tensor, -1 to count each row of a matrix.
        binary_output: count a number once only.

    Raises:
        ValueError: `axis` is another number.
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"bincount takes axis None, 0 or -1, and got {axis}")
    numbers = convert(arr)
    if not dtype_of(numbers).is_integer:
        numbers = cast_to(numbers, DataType.DT_INT32)
    if axis != -1:
        numbers = raw_ops.Reshape(tensor=numbers, shape=np.array([-1], np.int32))
    empty = np.zeros(0, as_dtype(dtype).numpy_dtype)
    counted = empty if weights is None else convert(weights)
    if axis != -1 and weights is not None:
        counted = raw_ops.Reshape(tensor=counted, shape=np.array([-1], np.int32))
    size = _bins(numbers, minlength, maxlength)
    return raw_ops.DenseBincount(
        input=numbers, size=size, weights=counted, binary_output=binary_output
    )


def _bins(numbers: Any, minlength: Any, maxlength: Any) -> Any:
    """One more than the largest number, within the limits."""
    dtype = dtype_of(numbers)
    size = raw_ops.Size(input=numbers)
    highest = raw_ops.Maximum(x=_reduced(raw_ops.Max, numbers, None, False), y=_scalar(dtype, -1))
    some = raw_ops.Cast(x=raw_ops.Greater(x=size, y=0), DstT=dtype)
    bins = raw_ops.Mul(x=some, y=raw_ops.AddV2(x=highest, y=_scalar(dtype, 1)))
    if minlength is not None:
        bins = raw_ops.Maximum(x=cast_to(minlength, dtype), y=bins)
    if maxlength is not None:
        bins = raw_ops.Minimum(x=cast_to(maxlength, dtype), y=bins)
    return bins


def _scalar(dtype: DataType, value: int) -> Any:
    return np.array(value, dtype.numpy_dtype)
