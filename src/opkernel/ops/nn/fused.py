"""_FusedConv2D, _FusedDepthwiseConv2dNative and _FusedMatMul, which graph optimisers put into graphs.

What is fused, a bias or a batch normalisation and an activation, is done to each tile of the
product while it is in the cache.

Source: TensorFlow core/ops/nn_ops.cc, math_ops.cc, core/kernels/conv_ops_fused_impl.h,
matmul_op_fused.cc.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import register_kernel
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import (
    conv2d_shape_with_explicit_padding,
    depthwise_conv2d_native_shape,
    matmul_shape,
)
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.math.matmul import check_matrices
from opkernel.ops.math.products import SMALL_PRODUCT, product, small_product
from opkernel.ops.nn.conv2d import conv2d_windows
from opkernel.ops.nn.convolution import convolution, convolve_images
from opkernel.ops.nn.depthwise_conv2d import convolve_depthwise, depthwise_windows
from opkernel.ops.nn.fused_finish import Fusion, parse_fusion
from opkernel.ops.nn.geometry import Windows, check_rank
from opkernel.ops.nn.windows import Array, Geometry
from opkernel.types import DataType

__all__ = ["FUSED_CONV2D", "FUSED_DEPTHWISE_CONV2D", "FUSED_MATMUL"]

_FUSION_ATTRS = [
    "fused_ops: list(string) = []",
    "epsilon: float = 0.0001",
    "leakyrelu_alpha: float = 0.2",
]

FUSED_CONV2D = register_op(
    "_FusedConv2D",
    inputs=["input: T", "filter: T", "args: TArgs", "host_args: num_host_args * float"],
    outputs=["output: T"],
    attrs=[
        "T: {half, float, double, int8, qint8}",
        "TArgs: list(type) >= 1",
        "num_args: int >= 0",
        "num_host_args: int >= 0 = 0",
        "strides: list(int)",
        "padding: {'SAME', 'VALID', 'EXPLICIT'}",
        "explicit_paddings: list(int) = []",
        "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
        "filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'",
        "dilations: list(int) = [1, 1, 1, 1]",
        "use_cudnn_on_gpu: bool = true",
        *_FUSION_ATTRS,
    ],
    shape_fn=conv2d_shape_with_explicit_padding,
    doc="Conv2D, and then the ops that `fused_ops` names, with `args` as their inputs.",
)
FUSED_DEPTHWISE_CONV2D = register_op(
    "_FusedDepthwiseConv2dNative",
    inputs=["input: T", "filter: T", "args: num_args * T"],
    outputs=["output: T"],
    attrs=[
        "T: {half, bfloat16, float, double}",
        "num_args: int >= 0",
        "strides: list(int)",
        "padding: {'SAME', 'VALID'}",
        "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
        "dilations: list(int) = [1, 1, 1, 1]",
        *_FUSION_ATTRS,
    ],
    shape_fn=depthwise_conv2d_native_shape,
    doc="DepthwiseConv2dNative, and then the ops that `fused_ops` names, with `args` as their "
    "inputs.",
)
FUSED_MATMUL = register_op(
    "_FusedMatMul",
    inputs=["a: T", "b: T", "args: num_args * T"],
    outputs=["product: T"],
    attrs=[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "T: {bfloat16, half, float}",
        "num_args: int >= 0",
        *_FUSION_ATTRS,
    ],
    shape_fn=matmul_shape,
    doc="MatMul, and then the ops that `fused_ops` names, with `args` as their inputs.",
)

_UP_TO_FLOAT = (DataType.DT_BFLOAT16, DataType.DT_HALF, DataType.DT_FLOAT)
_AFTER_CONVOLUTIONS = ("Relu", "Relu6", "Elu", "LeakyRelu")
_AFTER_MATMULS = (*_AFTER_CONVOLUTIONS, "Tanh", "Sigmoid", "GeluExact", "GeluApproximate")


@register_kernel(
    FUSED_CONV2D,
    device="CPU",
    types={"T": (*FLOATS, DataType.DT_INT8, DataType.DT_QINT8)},
    factory=True,
)
def fused_conv2d(
    *,
    T: DataType,
    strides: list[int],
    padding: str,
    explicit_paddings: list[int],
    data_format: str,
    filter_format: str,
    dilations: list[int],
    fused_ops: list[str],
    epsilon: float,
    leakyrelu_alpha: float,
) -> Callable[[Array, Array, list[Array], list[Array]], Array]:
    """Float and double in layout NHWC without groups, as in TensorFlow."""
    first = ("BiasAdd", "FusedBatchNorm")
    fusion = parse_fusion(
        "Fused Conv2D", fused_ops, first, _AFTER_CONVOLUTIONS, epsilon, leakyrelu_alpha
    )
    if T not in (DataType.DT_FLOAT, DataType.DT_DOUBLE):
        raise InvalidArgumentError(f"_FusedConv2D does not support {T.string} inputs on the CPU")
    if data_format != "NHWC" or filter_format != "HWIO":
        raise UnimplementedError(
            "Fused conv implementation only supports NHWC tensor format for now, got "
            f"{data_format} and {filter_format}"
        )
    windows = conv2d_windows(strides, dilations, padding, explicit_paddings, data_format)

    def fused(x: Array, filters: Array, args: list[Array], host_args: list[Array]) -> Array:
        check_rank("input", x, 4)
        check_rank("filter", filters, 4)
        if x.shape[3] != filters.shape[2]:
            raise UnimplementedError(
                "Fused conv implementation does not support grouped convolutions for now."
            )

        def compute(x: Array, filters: Array, geometry: Geometry, windows: Windows) -> Array:
            shape = (x.shape[0], *geometry.output, filters.shape[3])
            finish = fusion.finish(args, shape)
            return convolve_images(x, filters, geometry, windows, finish)

        return convolution(x, filters, windows, compute)

    return fused


@register_kernel(FUSED_DEPTHWISE_CONV2D, device="CPU", types={"T": _UP_TO_FLOAT}, factory=True)
def fused_depthwise_conv2d(
    *,
    strides: list[int],
    padding: str,
    data_format: str,
    dilations: list[int],
    fused_ops: list[str],
    epsilon: float,
    leakyrelu_alpha: float,
) -> Callable[[Array, Array, list[Array]], Array]:
    """Images in layout NHWC only and windows without gaps; half and bfloat16 in float."""
    fusion = parse_fusion(
        "Fused DepthwiseConv2dNative",
        fused_ops,
        ("BiasAdd",),
        _AFTER_CONVOLUTIONS,
        epsilon,
        leakyrelu_alpha,
    )
    windows = depthwise_windows(strides, padding, [], data_format)

    def fused(x: Array, filters: Array, args: list[Array]) -> Array:
        images, weights, *others = (
            array.astype(np.float32, copy=False) for array in (x, filters, *args)
        )
        finisher = partial(fusion.finish, others)
        result = convolve_depthwise(images, weights, windows, dilations, finisher)
        return result.astype(x.dtype, copy=False)

    return fused


def _small_fused(a: Array, b: Array, bias: Array, fusion: Fusion) -> Array | None:
    """A small product with its bias and activation, in half the time; None of all others."""
    if not a.ndim == b.ndim == 2 or bias.ndim != 1:
        return None
    (rows, terms), (inner, columns) = a.shape, b.shape
    count = rows * terms * columns
    if terms != inner or bias.shape[0] != columns or not 0 < count <= SMALL_PRODUCT:
        return None
    result = small_product(a, b, count)
    row = result[0] if rows == 1 else result  # broadcasting would take longer than adding
    np.add(row, bias, row)
    if fusion.activation is not None:
        fusion.activation(result, fusion.alpha)
    return result


@register_kernel(
    FUSED_MATMUL,
    device="CPU",
    types={"T": _UP_TO_FLOAT},
    factory=True,
)
def fused_matmul(
    *,
    T: DataType,
    transpose_a: bool,
    transpose_b: bool,
    fused_ops: list[str],
    leakyrelu_alpha: float,
) -> Callable[[Array, Array, list[Array]], Array]:
    """Half and bfloat16 are computed in float."""
    fusion = parse_fusion(
        "Fused MatMul", fused_ops, ("BiasAdd",), _AFTER_MATMULS, 0, leakyrelu_alpha
    )

    may_be_small = not (transpose_a or transpose_b or fusion.adds)

    def fused(a: Array, b: Array, args: list[Array]) -> Array:
        if may_be_small and len(args) == 1:
            result = _small_fused(a, b, args[0], fusion)
            if result is not None:
                return result
        check_matrices(a, b, transpose_a, transpose_b)
        left = a.T if transpose_a else a
        right = b.T if transpose_b else b
        finish = fusion.finish(args, (left.shape[0], right.shape[1]))
        if not left.shape[1]:  # nothing is added to the product of empty matrices
            empty: Array = np.matmul(left, right)
            return empty
        return product(left, right, finish, None if transpose_b else b)

    if T == DataType.DT_FLOAT:
        return fused

    def widened(a: Array, b: Array, args: list[Array]) -> Array:
        left, right, *others = (array.astype(np.float32) for array in (a, b, *args))
        return fused(left, right, others).astype(a.dtype)

    return widened
