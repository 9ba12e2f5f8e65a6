"""Activations, dropout and normalization.

Source: TensorFlow python/ops/nn_ops.py, nn_impl.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.random.distributions import uniform
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    like,
    number_like,
    on_last_axis,
    shape_of,
    static_shape,
    static_value,
)
from opkernel.types import DataType


@composed
def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Any:
    """`x` where it is positive, and `alpha * x` where not. Integers become float32."""
    x = convert(features)
    if dtype_of(x).is_integer:
        x = cast_to(x, DataType.DT_FLOAT)
    if static_value(alpha) is None:
        return raw_ops.Maximum(x=raw_ops.Mul(x=alpha, y=x), y=x)
    return raw_ops.LeakyRelu(features=x, alpha=float(alpha))


@composed
def crelu(features: TensorLike, axis: int = -1, name: str | None = None) -> Any:
    """Relu of `x` and relu of `-x`, joined along an axis."""
    x = convert(features)
    return raw_ops.Relu(features=raw_ops.ConcatV2(values=[x, raw_ops.Neg(x=x)], axis=axis))


@composed
def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Any:
    """`x` times the probability that a standard normal number is less; by tanh if `approximate`.

    Raises:
        ValueError: the elements are not floating point.
    """
    x = convert(features)
    if not dtype_of(x).is_floating:
        raise ValueError(f"gelu takes floating-point tensors, and got {dtype_of(x).tf_name}")
    half, one = number_like(x, 0.5), number_like(x, 1.0)
    if approximate:
        cube = raw_ops.Mul(x=number_like(x, 0.044715), y=raw_ops.Pow(x=x, y=number_like(x, 3)))
        inner = raw_ops.Mul(x=number_like(x, math.sqrt(2 / math.pi)), y=raw_ops.AddV2(x=x, y=cube))
        bent = raw_ops.Tanh(x=inner)
    else:
        bent = raw_ops.Erf(x=raw_ops.RealDiv(x=x, y=number_like(x, math.sqrt(2))))
    return raw_ops.Mul(x=raw_ops.Mul(x=half, y=x), y=raw_ops.AddV2(x=one, y=bent))


def silu(features: TensorLike, beta: TensorLike = 1.0) -> Any:
    """`x * sigmoid(beta * x)`."""
    x = convert(features)
    scaled = x if static_value(beta) == 1 else raw_ops.Mul(x=like(beta, dtype_of(x)), y=x)
    return raw_ops.Mul(x=x, y=raw_ops.Sigmoid(x=scaled))


@composed
def dropout(
    x: TensorLike,
    rate: TensorLike,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """A tensor with elements dropped at random (0), and the others scaled so that their mean stays.

    Args:
        x: floating point.
        rate: the probability of being dropped: a number of Python from 0 to 1, without 1, or a scalar.
        noise_shape: the shape of what is drawn, which is broadcast to that of `x`; its shape if None.
        seed: a seed beside the global one.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: `rate` is out of range, or the elements are not floating point.
    """
    values = convert(x)
    dtype = dtype_of(values)
    number = static_value(rate)
    if number is not None and not 0 <= number < 1:
        raise ValueError(f"rate is from 0 to 1, without 1, and not {number}")
    if not dtype.is_floating:
        raise ValueError(f"dropout takes floating-point tensors, and got {dtype.tf_name}")
    if number is not None and number == 0:
        return values
    part = cast_to(like(rate, dtype), dtype)
    one = number_like(values, 1.0)
    scale = raw_ops.RealDiv(x=one, y=raw_ops.Sub(x=one, y=part))
    shape = shape_of(values) if noise_shape is None else _noise_shape(values, noise_shape)
    drawn = uniform(shape, seed=seed, dtype=dtype)
    kept = raw_ops.GreaterEqual(x=drawn, y=part)
    scaled = raw_ops.Mul(x=values, y=scale)
    return raw_ops.SelectV2(condition=kept, t=scaled, e=number_like(values, 0.0))


def _noise_shape(x: Any, noise_shape: Any) -> Any:
    """A shape in which None stands for the size of the tensor."""
    if not isinstance(noise_shape, list | tuple) or None not in noise_shape:
        return noise_shape
    sizes = static_shape(x) or []
    return [
        size if wanted is None else wanted for wanted, size in zip(noise_shape, sizes, strict=True)
    ]


@composed
def bias_add(
    value: TensorLike, bias: TensorLike, data_format: str | None = None, name: str | None = None
) -> Any:
    """A tensor plus a number for each channel.

    Args:
        value: the tensor; channels are its last axis, or the second with "NC...".
        bias: a vector of the same type.
        data_format: None or "N...C", or "NC...".
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: `data_format` is another.
    """
    if data_format is not None and not data_format.startswith("N"):
        raise ValueError(f'data_format is "N...C" or "NC...", and not {data_format!r}')
    x = convert(value)
    is_first = data_format is not None and data_format.startswith("NC")
    return raw_ops.BiasAdd(
        value=x, bias=like(bias, dtype_of(x)), data_format="NCHW" if is_first else "NHWC"
    )


@composed
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None,
    scale: TensorLike | None,
    variance_epsilon: float,
    name: str | None = None,
) -> Any:
    """`scale * (x - mean) / sqrt(variance + variance_epsilon) + offset`.

    Args:
        x: the tensor.
        mean: the mean; this and the others are broadcast to the shape of `x`.
        variance: the variance.
        offset: what is added; nothing if None.
        scale: the factor; 1 if None.
        variance_epsilon: a small number beside the variance.
        name: a name for the scope of nodes in a graph.
    """
    values, spread = convert(x), convert(variance)
    wide = like(mean, dtype_of(spread))
    least = number_like(spread, variance_epsilon)
    factor = raw_ops.Rsqrt(x=raw_ops.AddV2(x=spread, y=least))
    if scale is not None:
        factor = raw_ops.Mul(x=factor, y=like(scale, dtype_of(spread)))
    moved = raw_ops.Mul(x=wide, y=factor)
    shift = (
        raw_ops.Neg(x=moved)
        if offset is None
        else raw_ops.Sub(x=like(offset, dtype_of(spread)), y=moved)
    )
    dtype = dtype_of(values)
    product = raw_ops.Mul(x=values, y=cast_to(factor, dtype))
    return raw_ops.AddV2(x=product, y=cast_to(shift, dtype))


@composed
def batch_norm_with_global_normalization(
    input: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    beta: TensorLike,
    gamma: TensorLike,
    variance_epsilon: float,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Any:
    """batch_normalization with `beta` as the offset, and `gamma` as the scale if that is wanted."""
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


def isotonic_regression(
    inputs: TensorLike, decreasing: bool = True, axis: int = -1
) -> tuple[Any, Any]:
    """The nearest decreasing (or increasing) sequence along an axis, by the sum of squares.

    Args:
        inputs: numbers.
        decreasing: whether the result decreases.
        axis: the axis.

    Returns:
        The sequence, and the number of each element's segment, in which all are equal.
    """

    def solved(x: Any) -> tuple[Any, Any]:
        given = x if decreasing else raw_ops.Neg(x=x)
        shape = raw_ops.Shape(input=given)
        rows = raw_ops.Pack(values=[np.int32(-1), shape[-1]])
        found, parts = raw_ops.IsotonicRegression(
            input=raw_ops.Reshape(tensor=given, shape=rows), output_dtype=_isotonic_type(given)
        )
        found = raw_ops.Reshape(tensor=found, shape=shape)
        segments = raw_ops.Reshape(tensor=parts, shape=shape)
        return found if decreasing else raw_ops.Neg(x=found), segments

    output, segments = on_last_axis(convert(inputs), axis, solved)
    return output, segments


def _isotonic_type(x: Any) -> DataType:
    dtype = dtype_of(x)
    if dtype.is_floating:
        return dtype
    return DataType.DT_FLOAT if dtype.size <= 2 else DataType.DT_DOUBLE
