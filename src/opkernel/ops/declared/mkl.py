"""Shapes of oneDNN's ops: the shapes of the plain ops that they replace.

Some have further inputs and outputs, which describe layouts. The shape functions ignore these.

Source: TensorFlow core/ops/mkl_nn_ops.cc, mkl_array_ops.cc, nn_ops.cc, math_ops.cc.
"""

from functools import partial

from opkernel.opdef import InferenceContext, OpShapeInferenceFn, common_shapes
from opkernel.opdef.common_shapes.quantized import set_scalar_range
from opkernel.opdef.common_shapes.rules import check_scalars, shape_held_by
from opkernel.ops.array.transpose import transpose_shape
from opkernel.ops.declared.quantized import (
    QUANTIZED_CONVOLUTIONS,
    QUANTIZED_MATMULS,
    quantized_convolution_shape,
    quantized_matmul_shape,
)


def _mkl_dequantize_shape(c: InferenceContext) -> None:
    """Input 0; the range is scalars."""
    common_shapes.unchanged_shape(c)
    check_scalars(c, 1, 2)


def _mkl_concat_shape(c: InferenceContext) -> None:
    """As in TensorFlow, some of the descriptions of layouts count as values."""
    common_shapes.concat_shape(c, c.num_inputs() - 3)


def _mkl_quantized_concat_shape(c: InferenceContext) -> None:
    """As in TensorFlow, only half of the inputs are looked at."""
    half = c.num_inputs() // 2
    count = (half - 1) // 3
    common_shapes.quantized_concat_v2_shape(c, count)
    check_scalars(c, *range(count + 1, half))
    set_scalar_range(c)


_UNCHANGED = (
    "_MklElu",
    "_MklFusedInstanceNorm",
    "_MklFusedMish",
    "_MklLayerNorm",
    "_MklLeakyRelu",
    "_MklRelu",
    "_MklRelu6",
    "_MklSwish",
    "_MklTanh",
)
_MERGED = ("_MklEluGrad", "_MklLeakyReluGrad", "_MklRelu6Grad", "_MklReluGrad", "_MklTanhGrad")

_WITH_NATIVE: dict[str, OpShapeInferenceFn] = {
    "AvgPool": common_shapes.avg_pool_shape,
    "AvgPool3D": common_shapes.pool3d_shape,
    "AvgPool3DGrad": common_shapes.avg_pool3d_grad_shape,
    "AvgPoolGrad": common_shapes.avg_pool_grad_shape,
    "Conv2D": common_shapes.conv2d_shape_with_explicit_padding,
    "Conv2DBackpropFilter": shape_held_by(1, rank=4),
    "Conv2DBackpropFilterWithBias": common_shapes.conv2d_backprop_filter_with_bias_shape,
    "Conv2DBackpropInput": shape_held_by(0, rank=4),
    "Conv2DWithBias": common_shapes.conv2d_shape_with_explicit_padding,
    "Conv3D": common_shapes.conv3d_shape,
    "Conv3DBackpropFilterV2": shape_held_by(1, rank=5),
    "Conv3DBackpropInputV2": shape_held_by(0, rank=5),
    "DepthwiseConv2dNative": common_shapes.depthwise_conv2d_native_shape_with_explicit_padding,
    "DepthwiseConv2dNativeBackpropFilter": shape_held_by(1, rank=4),
    "DepthwiseConv2dNativeBackpropInput": shape_held_by(0, rank=4),
    "FusedBatchNorm": common_shapes.fused_batch_norm_shape,
    "FusedBatchNormEx": common_shapes.fused_batch_norm_shape,
    "FusedBatchNormGrad": common_shapes.fused_batch_norm_grad_shape,
    "FusedBatchNormGradV2": common_shapes.fused_batch_norm_grad_shape,
    "FusedBatchNormGradV3": common_shapes.fused_batch_norm_grad_shape,
    "FusedBatchNormV2": common_shapes.fused_batch_norm_shape,
    "FusedBatchNormV3": common_shapes.fused_batch_norm_shape,
    "FusedConv2D": common_shapes.conv2d_shape_with_explicit_padding,
    "FusedDepthwiseConv2dNative": common_shapes.depthwise_conv2d_native_shape,
    "FusedMatMul": common_shapes.matmul_shape,
    "MaxPool": common_shapes.max_pool_shape,
    "MaxPool3D": common_shapes.pool3d_shape,
    "MaxPool3DGrad": common_shapes.max_pool3d_grad_shape,
    "MaxPoolGrad": common_shapes.max_pool_grad_shape,
    "PadWithConv2D": common_shapes.conv2d_shape,
    "PadWithFusedConv2D": common_shapes.conv2d_shape,
}
"""By the name after both `_Mkl` and `_MklNative`."""

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_UNCHANGED, common_shapes.unchanged_shape),
    **dict.fromkeys(_MERGED, common_shapes.merge_both_inputs_shape_fn),
    **{f"_Mkl{name}": shape_fn for name, shape_fn in _WITH_NATIVE.items()},
    **{f"_MklNative{name}": shape_fn for name, shape_fn in _WITH_NATIVE.items()},
    **{
        f"_Mkl{name}": partial(
            quantized_convolution_shape,
            name=name,
            checks_output_range=name != "QuantizedConv2DWithBiasAndRequantize",
        )
        for name in QUANTIZED_CONVOLUTIONS
    },
    **{f"_Mkl{name}": partial(quantized_matmul_shape, name=name) for name in QUANTIZED_MATMULS},
    "_MklBatchMatMul": common_shapes.batch_matmul_shape,
    "_MklBatchMatMulV2": common_shapes.batch_matmul_v2_shape,
    "_MklConcat": _mkl_concat_shape,
    "_MklConcatV2": common_shapes.concat_v2_shape,
    "_MklConjugateTranspose": transpose_shape,
    "_MklDequantize": _mkl_dequantize_shape,
    "_MklEinsum": common_shapes.einsum_shape,
    "_MklFusedBatchMatMulV2": common_shapes.batch_matmul_v2_shape,
    "_MklMatMul": common_shapes.matmul_shape,
    "_MklNativeFusedConv3D": common_shapes.conv3d_shape,
    "_MklQuantizeV2": common_shapes.quantize_v2_shape,
    "_MklQuantizedAvgPool": common_shapes.quantized_avg_pool_shape,
    "_MklQuantizedConcatV2": _mkl_quantized_concat_shape,
    "_MklQuantizedConv2D": common_shapes.quantized_conv2d_shape,
    "_MklQuantizedMaxPool": common_shapes.max_pool_shape,
    "_MklSoftmax": common_shapes.unchanged_shape_with_rank_at_least(1),
    "_MklTranspose": transpose_shape,
    "__MklDummyConv2DBackpropFilterWithBias": common_shapes.conv2d_backprop_filter_with_bias_shape,
    "__MklDummyConv2DWithBias": common_shapes.conv2d_shape_with_explicit_padding,
    "__MklDummyPadWithConv2D": common_shapes.conv2d_shape,
    "__MklDummyPadWithFusedConv2D": common_shapes.conv2d_shape,
}
