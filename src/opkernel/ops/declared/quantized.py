"""Shapes of quantised ops: those of the plain ops, and of the ranges of values.

Source: TensorFlow core/ops/math_ops.cc, nn_ops.cc, array_ops.cc and image_ops.cc.
"""

from functools import partial

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, common_shapes
from opkernel.opdef.common_shapes.quantized import (
    set_quantized_range,
    set_scalar_range,
    shape_with_range,
)
from opkernel.opdef.common_shapes.rules import check_ranks, check_scalars

QUANTIZED_CONVOLUTIONS = (
    "QuantizedConv2DAndRelu",
    "QuantizedConv2DAndReluAndRequantize",
    "QuantizedConv2DAndRequantize",
    "QuantizedConv2DPerChannel",
    "QuantizedConv2DWithBias",
    "QuantizedConv2DWithBiasAndRelu",
    "QuantizedConv2DWithBiasAndReluAndRequantize",
    "QuantizedConv2DWithBiasAndRequantize",
    "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize",
    "QuantizedConv2DWithBiasSumAndRelu",
    "QuantizedConv2DWithBiasSumAndReluAndRequantize",
    "QuantizedDepthwiseConv2D",
    "QuantizedDepthwiseConv2DWithBias",
    "QuantizedDepthwiseConv2DWithBiasAndRelu",
    "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
)
"""Those that only oneDNN computes; it has an op `_Mkl...` for each."""
QUANTIZED_MATMULS = (
    "QuantizedMatMulWithBias",
    "QuantizedMatMulWithBiasAndDequantize",
    "QuantizedMatMulWithBiasAndRelu",
    "QuantizedMatMulWithBiasAndReluAndRequantize",
    "QuantizedMatMulWithBiasAndRequantize",
)
"""Those that only oneDNN computes; it has an op `_Mkl...` for each."""


def quantized_convolution_shape(
    c: InferenceContext, name: str, checks_output_range: bool = True
) -> None:
    """Images, filter, perhaps a bias; the ranges of images and filter, perhaps the range of the output.

    The filter may have a range for each channel, and so may an output that is not requantised.
    """
    common_shapes.conv2d_shape(c)
    first, requantizes = 2, name.endswith("Requantize")
    if "WithBias" in name:
        check_ranks(c, 1, 2)
        first = 3
    set_quantized_range(c, first, requantizes)
    if requantizes and checks_output_range:
        check_scalars(c, first + 4, first + 5)


def _matmul_of_many_shape(c: InferenceContext) -> None:
    """Attrs name the types of the inputs and outputs; there may be too few."""
    if c.num_inputs() < 2 or c.num_outputs() < 1:
        raise InvalidArgumentError(
            f"Expected at least 2 inputs and 1 output, got {c.num_inputs()} and {c.num_outputs()}"
        )
    common_shapes.matmul_shape(c)


def quantized_matmul_shape(c: InferenceContext, name: str) -> None:
    """Matrices, a bias, and the ranges of the matrices, perhaps that of the output."""
    common_shapes.matmul_shape(c)
    check_ranks(c, 1, 2)
    check_scalars(c, *range(3, 9 if name.endswith("quantize") else 7))
    if c.num_outputs() > 2:
        set_scalar_range(c)


def _custom_aggregator_shape(c: InferenceContext) -> None:
    """Input 0, its range and a histogram."""
    shape_with_range(c)
    c.set_output(3, c.vector(c.get_attr("num_bins")))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "CustomAggregator": _custom_aggregator_shape,
    "QuantizedReluX": partial(shape_with_range, scalars=(1, 2, 3)),
    "_FusedQuantizedConv2D": common_shapes.fused_quantized_conv2d_shape,
    "_FusedQuantizedDepthwiseConv2D": common_shapes.fused_quantized_depthwise_conv2d_shape,
    "_QuantizedMatMul": _matmul_of_many_shape,
    "_QuantizedMaxPool3D": common_shapes.pool3d_shape,
}
