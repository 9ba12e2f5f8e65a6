"""Products of uniformly quantised tensors: UniformQuantizedConvolution, UniformQuantizedDot, and the hybrids of both.

Source: TensorFlow core/ops/uniform_quant_ops.cc,
core/kernels/uniform_quant_ops/uniform_quantized_convolution_ops.cc,
core/kernels/uniform_quant_ops/uniform_quantized_dot_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation, from_attrs
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_ranks_at_most
from opkernel.ops.input_checks import require, require_rank
from opkernel.ops.quantized.uniform import (
    SCALED_INPUTS,
    ScaledOperands,
    Scaling,
    axis_attrs,
    check_channel_scales,
    check_left_axis,
    check_positive,
    check_scales,
    dynamically_quantized,
    requantized,
)
from opkernel.ops.quantized.uniform_sums import (
    ConvolutionAttrs,
    PlacedConvolution,
    sums_in_float,
    wrapped_sums,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType, TensorShape

_QINT8, _QINT32, _FLOAT = DataType.DT_QINT8, DataType.DT_QINT32, DataType.DT_FLOAT


def uniform_quantized_convolution_shape(
    c: InferenceContext, tensors: Sequence[int] = (2, 3), channels: Sequence[int] = (4, 5, 6, 7)
) -> None:
    """Images and filters, and scales and zero points of whole tensors and of channels put out."""
    c.with_rank_at_least(c.input(0), 2)
    c.with_rank_at_least(c.input(1), 2)
    check_ranks_at_most(c, 0, *tensors)
    check_ranks_at_most(c, 1, *channels)
    _set_convolution(c, *channels[::2])


def _set_convolution(c: InferenceContext, *scales: int) -> None:
    """Windows are counted only where all of both shapes is known."""
    images, filters = c.input(0), c.input(1)
    if images.dims is None or filters.dims is None:
        known = filters if images.dims is None else images
        c.set_output(0, c.unknown_shape_of_rank(c.rank(known)))
        return
    require(len(images.dims) == len(filters.dims), "lhs and rhs must have same rank.")
    if not c.fully_defined(images) or not c.fully_defined(filters):
        c.set_output(0, c.unknown_shape_of_rank(len(images.dims)))
        return
    sizes = [[dim.value for dim in shape.dims] for shape in (images, filters) if shape.dims]
    attrs = {field.name: c.get_attr(field.name) for field in fields(ConvolutionAttrs)}
    convolution = ConvolutionAttrs(**attrs).for_rank(len(images.dims))
    convolution.check_groups(*sizes)
    channels = c.dim(filters, convolution.filters.channels_out)
    for i in scales:
        check_channel_scales(c, channels, i)
    first, *others = [c.input(i) for i in scales]
    for other in others:
        if other.dims and first.dims:
            c.merge(first.dims[0], other.dims[0])
    c.set_output(0, c.make_shape(convolution.output_shape(*sizes)))


_ATTRS = [
    "window_strides: list(int) = []",
    "padding: string",
    "explicit_padding: list(int) = []",
    "lhs_dilation: list(int) = []",
    "rhs_dilation: list(int) = []",
    "batch_group_count: int = 1",
    "feature_group_count: int = 1",
    "dimension_numbers: string = ''",
]


UNIFORM_QUANTIZED_CONVOLUTION = register_op(
    "UniformQuantizedConvolution",
    inputs=["lhs: Tin", "rhs: Tin", *SCALED_INPUTS],
    outputs=["output: Tout"],
    attrs=["Tin: {qint8}", "Tout: {qint32}", *_ATTRS, *axis_attrs("lhs", "rhs", "output")],
    shape_fn=uniform_quantized_convolution_shape,
    doc="The convolution of quantised images with quantised filters, as integers of the output's scale.",
)
UNIFORM_QUANTIZED_CONVOLUTION_HYBRID = register_op(
    "UniformQuantizedConvolutionHybrid(lhs: Tlhs, rhs: Trhs, rhs_scales: float, "
    "rhs_zero_points: int32) -> output: Tout",
    attrs=["Tlhs: {float}", "Trhs: {qint8}", "Tout: {float}", *_ATTRS, *axis_attrs("rhs")],
    shape_fn=partial(uniform_quantized_convolution_shape, tensors=(), channels=(2, 3)),
    doc="The convolution of images of floats, each of which is quantised first, with quantised filters.",
)


def _check_channel_axis(name: str, axis: int, channels: int) -> None:
    if axis not in (channels, -1):
        raise InvalidArgumentError(
            f"{name}_quantization_axis Attr must be -1 (per-tensor) or that of the channels put "
            f"out, {channels} (per-channel), got {axis}"
        )


def placed_convolution(attrs: ConvolutionAttrs, lhs: Any, rhs: Any) -> PlacedConvolution:
    """The convolution of two tensors; raises InvalidArgumentError if their shapes do not fit."""
    if lhs.ndim != rhs.ndim:
        shapes = f"{TensorShape(lhs.shape)} {TensorShape(rhs.shape)}"
        raise InvalidArgumentError(f"lhs and rhs must have same dims, got shapes {shapes}")
    return PlacedConvolution.of(attrs.for_rank(lhs.ndim), lhs.shape, rhs.shape)


def convolved(
    attrs: ConvolutionAttrs,
    scaling: Scaling,
    x: ScaledOperands,
    sums_of: Callable[[PlacedConvolution, Any, Any, Any], Any],
) -> tuple[PlacedConvolution, Any]:
    """The integers of the output, as `[batch, *space, channels]`.

    Args:
        attrs: those of windows and groups.
        scaling: the axes that are quantised, and the limits of the integers.
        x: the inputs of the op.
        sums_of: adds up the products, as `PlacedConvolution.sums` does.

    Raises:
        InvalidArgumentError: tensors, scales and zero points do not fit.
    """
    placed = placed_convolution(attrs, x.lhs, x.rhs)
    x.check_positive()
    filters, output = placed.convolution.filters, placed.convolution.output
    _check_channel_axis("rhs", scaling.rhs_axis, filters.channels_out)
    _check_channel_axis("output", scaling.output_axis, output.channels)
    check_scales(x.lhs.shape, -1, x.lhs_scales, x.lhs_zeros)
    check_scales(x.rhs.shape, scaling.rhs_axis, x.rhs_scales, x.rhs_zeros)
    check_scales(placed.output_shape, scaling.output_axis, x.scales, x.zeros)
    ratios = x.ratios()
    with np.errstate(all="ignore"):
        images = placed.images(x.lhs).astype(np.int32) - x.lhs_zeros
        weights = placed.filters(x.rhs).astype(np.int32) - x.rhs_zeros
        border = x.lhs_zeros.astype(np.int8).astype(np.int32) - x.lhs_zeros
        sums = sums_of(placed, images, weights, border)
    return placed, requantized(sums, ratios, x.zeros, scaling.limits)


@register_kernel(
    UNIFORM_QUANTIZED_CONVOLUTION, types={"Tin": _QINT8, "Tout": _QINT32}, factory=True
)
@from_attrs(attrs=ConvolutionAttrs, scaling=Scaling.of)
def uniform_quantized_convolution(
    *, attrs: ConvolutionAttrs, scaling: Scaling
) -> Callable[..., Any]:
    check_left_axis(scaling.lhs_axis)

    def kernel(*inputs: Any) -> Any:
        x = ScaledOperands(*inputs)
        placed, result = convolved(attrs, scaling, x, PlacedConvolution.sums)
        return placed.output(result)

    return kernel


@register_kernel(
    UNIFORM_QUANTIZED_CONVOLUTION_HYBRID,
    types={"Tlhs": _FLOAT, "Trhs": _QINT8, "Tout": _FLOAT},
    factory=True,
)
@from_attrs(attrs=ConvolutionAttrs)
def uniform_quantized_convolution_hybrid(
    *, attrs: ConvolutionAttrs, rhs_quantization_axis: int
) -> Callable[[Any, Any, Any, Any], Any]:
    def kernel(lhs: Any, rhs: Any, scales: Any, zeros: Any) -> Any:
        check_positive("rhs", scales)
        placed = placed_convolution(attrs, lhs, rhs)
        channels = placed.convolution.filters.channels_out
        _check_channel_axis("rhs", rhs_quantization_axis, channels)
        check_scales(rhs.shape, rhs_quantization_axis, scales, zeros)
        images = placed.images(lhs)
        rows = images.reshape(len(images), math.prod(images.shape[1:]))
        levels, image_scales = dynamically_quantized(rows)
        with np.errstate(all="ignore"):
            right = placed.filters(rhs).astype(np.int32) - zeros
            sums = placed.sums(levels.reshape(images.shape), right, np.int32(0))
            of_images = placed.by_output(image_scales)
            return placed.output(sums.astype(np.float32) * of_images * scales)

    return kernel


_CHANNELS = 1
"""The dimension of the second matrix, and of the product, that may have a scale for each column."""


def uniform_quantized_dot_shape(
    c: InferenceContext, tensors: Sequence[int] = (2, 3), columns: Sequence[int] = (4, 5, 6, 7)
) -> None:
    """Matrices, and scales and zero points of whole tensors and of columns of the product."""
    left, right = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    check_ranks_at_most(c, 0, *tensors)
    check_ranks_at_most(c, 1, *columns)
    c.merge(c.dim(left, 1), c.dim(right, 0))
    for i in columns[::2]:
        check_channel_scales(c, c.dim(right, 1), i)
    c.set_output(0, c.matrix(c.dim(left, 0), c.dim(right, 1)))


UNIFORM_QUANTIZED_DOT = register_op(
    "UniformQuantizedDot",
    inputs=["lhs: Tin", "rhs: Tin", *SCALED_INPUTS],
    outputs=["output: Tout"],
    attrs=["Tin: {qint8}", "Tout: {qint32}", *axis_attrs("lhs", "rhs", "output")],
    shape_fn=uniform_quantized_dot_shape,
    doc="The product of two quantised matrices, as integers of the output's scale.",
)
UNIFORM_QUANTIZED_DOT_HYBRID = register_op(
    "UniformQuantizedDotHybrid(lhs: Tlhs, rhs: Trhs, rhs_scales: float, rhs_zero_points: int32) "
    "-> output: Tout",
    attrs=["Tlhs: {float}", "Trhs: {qint8}", "Tout: {float}", *axis_attrs("rhs")],
    shape_fn=partial(uniform_quantized_dot_shape, tensors=(), columns=(2, 3)),
    doc="The product of a matrix of floats, each row of which is quantised first, and a quantised one.",
)


def _check_column_axis(name: str, axis: int) -> None:
    message = f"{name}_quantization_axis Attr must be 1 (per-channel) or -1 (per-tensor)"
    require(axis in (_CHANNELS, -1), f"{message}, got {axis}")


def _check_columns(matrix: tuple[int, int], scales: Array, zero_points: Array) -> None:
    """Scales are one or as many as columns; the attr that tells which is not asked."""
    check_scales(matrix, _CHANNELS if scales.ndim else -1, scales, zero_points)


def _product_shape(lhs: Array, rhs: Array) -> tuple[int, int]:
    for name, x in (("lhs", lhs), ("rhs", rhs)):
        require_rank(x, 2, f"{name} rank must be 2, got shape {{}}")
    if lhs.shape[1] != rhs.shape[0]:
        shapes = f"lhs shape {TensorShape(lhs.shape)} and rhs shape {TensorShape(rhs.shape)}"
        raise InvalidArgumentError(
            f"lhs.dim_size(1) and rhs.dim_size(0) must be equal, got {shapes}"
        )
    shape = (lhs.shape[0], rhs.shape[1])
    check_allocation(shape, DataType.DT_DOUBLE)
    return shape


def check_axes(scaling: Scaling) -> None:
    """Refuse other axes than those of columns."""
    check_left_axis(scaling.lhs_axis)
    _check_column_axis("rhs", scaling.rhs_axis)
    _check_column_axis("output", scaling.output_axis)


def ratios_of_product(x: ScaledOperands) -> Any:
    """What sums of products are multiplied by to be integers of the output.

    Raises:
        InvalidArgumentError: matrices, scales and zero points do not fit.
    """
    x.check_positive()
    shape = _product_shape(x.lhs, x.rhs)
    check_scales(x.lhs.shape, -1, x.lhs_scales, x.lhs_zeros)
    _check_columns(x.rhs.shape, x.rhs_scales, x.rhs_zeros)
    _check_columns(shape, x.scales, x.zeros)
    return x.ratios()


@register_kernel(UNIFORM_QUANTIZED_DOT, types={"Tin": _QINT8, "Tout": _QINT32}, factory=True)
@from_attrs(scaling=Scaling.of)
def uniform_quantized_dot(*, scaling: Scaling) -> Callable[..., Any]:
    """TensorFlow adds in float where rhs has one scale, and in int32 where each column has one."""
    check_axes(scaling)

    def kernel(*inputs: Any) -> Any:
        x = ScaledOperands(*inputs)
        ratios = ratios_of_product(x)
        with np.errstate(all="ignore"):
            left, right = x.lhs.astype(np.int32) - x.lhs_zeros, x.rhs.astype(np.int32) - x.rhs_zeros
            if x.rhs_scales.ndim:
                sums = wrapped_sums(np.matmul, left, right, len(right))
            else:
                sums = sums_in_float(left, right)
        return requantized(sums, ratios, x.zeros, scaling.limits)

    return kernel


@register_kernel(
    UNIFORM_QUANTIZED_DOT_HYBRID,
    types={"Tlhs": _FLOAT, "Trhs": _QINT8, "Tout": _FLOAT},
    factory=True,
)
def uniform_quantized_dot_hybrid(
    *, rhs_quantization_axis: int
) -> Callable[[Any, Any, Any, Any], Any]:
    _check_column_axis("rhs", rhs_quantization_axis)

    def kernel(lhs: Any, rhs: Any, scales: Any, zeros: Any) -> Any:
        _product_shape(lhs, rhs)
        _check_columns(rhs.shape, scales, zeros)
        check_positive("rhs", scales)
        left, left_scales = dynamically_quantized(lhs)
        with np.errstate(all="ignore"):
            right = rhs.astype(np.int32) - zeros
            sums = wrapped_sums(np.matmul, left, right, len(right)).astype(np.float32)
            return sums * left_scales[:, np.newaxis] * scales

    return kernel
