"""Quantised tensors: Dequantize, UniformQuantize and their kin. The integers that they consist of are those of the CPU.

Source: TensorFlow compiler/tf2xla/kernels/quantize_and_dequantize_op.cc; core/kernels/uniform_quant_ops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import UnimplementedError
from opkernel.kernel import from_attrs
from opkernel.ops.quantized.quantize import dequantize_op
from opkernel.ops.quantized.uniform import (
    uniform_dequantize,
    uniform_quantize,
    uniform_quantized_add,
    uniform_quantized_clip_by_value,
    uniform_requantize,
)
from opkernel.ops.quantized.uniform_convolution import convolved
from opkernel.ops.quantized.uniform_convolution_attrs import ConvolutionAttrs
from opkernel.ops.quantized.uniform_dot import check_axes, ratios_of_product
from opkernel.ops.quantized.uniform_scales import (
    ScaledOperands,
    Scaling,
    check_left_axis,
    requantized,
)
from opkernel.ops.quantized.uniform_sums import PlacedConvolution
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.traced_array import TracedArray, value_of

_Kernel = Callable[..., Any]
_SCALES = ["scales", "zero_points"]
_OF_PRODUCTS = [f"{side}_{name}" for side in ("lhs", "rhs", "output") for name in _SCALES]


def _traced(make: Callable[..., _Kernel]) -> Callable[..., _Kernel]:
    """The maker of kernels that run the CPU's on values of the program."""

    @functools.wraps(make)
    def make_traced(**attrs: Any) -> _Kernel:
        kernel = make(**attrs)

        def run(*inputs: Any) -> Any:
            arrays = (one if isinstance(one, np.ndarray) else TracedArray(one) for one in inputs)
            return value_of(kernel(*arrays))

        return run

    return make_traced


for _op, _make, _constants in (
    ("UniformQuantize", uniform_quantize, _SCALES),
    ("UniformDequantize", uniform_dequantize, _SCALES),
    (
        "UniformRequantize",
        uniform_requantize,
        [f"{side}_{name}" for side in ("input", "output") for name in _SCALES],
    ),
    ("UniformQuantizedAdd", uniform_quantized_add, _OF_PRODUCTS),
    ("UniformQuantizedClipByValue", uniform_quantized_clip_by_value, _SCALES),
):
    register_xla_kernel(_op, compile_time_constants=_constants, factory=True)(_traced(_make))


@register_xla_kernel("Dequantize", factory=True)
def dequantize(*, mode: str, narrow_range: bool, axis: int, dtype: DataType) -> _Kernel:
    if mode == "MIN_FIRST":
        raise UnimplementedError("Dequantize is not compiled with the mode MIN_FIRST")
    make = _traced(dequantize_op)
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
        feature_group_count=convolution.feature_groups,
        batch_group_count=convolution.batch_groups,
        preferred_element_type=np.int32,
    )
    return TracedArray(sums)
