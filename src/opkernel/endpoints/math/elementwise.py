"""Functions of each element that are more than one op, or another op for some types.

Source: TensorFlow python/ops/math_ops.py, special_math_ops.py, nn_ops.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    like,
    number_like,
    on_last_axis,
    pair,
    static_rank,
)
from opkernel.ops.registration import REAL_OF
from opkernel.types import DataType, as_dtype


@composed
def abs(x: TensorLike, name: str | None = None) -> Any:
    """The absolute value of each element; the length of complex ones, as float32 or float64."""
    x = convert(x)
    if dtype_of(x).is_complex:
        return raw_ops.ComplexAbs(x=x, Tout=REAL_OF[dtype_of(x)])
    return raw_ops.Abs(x=x)


@composed
def add(x: TensorLike, y: TensorLike, name: str | None = None) -> Any:
    """`x + y`, element by element with broadcasting; strings are joined."""
    x, y = pair(x, y)
    op = raw_ops.Add if dtype_of(x) == DataType.DT_STRING else raw_ops.AddV2
    return op(x=x, y=y)


@composed
def truediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Any:
    """`x / y` as Python divides: integers become float64, those of 16 bits or fewer float32."""
    x, y = pair(x, y)
    dtype = dtype_of(x)
    if dtype != dtype_of(y):
        raise TypeError(
            f"truediv takes two tensors of one type, and got {dtype.tf_name} and {dtype_of(y).tf_name}"
        )
    if dtype.is_integer:
        wide = DataType.DT_FLOAT if dtype.size <= 2 else DataType.DT_DOUBLE
        x, y = cast_to(x, wide), cast_to(y, wide)
    return raw_ops.RealDiv(x=x, y=y)


@composed
def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> Any:
    """`x / y` as Python divides; of two numbers of Python, a number of Python."""
    if isinstance(x, int | float | complex) and isinstance(y, int | float | complex):
        return x / y
    return truediv(x, y)


@composed
def round(x: TensorLike, name: str | None = None) -> Any:
    """The nearest integer of each element, of two equally near ones the even one."""
    x = convert(x)
    return raw_ops.Identity(input=x) if dtype_of(x).is_integer else raw_ops.Round(x=x)


@composed
def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> Any:
    """A scalar times a tensor; the scalar takes the tensor's type.

    Raises:
        ValueError: `scalar` is not a scalar.
    """
    x = convert(x)
    factor = like(scalar, dtype_of(x))
    if static_rank(factor):
        raise ValueError(f"scalar_mul takes a scalar, and got the rank {static_rank(factor)}")
    return raw_ops.Mul(x=factor, y=x)


@composed
def angle(input: TensorLike, name: str | None = None) -> Any:
    """The angle of each complex element in radians; 0 or pi for real ones."""
    x = convert(input)
    if dtype_of(x).is_complex:
        return raw_ops.Angle(input=x, Tout=REAL_OF[dtype_of(x)])
    negative = raw_ops.Less(x=x, y=number_like(x, 0))
    half_turn = raw_ops.Mul(x=raw_ops.OnesLike(x=x), y=number_like(x, math.pi))
    return raw_ops.SelectV2(condition=negative, t=half_turn, e=raw_ops.ZerosLike(x=x))


def _part(op: Callable[..., Any], input: Any) -> Any:
    x = convert(input)
    if dtype_of(x).is_complex:
        return op(input=x, Tout=REAL_OF[dtype_of(x)])
    return x


@composed
def real(input: TensorLike, name: str | None = None) -> Any:
    """The real part of each element; real tensors are their own."""
    return _part(raw_ops.Real, input)


@composed
def imag(input: TensorLike, name: str | None = None) -> Any:
    """The imaginary part of each element; zeros for real tensors."""
    x = convert(input)
    return _part(raw_ops.Imag, x) if dtype_of(x).is_complex else raw_ops.ZerosLike(x=x)


@composed
def conj(x: TensorLike, name: str | None = None) -> Any:
    """The complex conjugate of each element; real tensors are their own.

    Raises:
        TypeError: the elements are not numbers.
    """
    x = convert(x)
    if dtype_of(x).is_complex or dtype_of(x) == DataType.DT_VARIANT:
        return raw_ops.Conj(input=x)
    if not dtype_of(x).is_numeric:
        raise TypeError(f"conj takes numbers, and got {dtype_of(x).tf_name}")
    return x


@composed
def erfcinv(x: TensorLike, name: str | None = None) -> Any:
    """The inverse of `erfc`, for elements between 0 and 2."""
    x = convert(x)
    quantile = raw_ops.Ndtri(x=raw_ops.Mul(x=number_like(x, 0.5), y=x))
    return raw_ops.Mul(x=raw_ops.Neg(x=quantile), y=number_like(x, math.sqrt(0.5)))


@composed
def log_sigmoid(x: TensorLike, name: str | None = None) -> Any:
    """`log(1 / (1 + exp(-x)))`, computed as `-softplus(-x)`."""
    return raw_ops.Neg(x=raw_ops.Softplus(features=raw_ops.Neg(x=convert(x))))


@composed
def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Any:
    """`1 / x`, and 0 where `x` is 0."""
    x = convert(x)
    return raw_ops.DivNoNan(x=number_like(x, 1), y=x)


@composed
def logical_xor(x: TensorLike, y: TensorLike, name: str | None = "LogicalXor") -> Any:
    """Whether exactly one of two bools is true, element by element with broadcasting."""
    either = raw_ops.LogicalOr(x=x, y=y)
    both = raw_ops.LogicalAnd(x=x, y=y)
    return raw_ops.LogicalAnd(x=either, y=raw_ops.LogicalNot(x=both))


@composed
def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> Any:
    """The polynomial with these coefficients, the highest power's first, at each element.

    Raises:
        ValueError: `coeffs` is not a list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(  # noqa: TRY004  # as TensorFlow
            f"polyval takes a list of coefficients, and got {type(coeffs).__name__}"
        )
    x = convert(x)
    if not coeffs:
        return raw_ops.ZerosLike(x=x)
    total = like(coeffs[0], dtype_of(x))
    for coefficient in coeffs[1:]:
        total = add(coefficient, raw_ops.Mul(x=total, y=x))
    return total


@composed
def accumulate_n(
    inputs: Sequence[TensorLike],
    shape: Any = None,
    tensor_dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Any:
    """The sum of a list of tensors of one type and shape.

    Args:
        inputs: the tensors, one at least.
        shape: their shape, for a check.
        tensor_dtype: their type, for a check.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: there is no tensor.
        TypeError: the type is not `tensor_dtype`.
    """
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError("accumulate_n takes a list of one or more tensors")
    tensors = [convert(value) for value in inputs]
    if len({dtype_of(tensor) for tensor in tensors}) > 1:
        raise ValueError("accumulate_n takes tensors of one type")
    if tensor_dtype is not None and as_dtype(tensor_dtype) != dtype_of(tensors[0]):
        raise TypeError(
            f"tensor_dtype is {as_dtype(tensor_dtype).tf_name}, and the tensors are "
            f"{dtype_of(tensors[0]).tf_name}"
        )
    return tensors[0] if len(tensors) == 1 else raw_ops.AddN(inputs=tensors)


@composed
def softmax(logits: TensorLike, axis: int | None = None, name: str | None = None) -> Any:
    """`exp(x) / sum(exp(x))` along an axis, the last one if None."""
    return on_last_axis(convert(logits), axis, lambda x: raw_ops.Softmax(logits=x))


@composed
def log_softmax(logits: TensorLike, axis: int | None = None, name: str | None = None) -> Any:
    """`x - log(sum(exp(x)))` along an axis, the last one if None."""
    return on_last_axis(convert(logits), axis, lambda x: raw_ops.LogSoftmax(logits=x))


@composed
def is_non_decreasing(x: TensorLike, name: str | None = None) -> Any:
    """Whether no element is less than the one before it, in the order of rows."""
    return _follows(x, raw_ops.LessEqual)


@composed
def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Any:
    """Whether each element is greater than the one before it, in the order of rows."""
    return _follows(x, raw_ops.Less)


def _follows(x: Any, op: Callable[..., Any]) -> Any:
    row = raw_ops.Reshape(tensor=convert(x), shape=np.array([-1], np.int32))
    steps = raw_ops.Sub(x=row[1:], y=row[:-1])
    return raw_ops.All(input=op(x=number_like(row, 0), y=steps), axis=np.array([0], np.int32))


@composed
def lbeta(x: TensorLike, name: str | None = None) -> Any:
    """The logarithm of the multivariate beta function of the last axis."""
    x = convert(x)
    last = np.array([-1], np.int32)
    logs = raw_ops.Sum(input=raw_ops.Lgamma(x=x), axis=last)
    return raw_ops.Sub(x=logs, y=raw_ops.Lgamma(x=raw_ops.Sum(input=x, axis=last)))
