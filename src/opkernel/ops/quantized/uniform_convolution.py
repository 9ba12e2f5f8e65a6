"""UniformQuantizedConvolution and UniformQuantizedConvolutionHybrid.

Source: TensorFlow core/ops/uniform_quant_ops.cc,
core/kernels/uniform_quant_ops/uniform_quantized_convolution_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_ranks_at_most
from opkernel.ops.quantized.uniform_convolution_attrs import ConvolutionAttrs
from opkernel.ops.quantized.uniform_scales import (
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
from opkernel.ops.quantized.uniform_sums import PlacedConvolution
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

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
    if len(images.dims) != len(filters.dims):
        raise InvalidArgumentError("lhs and rhs must have same rank.")
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
    attrs=[
        "Tin: {qint8}",
        "Tout: {qint32}",
        *_ATTRS,
        *axis_attrs("lhs", "rhs", "output"),
    ],
    shape_fn=uniform_quantized_convolution_shape,
    doc="The convolution of quantised images with quantised filters, as integers of the output's scale.",
)
UNIFORM_QUANTIZED_CONVOLUTION_HYBRID = register_op(
    "UniformQuantizedConvolutionHybrid",
    inputs=["lhs: Tlhs", "rhs: Trhs", "rhs_scales: float", "rhs_zero_points: int32"],
    outputs=["output: Tout"],
    attrs=[
        "Tlhs: {float}",
        "Trhs: {qint8}",
        "Tout: {float}",
        *_ATTRS,
        *axis_attrs("rhs"),
    ],
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
        raise InvalidArgumentError(
            "lhs and rhs must have same dims, got shapes "
            f"{TensorShape(lhs.shape)} {TensorShape(rhs.shape)}"
        )
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
    UNIFORM_QUANTIZED_CONVOLUTION,
    device="CPU",
    types={"Tin": (_QINT8,), "Tout": (_QINT32,)},
    factory=True,
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
    device="CPU",
    types={"Tlhs": (_FLOAT,), "Trhs": (_QINT8,), "Tout": (_FLOAT,)},
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
