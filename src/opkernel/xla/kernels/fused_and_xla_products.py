"""Products: fused with a bias or a normalisation and an activation; and XlaDot, XlaConv, XlaEinsum.

What comes after a fused product is that of the CPU's kernels; the compiler fuses it again. XLA's own products have
their dimensions given by number.

Source: TensorFlow compiler/tf2xla/kernels/conv_ops.cc, xla_dot_op.cc, xla_conv_op.cc, einsum_op.cc;
core/kernels/matmul_op_fused.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.ops.declared.xla import dimension_numbers as fields_of
from opkernel.ops.math.matmul import check_matrices
from opkernel.ops.nn.conv.kernels import conv2d_windows, convolution
from opkernel.ops.nn.fused_matmul import (
    Fusion,
    conv2d_fusion,
    depthwise_fusion,
    finished,
    matmul_fusion,
)
from opkernel.ops.nn.windows import Windows, check_rank
from opkernel.ops.registration import NARROW_FLOATS
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.kernels.convolutions import convolved, depthwise_convolved
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.traced_array import TracedArray


def _finished(product: Any, fusion: Fusion, args: list[Any]) -> Any:
    """A product with what is fused with it."""
    arrays: Any = [TracedArray(array) for array in (*args, product)]
    result: Any = finished(arrays.pop(), fusion.epilogue(arrays, product.shape))
    return result.value


@register_xla_kernel("_FusedConv2D", compile_time_constants=["host_args"], factory=True)
@from_attrs(fusion=conv2d_fusion)
def fused_conv2d(
    *,
    strides: list[int],
    padding: str,
    explicit_paddings: list[int],
    data_format: str,
    filter_format: str,
    dilations: list[int],
    fusion: Fusion,
) -> Callable[[Any, Any, list[Any], list[Any]], Any]:
    if data_format != "NHWC" or filter_format != "HWIO":
        raise InvalidArgumentError(
            f"_FusedConv2D is compiled for NHWC and HWIO, got {data_format} and {filter_format}"
        )
    windows = conv2d_windows(strides, dilations, padding, explicit_paddings, data_format)

    def fused(x: Any, filters: Any, args: list[Any], host_args: list[Any]) -> Any:
        check_rank("input", x, 4)
        check_rank("filter", filters, 4)
        product = convolution(x, filters, windows, convolved)
        return _finished(product, fusion, args) if product.size else product

    return fused


@register_xla_kernel("_FusedDepthwiseConv2dNative", factory=True)
@from_attrs(fusion=depthwise_fusion, windows=partial(conv2d_windows, explicit_paddings=()))
def fused_depthwise_conv2d(
    *, fusion: Fusion, windows: Windows
) -> Callable[[Any, Any, list[Any]], Any]:
    """Half and bfloat16 are computed in float."""

    def fused(x: Any, filters: Any, args: list[Any]) -> Any:
        dtype = np.float32 if x.dtype.itemsize < 4 else x.dtype
        images, weights, *others = (array.astype(dtype) for array in (x, filters, *args))
        product = depthwise_convolved(images, weights, windows)
        return _finished(product, fusion, others) if product.size else product

    return fused


@register_xla_kernel("_FusedMatMul", factory=True)
@from_attrs(fusion=matmul_fusion)
def fused_matmul(
    *, T: DataType, transpose_a: bool, transpose_b: bool, fusion: Fusion
) -> Callable[[Any, Any, list[Any]], Any]:
    """Half and bfloat16 are computed in float."""
    dtype = np.float32 if T in NARROW_FLOATS else T.numpy_dtype

    def fused(a: Any, b: Any, args: list[Any]) -> Any:
        check_matrices(a, b, transpose_a, transpose_b)
        left, right, *others = (array.astype(dtype) for array in (a, b, *args))
        product = jnp().matmul(left.T if transpose_a else left, right.T if transpose_b else right)
        if not left.size:  # nothing is added to the product of empty matrices
            return product
        return _finished(product, fusion, others)

    return fused


_Product = Callable[..., Any]


def _precision(config: str) -> Any:
    """The precision that a PrecisionConfig asks for, of each operand."""
    asked = fields_of(config, "precision config")[1]
    return tuple(map(lax().Precision, asked)) if len(asked) == 2 else None


def _alike(lhs: Any, rhs: Any, dtype: Any) -> tuple[Any, Any]:
    """Operands of one type: that of the result, if theirs differ."""
    return (lhs, rhs) if lhs.dtype == rhs.dtype else (lhs.astype(dtype), rhs.astype(dtype))


def _dot(numbers: str, config: str) -> _Product:
    fields = fields_of(numbers, "dimension numbers")
    contracted, batched = (fields[1], fields[2]), (fields[3], fields[4])
    precision = _precision(config)

    def dot(lhs: Any, rhs: Any, dtype: Any) -> Any:
        left, right = _alike(lhs, rhs, dtype)
        return lax().dot_general(
            left, right, (contracted, batched), precision=precision, preferred_element_type=dtype
        )

    return dot


@register_xla_kernel("XlaDot", factory=True)
def xla_dot(*, dimension_numbers: str, precision_config: str) -> _Product:
    dot = _dot(dimension_numbers, precision_config)
    return lambda lhs, rhs: dot(lhs, rhs, lhs.dtype)


@register_xla_kernel("XlaDotV2", factory=True)
def xla_dot_v2(
    *, dimension_numbers: str, precision_config: str, preferred_element_type: DataType
) -> _Product:
    dot = _dot(dimension_numbers, precision_config)
    return lambda lhs, rhs: dot(lhs, rhs, preferred_element_type.numpy_dtype)


@register_xla_kernel("XlaEinsum", factory=True)
def xla_einsum(*, equation: str) -> _Product:
    return lambda a, b: jnp().einsum(equation, a, b)


def _layout(numbers: str) -> Any:
    """The ConvDimensionNumbers of a ConvolutionDimensionNumbers; a number that is 0 is not written there."""
    fields = fields_of(numbers, "dimension numbers")
    kernel_in, kernel_out, batch, feature, out_batch, out_feature = (
        fields[number][0] if fields[number] else 0 for number in (3, 4, 7, 8, 9, 10)
    )
    return lax().ConvDimensionNumbers(
        lhs_spec=(batch, feature, *fields[11]),
        rhs_spec=(kernel_out, kernel_in, *fields[6]),
        out_spec=(out_batch, out_feature, *fields[12]),
    )


class _Window(NamedTuple):
    """The inputs of a convolution that are known when it is compiled."""

    window_strides: Any
    padding: Any
    lhs_dilation: Any
    rhs_dilation: Any
    feature_group_count: Any


def _conv(numbers: str, config: str, batch_groups: int) -> _Product:
    layout, precision = _layout(numbers), _precision(config)

    def conv(dtype: Any, lhs: Any, rhs: Any, window: _Window) -> Any:
        padding = window.padding
        if padding.shape != (lhs.ndim - 2, 2):
            raise InvalidArgumentError(
                f"padding must have two numbers for each of {lhs.ndim - 2} spatial dimensions, its shape "
                f"is {list(padding.shape)}"
            )
        return lax().conv_general_dilated(
            *_alike(lhs, rhs, dtype),
            window.window_strides.tolist(),
            padding.tolist(),
            window.lhs_dilation.tolist(),
            window.rhs_dilation.tolist(),
            layout,
            feature_group_count=int(window.feature_group_count),
            batch_group_count=batch_groups,
            precision=precision,
            preferred_element_type=dtype,
        )

    return conv


@register_xla_kernel("XlaConv", compile_time_constants=_Window._fields, factory=True)
def xla_conv(*, dimension_numbers: str, precision_config: str) -> _Product:
    conv = _conv(dimension_numbers, precision_config, 1)
    return lambda lhs, rhs, *window: conv(lhs.dtype, lhs, rhs, _Window(*window))


@register_xla_kernel("XlaConvV2", compile_time_constants=_Window._fields, factory=True)
def xla_conv_v2(
    *,
    dimension_numbers: str,
    precision_config: str,
    preferred_element_type: DataType,
    batch_group_count: int,
) -> _Product:
    conv = _conv(dimension_numbers, precision_config, batch_group_count)
    dtype = preferred_element_type.numpy_dtype
    return lambda lhs, rhs, *window: conv(dtype, lhs, rhs, _Window(*window))
