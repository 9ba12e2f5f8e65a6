"""Quantisation there and back.

A range whose ends are exchanged is not refused, since it is known only when the program runs.

Source: TensorFlow compiler/tf2xla/kernels/quantize_and_dequantize_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.ops.nn.quantize_and_dequantize import Integers
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.register_kernel import register_xla_kernel


def _check_axis(axis: int, tensor: Any) -> None:
    if axis < -1:
        raise InvalidArgumentError(f"Axis must be at least -1. Found {axis}")
    if axis >= tensor.ndim:
        raise InvalidArgumentError(
            f"Shape must be at least rank {axis + 1} but is rank {tensor.ndim}"
        )


def _range_of(tensor: Any, axis: int) -> tuple[Any, Any]:
    """The range of the values of each slice; NaN counts for nothing."""
    others = tuple(i for i in range(tensor.ndim) if i != axis)
    is_nan, infinity = jnp().isnan(tensor), tensor.dtype.type(np.inf)
    low = jnp().where(is_nan, infinity, tensor).min(axis=others, keepdims=True)
    high = jnp().where(is_nan, -infinity, tensor).max(axis=others, keepdims=True)
    return low, high


def _given_range(tensor: Any, low: Any, high: Any, axis: int) -> tuple[Any, Any]:
    expected = () if axis == -1 else (tensor.shape[axis],)
    for name, end in (("input_min", low), ("input_max", high)):
        if end.size != 1 if axis == -1 else end.shape != expected:
            raise InvalidArgumentError(
                f"{name} has the shape {list(end.shape)}, and {list(expected)} is needed"
            )
    shape = [-1 if i == axis else 1 for i in range(tensor.ndim)]
    return low.reshape(shape), high.reshape(shape)


def _round_trip(
    tensor: Any,
    given: tuple[Any, Any] | None,
    axis: int,
    integers: tuple[Any, Any],
    half_up: bool = False,
) -> Any:
    """Values rounded: one end of the range sets the scale, and the other end moves.

    Those beyond a given range become its ends.
    """
    if not tensor.size:
        return tensor
    xp, (lowest, highest) = jnp(), integers
    low, high = _given_range(tensor, *given, axis) if given else _range_of(tensor, axis)
    unlimited = np.finfo(tensor.dtype).max
    from_low = xp.where(lowest * low > 0, lowest / low, unlimited)
    from_high = xp.where(highest * high > 0, highest / high, unlimited)
    by_low = from_low < from_high
    step = xp.where(by_low, low / lowest, high / highest)
    if given:
        tensor = xp.minimum(tensor, xp.where(by_low, highest * step, high))
        tensor = xp.maximum(tensor, xp.where(by_low, low, lowest * step))
    scaled = tensor * xp.where(by_low, from_low, from_high)
    rounded = xp.floor(scaled + tensor.dtype.type(0.5)) if half_up else xp.rint(scaled)
    return rounded * step


@register_xla_kernel(["QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"], factory=True)
def quantize_and_dequantize(
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int,
) -> Callable[[Any, Any, Any], Any]:
    integers = Integers.of(num_bits, signed_input, narrow_range)

    def kernel(tensor: Any, input_min: Any, input_max: Any) -> Any:
        _check_axis(axis, tensor)
        given = (input_min, input_max) if range_given else None
        ends = tensor.dtype.type(integers.low), tensor.dtype.type(integers.high)
        return _round_trip(tensor, given, axis, ends, round_mode == "HALF_UP")

    return kernel


@register_xla_kernel("QuantizeAndDequantizeV3", factory=True)
def quantize_and_dequantize_v3(
    *, signed_input: bool, range_given: bool, narrow_range: bool, axis: int
) -> Callable[[Any, Any, Any, Any], Any]:
    """The number of bits may be known only when the program runs; it is not refused then."""

    def kernel(tensor: Any, input_min: Any, input_max: Any, num_bits: Any) -> Any:
        _check_axis(axis, tensor)
        if num_bits.ndim:
            raise InvalidArgumentError(
                "Invalid shape. The `num_bits` tensor should be a scalar. "
                f"Got dimensions: {num_bits.ndim}"
            )
        given = (input_min, input_max) if range_given else None
        return _round_trip(tensor, given, axis, ends(tensor.dtype, num_bits))

    def ends(dtype: Any, num_bits: Any) -> tuple[Any, Any]:
        count = jnp().exp2((num_bits - int(signed_input)).astype(dtype))
        return (narrow_range - count if signed_input else dtype.type(0)), count - 1

    return kernel
