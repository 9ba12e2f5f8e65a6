"""Shapes of ops of neural networks: quantised ones, oneDNN's, recurrent layers of cuDNN; word2vec.

oneDNN's ops have the shapes of the plain ops that they replace. Some have further inputs and outputs, which
describe layouts. The shape functions ignore these.

Source: TensorFlow core/ops/math_ops.cc, nn_ops.cc, array_ops.cc, image_ops.cc, mkl_nn_ops.cc, mkl_array_ops.cc,
cudnn_rnn_ops.cc, word2vec_ops.cc.
"""

from functools import partial

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, common_shapes
from opkernel.opdef.common_shapes.quantized import (
    set_quantized_range,
    set_scalar_range,
    shape_with_range,
)
from opkernel.opdef.common_shapes.rules import (
    check_ranks,
    check_scalars,
    outputs_as_inputs,
    set_outputs,
    shape_held_by,
    shape_rule,
)
from opkernel.ops.array.transpose_reverse import transpose_shape

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


def _cudnn_rnn_shape(c: InferenceContext, cell_state: int) -> None:
    """Sequences, the states and what the gradient needs, of unknown shape.

    Input `cell_state` has the shape of the state of the cells, which only an LSTM has. It may be longer than the
    output, if that is projected.
    """
    check_ranks(c, 3, 0, 1)
    check_ranks(c, 1, *range(3, c.num_inputs()))
    cells = c.scalar()
    if c.get_attr("rnn_mode") == "lstm":
        check_ranks(c, 3, cell_state)
        cells = c.input(cell_state)
    directions = 2 if c.get_attr("direction") == "bidirectional" else 1
    sequence, state = c.input(0), c.input(1)
    units = c.multiply(c.dim(state, 2), directions)
    output = c.make_shape([c.dim(sequence, 0), c.dim(sequence, 1), units])
    set_outputs(c, [output, state, cells])


def _params_to_canonical_shape(c: InferenceContext) -> None:
    """As many matrices of weights and vectors of biases as the outputs say."""
    check_ranks(c, 1, 3)
    c.set_output("weights", [c.matrix(None, None) for _ in c.output("weights")])
    c.set_output("biases", [c.vector(None) for _ in c.output("biases")])


_UNCHANGED = "Elu FusedInstanceNorm FusedMish LayerNorm LeakyRelu Relu Relu6 Swish Tanh"
_MERGED = "EluGrad LeakyReluGrad Relu6Grad ReluGrad TanhGrad"

_WITH_NATIVE: dict[str, OpShapeInferenceFn] = {
    name: shape_fn
    for shape_fn, names in (
        (common_shapes.avg_pool_shape, "AvgPool"),
        (common_shapes.pool3d_shape, "AvgPool3D MaxPool3D"),
        (common_shapes.avg_pool3d_grad_shape, "AvgPool3DGrad"),
        (common_shapes.avg_pool_grad_shape, "AvgPoolGrad"),
        (common_shapes.conv2d_shape_with_explicit_padding, "Conv2D Conv2DWithBias FusedConv2D"),
        (shape_held_by(1, rank=4), "Conv2DBackpropFilter DepthwiseConv2dNativeBackpropFilter"),
        (common_shapes.conv2d_backprop_filter_with_bias_shape, "Conv2DBackpropFilterWithBias"),
        (shape_held_by(0, rank=4), "Conv2DBackpropInput DepthwiseConv2dNativeBackpropInput"),
        (common_shapes.conv3d_shape, "Conv3D"),
        (shape_held_by(1, rank=5), "Conv3DBackpropFilterV2"),
        (shape_held_by(0, rank=5), "Conv3DBackpropInputV2"),
        (
            common_shapes.depthwise_conv2d_native_shape_with_explicit_padding,
            "DepthwiseConv2dNative",
        ),
        (
            common_shapes.fused_batch_norm_shape,
            "FusedBatchNorm FusedBatchNormEx FusedBatchNormV2 FusedBatchNormV3",
        ),
        (
            common_shapes.fused_batch_norm_grad_shape,
            "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3",
        ),
        (common_shapes.depthwise_conv2d_native_shape, "FusedDepthwiseConv2dNative"),
        (common_shapes.matmul_shape, "FusedMatMul"),
        (common_shapes.max_pool_shape, "MaxPool"),
        (common_shapes.max_pool3d_grad_shape, "MaxPool3DGrad"),
        (common_shapes.max_pool_grad_shape, "MaxPoolGrad"),
        (common_shapes.conv2d_shape, "PadWithConv2D PadWithFusedConv2D"),
    )
    for name in names.split()
}
"""By the name after both `_Mkl` and `_MklNative`."""

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "_FusedConv3D": common_shapes.conv3d_shape,
    "_FusedBatchNormGradEx": common_shapes.fused_batch_norm_grad_ex_shape,
    **dict.fromkeys(("CudnnRNN", "CudnnRNNV2"), partial(_cudnn_rnn_shape, cell_state=1)),
    **dict.fromkeys(
        ("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"),
        outputs_as_inputs(0, 1, 2, 3),
    ),
    **dict.fromkeys(
        ("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2"), shape_rule("-> [?]")
    ),
    **dict.fromkeys(
        ("CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2"), _params_to_canonical_shape
    ),
    "CudnnRNNParamsSize": shape_rule("[], [], [] -> [1]"),
    "CudnnRNNV3": partial(_cudnn_rnn_shape, cell_state=2),
    "QuantizedReluX": partial(shape_with_range, scalars=(1, 2, 3)),
    "_FusedQuantizedConv2D": common_shapes.fused_quantized_conv2d_shape,
    "_FusedQuantizedDepthwiseConv2D": common_shapes.fused_quantized_depthwise_conv2d_shape,
    "_QuantizedMatMul": _matmul_of_many_shape,
    "Skipgram": common_shapes.unknown_shape,
    "NegTrain": common_shapes.no_outputs,
    **{f"_Mkl{name}": common_shapes.unchanged_shape for name in _UNCHANGED.split()},
    **{f"_Mkl{name}": common_shapes.merge_both_inputs_shape_fn for name in _MERGED.split()},
    **{
        f"{prefix}{name}": shape_fn
        for name, shape_fn in _WITH_NATIVE.items()
        for prefix in ("_Mkl", "_MklNative")
    },
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
    "_MklDequantize": shape_rule("_, [], [] -> in0"),
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
