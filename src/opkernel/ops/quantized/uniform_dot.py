"""UniformQuantizedDot and UniformQuantizedDotHybrid: products of matrices of int8.

Source: TensorFlow core/ops/uniform_quant_ops.cc,
core/kernels/uniform_quant_ops/uniform_quantized_dot_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation, from_attrs
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_ranks_at_most
from opkernel.ops.quantized.conversion import Array
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
from opkernel.ops.quantized.uniform_sums import sums_in_float, wrapped_sums
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

_QINT8, _QINT32, _FLOAT = DataType.DT_QINT8, DataType.DT_QINT32, DataType.DT_FLOAT
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
    attrs=[
        "Tin: {qint8}",
        "Tout: {qint32}",
        *axis_attrs("lhs", "rhs", "output"),
    ],
    shape_fn=uniform_quantized_dot_shape,
    doc="The product of two quantised matrices, as integers of the output's scale.",
)
UNIFORM_QUANTIZED_DOT_HYBRID = register_op(
    "UniformQuantizedDotHybrid",
    inputs=["lhs: Tlhs", "rhs: Trhs", "rhs_scales: float", "rhs_zero_points: int32"],
    outputs=["output: Tout"],
    attrs=["Tlhs: {float}", "Trhs: {qint8}", "Tout: {float}", *axis_attrs("rhs")],
    shape_fn=partial(uniform_quantized_dot_shape, tensors=(), columns=(2, 3)),
    doc="The product of a matrix of floats, each row of which is quantised first, and a quantised one.",
)


def _check_channel_axis(name: str, axis: int) -> None:
    if axis not in (_CHANNELS, -1):
        raise InvalidArgumentError(
            f"{name}_quantization_axis Attr must be 1 (per-channel) or -1 (per-tensor), got {axis}"
        )


def _check_columns(matrix: tuple[int, int], scales: Array, zero_points: Array) -> None:
    """Scales are one or as many as columns; the attr that tells which is not asked."""
    check_scales(matrix, _CHANNELS if scales.ndim else -1, scales, zero_points)


def _product_shape(lhs: Array, rhs: Array) -> tuple[int, int]:
    for name, x in (("lhs", lhs), ("rhs", rhs)):
        if x.ndim != 2:
            raise InvalidArgumentError(f"{name} rank must be 2, got shape {TensorShape(x.shape)}")
    if lhs.shape[1] != rhs.shape[0]:
        raise InvalidArgumentError(
            "lhs.dim_size(1) and rhs.dim_size(0) must be equal, got lhs shape "
            f"{TensorShape(lhs.shape)} and rhs shape {TensorShape(rhs.shape)}"
        )
    shape = (lhs.shape[0], rhs.shape[1])
    check_allocation(shape, DataType.DT_DOUBLE)
    return shape


def check_axes(scaling: Scaling) -> None:
    """Refuse other axes than those of columns."""
    check_left_axis(scaling.lhs_axis)
    _check_channel_axis("rhs", scaling.rhs_axis)
    _check_channel_axis("output", scaling.output_axis)


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


@register_kernel(
    UNIFORM_QUANTIZED_DOT,
    device="CPU",
    types={"Tin": (_QINT8,), "Tout": (_QINT32,)},
    factory=True,
)
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
    device="CPU",
    types={"Tlhs": (_FLOAT,), "Trhs": (_QINT8,), "Tout": (_FLOAT,)},
    factory=True,
)
def uniform_quantized_dot_hybrid(
    *, rhs_quantization_axis: int
) -> Callable[[Any, Any, Any, Any], Any]:
    _check_channel_axis("rhs", rhs_quantization_axis)

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
