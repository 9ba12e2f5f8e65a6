"""Quantisation there and back.

A range whose ends are exchanged is not refused, since it is known only when the program runs.

StochasticCastToInt: numbers rounded up as often as they are near the larger integer.

Source: TensorFlow compiler/tf2xla/kernels/quantize_and_dequantize_op.cc,
compiler/tf2xla/kernels/stochastic_cast_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.ops.nn.quantize_and_dequantize import Integers, Range, given_range, rounded
from opkernel.ops.random.distributions import uniforms_of_words
from opkernel.ops.random.inputs import (
    check_philox,
    key_and_counter,
)
from opkernel.ops.random.stochastic_cast import StochasticRounding
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.philox import PhiloxStream
from opkernel.xla.register_kernel import register_xla_kernel


def _check_axis(axis: int, tensor: Any) -> None:
    if axis < -1:
        raise InvalidArgumentError(f"Axis must be at least -1. Found {axis}")
    if axis >= tensor.ndim:
        raise InvalidArgumentError(
            f"Shape must be at least rank {axis + 1} but is rank {tensor.ndim}"
        )


def _range_of(tensor: Any, axis: int) -> Range:
    """The range of the values of each slice; NaN counts for nothing."""
    others = tuple(i for i in range(tensor.ndim) if i != axis)
    is_nan, infinity = jnp().isnan(tensor), tensor.dtype.type(np.inf)
    low = jnp().where(is_nan, infinity, tensor).min(axis=others, keepdims=True)
    high = jnp().where(is_nan, -infinity, tensor).max(axis=others, keepdims=True)
    return Range(low, high)


def _round_trip(
    tensor: Any,
    given: tuple[Any, Any] | None,
    axis: int,
    integers: tuple[Any, Any],
    half_up: bool = False,
) -> Any:
    """Values rounded; those beyond a given range become its ends."""
    if not tensor.size:
        return tensor
    limited = given is not None
    ends = given_range(tensor, *given, axis) if given is not None else _range_of(tensor, axis)
    return rounded(tensor, ends, integers, jnp(), limited=limited, half_up=half_up)


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
        ends = integers.of_type(tensor.dtype)
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


@register_xla_kernel("StochasticCastToInt", compile_time_constants=["alg"], factory=True)
def stochastic_cast_to_int(*, Tin: DataType, Tout: DataType) -> Callable[..., Any]:
    """Numbers rounded up as often as they are near the larger integer."""
    rounding = StochasticRounding(Tin, Tout)

    def rounded(input: Any, key: Any, counter: Any, alg: Any) -> Any:
        check_philox(key_and_counter(key, counter, alg))
        # TensorFlow's kernel takes the counter for the key, and the key for the counter
        stream = PhiloxStream(counter[0], jnp().uint64(0), key[0])
        flat = input.reshape(-1)
        inside = rounding.is_rounded(flat, jnp())
        drawn = _drawn(stream, inside, rounding.whole(flat.size), rounding.packet, Tin)
        return rounding.rounded(flat, inside, drawn, jnp()).reshape(input.shape)

    return rounded


def _drawn(stream: PhiloxStream, inside: Any, whole: int, packet: int, dtype: DataType) -> Any:
    """A uniform number for each number: one block for each packet, one for each further fraction."""
    xp, packets = jnp(), whole // packet
    places = packets + xp.cumsum(inside[whole:]) - 1
    rest = uniforms_of_words(stream.blocks_at(places.astype("uint64")), dtype)[:, 0]
    if not packets:
        return rest
    uniforms = uniforms_of_words(stream.blocks(packets), dtype)
    first = xp.tile(uniforms, packet // uniforms.shape[1]).reshape(-1)
    return xp.concatenate([first, rest])
