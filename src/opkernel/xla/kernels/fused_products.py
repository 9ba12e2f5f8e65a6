"""Products with a bias or a normalisation, and an activation, as graph optimisers fuse them.

What comes after a product is that of the CPU's kernels; the compiler fuses it again.

Source: TensorFlow compiler/tf2xla/kernels/conv_ops.cc, core/kernels/matmul_op_fused.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.ops.kernel_types import NARROW_FLOATS
from opkernel.ops.math.matmul import check_matrices
from opkernel.ops.nn.conv.attrs import conv2d_windows
from opkernel.ops.nn.conv.kernels import convolution
from opkernel.ops.nn.epilogue import (
    Fusion,
    conv2d_fusion,
    depthwise_fusion,
    finished,
    matmul_fusion,
)
from opkernel.ops.nn.geometry import Windows, check_rank
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp
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
