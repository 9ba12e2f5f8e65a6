"""Quantisation: there and back in floating point, and tensors of quantised types.

A range whose ends are exchanged is not refused, since it is known only when the program runs. StochasticCastToInt rounds
numbers up as often as they are near the larger integer. Quantised tensors (Dequantize, UniformQuantize and their kin)
consist of the same integers as on the CPU.

Source: TensorFlow compiler/tf2xla/kernels/quantize_and_dequantize_op.cc, stochastic_cast_op.cc;
core/kernels/uniform_quant_ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import from_attrs
from opkernel.ops.quantized.quantize import dequantize_op
from opkernel.ops.quantized.quantize_and_dequantize import Integers, Range, given_range, rounded
from opkernel.ops.quantized.uniform import (
    ScaledOperands,
    Scaling,
    check_left_axis,
    requantized,
    uniform_dequantize,
    uniform_quantize,
    uniform_quantized_add,
    uniform_quantized_clip_by_value,
    uniform_requantize,
)
from opkernel.ops.quantized.uniform_products import check_axes, convolved, ratios_of_product
from opkernel.ops.quantized.uniform_sums import ConvolutionAttrs, PlacedConvolution
from opkernel.ops.random.distributions import uniforms_of_words
from opkernel.ops.random.inputs import check_philox, key_and_counter
from opkernel.ops.random.stochastic_cast import StochasticRounding
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.kernels.stateless_random import PhiloxStream
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.traced_array import TracedArray, traced


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


_Kernel = Callable[..., Any]
_SCALES = ["scales", "zero_points"]
_OF_BOTH = [f"{side}_{name}" for side in ("input", "output") for name in _SCALES]
_OF_PRODUCTS = [f"{side}_{name}" for side in ("lhs", "rhs", "output") for name in _SCALES]


for _op, _make, _constants in (
    ("UniformQuantize", uniform_quantize, _SCALES),
    ("UniformDequantize", uniform_dequantize, _SCALES),
    ("UniformRequantize", uniform_requantize, _OF_BOTH),
    ("UniformQuantizedAdd", uniform_quantized_add, _OF_PRODUCTS),
    ("UniformQuantizedClipByValue", uniform_quantized_clip_by_value, _SCALES),
):
    register_xla_kernel(_op, compile_time_constants=_constants, factory=True)(traced(_make))


@register_xla_kernel("Dequantize", factory=True)
def dequantize(*, mode: str, narrow_range: bool, axis: int, dtype: DataType) -> _Kernel:
    if mode == "MIN_FIRST":
        raise UnimplementedError("Dequantize is not compiled with the mode MIN_FIRST")
    make = traced(dequantize_op)
    return make(mode=mode, narrow_range=narrow_range, axis=axis, dtype=dtype)


@register_xla_kernel("UniformQuantizedDot", compile_time_constants=_OF_PRODUCTS, factory=True)
@from_attrs(scaling=Scaling.of)
def uniform_quantized_dot(*, scaling: Scaling) -> _Kernel:
    """Sums are exact; on the CPU, those beyond 2**24 may be rounded to float."""
    check_axes(scaling)

    def kernel(*inputs: Any) -> Any:
        x = ScaledOperands(*inputs)
        ratios = ratios_of_product(x)
        left, right = x.lhs.astype("int32") - x.lhs_zeros, x.rhs.astype("int32") - x.rhs_zeros
        sums = TracedArray(jnp().matmul(left, right))
        return requantized(sums, ratios, x.zeros, scaling.limits).value

    return kernel


@register_xla_kernel(
    "UniformQuantizedConvolution", compile_time_constants=_OF_PRODUCTS, factory=True
)
@from_attrs(attrs=ConvolutionAttrs, scaling=Scaling.of)
def uniform_quantized_convolution(*, attrs: ConvolutionAttrs, scaling: Scaling) -> _Kernel:
    check_left_axis(scaling.lhs_axis)
    if attrs.batch_group_count > 1 and attrs.feature_group_count > 1:
        raise UnimplementedError("XLA has no convolutions with groups of batches and of features")

    def kernel(*inputs: Any) -> Any:
        placed, result = convolved(attrs, scaling, ScaledOperands(*inputs), _sums)
        return result.value.transpose(np.argsort(placed.convolution.output_order))

    return kernel


def _sums(placed: PlacedConvolution, images: Any, filters: Any, border: Any) -> TracedArray:
    """The products of windows and filters, added up in int32; `border` surrounds the images."""
    convolution, rank = placed.convolution, images.ndim
    space = tuple(range(1, rank - 1))
    room = [
        (before, after, dilation - 1)
        for (before, after), dilation in zip(
            placed.padding, convolution.image_dilation, strict=True
        )
    ]
    nothing = (0, 0, 0)
    sums = lax().conv_general_dilated(
        lax().pad(images, jnp().asarray(border), [nothing, *room, nothing]),
        filters,
        convolution.strides,
        [(0, 0)] * len(space),
        rhs_dilation=convolution.filter_dilation,
        dimension_numbers=lax().ConvDimensionNumbers(
            (0, rank - 1, *space), (rank - 1, rank - 2, *range(rank - 2)), (0, rank - 1, *space)
        ),
        feature_group_count=convolution.attrs.feature_group_count,
        batch_group_count=convolution.attrs.batch_group_count,
        preferred_element_type=np.int32,
    )
    return TracedArray(sums)
