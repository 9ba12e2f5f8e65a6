"""Int attrs are int64 in a graph; TensorFlow's kernels refuse what their int32 cannot hold."""

import json
from typing import Any

import numpy as np
import pytest
from tests.ops.test_recorded_values import CALLS

from answer_op_calls import op_call
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

VECTOR = np.arange(4, dtype=np.int32)
IMAGE = np.ones((1, 4, 4, 1), np.float32)
SPEC: dict[str, Any] = {
    name: np.array([value], np.int32)
    for name, value in {"begin": 1, "end": 3, "strides": 1}.items()
}


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**62])
@pytest.mark.parametrize(
    ("op", "inputs", "attr"),
    [
        ("StridedSlice", {"input": VECTOR, **SPEC}, "begin_mask"),
        ("StridedSliceGrad", {"shape": [4], **SPEC, "dy": VECTOR[1:3]}, "shrink_axis_mask"),
        (
            "InTopK",
            {"predictions": np.ones((1, 2), np.float32), "targets": np.zeros(1, np.int32)},
            "k",
        ),
        ("Assert", {"condition": True, "data": [VECTOR]}, "summarize"),
        ("Conv", {"input": IMAGE, "filter": IMAGE[:, :1, :1]}, "groups"),
    ],
)
def test_out_of_range(op: str, inputs: dict[str, Any], attr: str, value: int) -> None:
    attrs: dict[str, Any] = {attr: value}
    if op == "Conv":
        attrs |= {"strides": [1, 1, 1, 1], "padding": "SAME"}
    with pytest.raises(InvalidArgumentError, match=f"{attr} has value {value} out of range"):
        getattr(raw_ops, op)(**inputs, **attrs)


ATTRS = """
AllCandidateSampler num_sampled num_true
AsString precision width
AudioSpectrogram stride window_size
AudioSummaryV2 max_outputs
AvgPool ksize strides
AvgPool3D ksize strides
AvgPool3DGrad ksize strides
AvgPoolGrad ksize strides
BatchToSpace block_size
CTCBeamSearchDecoder beam_width
CTCGreedyDecoder blank_index
Conv batch_dims groups strides
Conv2D dilations strides
Conv2DBackpropFilter dilations strides
Conv2DBackpropInput dilations strides
Conv3D dilations strides
Conv3DBackpropFilterV2 dilations strides
Conv3DBackpropInputV2 dilations strides
DebugNumericSummaryV2 tensor_debug_mode
DecodeAndCropJpeg channels ratio
DecodeBmp channels
DecodeImage channels
DecodeJpeg channels ratio
DecodePng channels
DecodeWav desired_channels desired_samples
DepthToSpace block_size
DepthwiseConv2dNative dilations strides
DepthwiseConv2dNativeBackpropFilter strides
DepthwiseConv2dNativeBackpropInput strides
Dequantize axis
Dilation2D rates strides
Dilation2DBackpropFilter rates strides
Dilation2DBackpropInput rates strides
EncodeJpeg quality x_density y_density
EncodePng compression
ExtractImagePatches ksizes rates strides
ExtractVolumePatches ksizes strides
FakeQuantWithMinMaxArgs num_bits
FakeQuantWithMinMaxArgsGradient num_bits
FakeQuantWithMinMaxVars num_bits
FakeQuantWithMinMaxVarsGradient num_bits
FakeQuantWithMinMaxVarsPerChannel num_bits
FakeQuantWithMinMaxVarsPerChannelGradient num_bits
FusedPadConv2D strides
FusedResizeAndPadConv2D strides
GatherV2 batch_dims
InTopK k
LearnedUnigramCandidateSampler num_sampled num_true
LogUniformCandidateSampler num_sampled num_true
MaxPool ksize strides
MaxPool3D ksize strides
MaxPool3DGrad ksize strides
MaxPool3DGradGrad ksize strides
MaxPoolGrad ksize strides
MaxPoolGradGrad ksize strides
MaxPoolGradWithArgmax ksize strides
MaxPoolWithArgmax ksize strides
Mfcc dct_coefficient_count filterbank_channel_count
OneHot axis
Pack axis
Print summarize
QuantizeAndDequantizeV2 axis num_bits
QuantizeAndDequantizeV3 axis
QuantizeAndDequantizeV4 axis num_bits
QuantizeAndDequantizeV4Grad axis
QuantizeV2 axis
QuantizedAvgPool ksize strides
QuantizedMaxPool ksize strides
RandomIndexShuffle rounds
SampleDistortedBoundingBox max_attempts
SampleDistortedBoundingBoxV2 max_attempts
SpaceToBatch block_size
SpaceToDepth block_size
SparseConcat concat_dim
Squeeze squeeze_dims
StatelessSampleDistortedBoundingBox max_attempts
StridedSlice begin_mask ellipsis_mask end_mask new_axis_mask shrink_axis_mask
StridedSliceGrad begin_mask ellipsis_mask end_mask new_axis_mask shrink_axis_mask
StringFormat summarize
StringNGrams ngram_widths pad_width
StringSplitV2 maxsplit
TensorListStack num_elements
TensorStridedSliceUpdate begin_mask ellipsis_mask end_mask new_axis_mask shrink_axis_mask
ThreadUnsafeUnigramCandidateSampler num_sampled num_true
UnicodeDecode replacement_char
UnicodeDecodeWithOffsets replacement_char
UnicodeEncode replacement_char
UnicodeTranscode replacement_char
UniformCandidateSampler num_sampled num_true
UniformDequantize quantization_axis
UniformQuantize quantization_axis quantization_max_val quantization_min_val
UniformQuantizedAdd lhs_quantization_axis output_quantization_axis output_quantization_max_val output_quantization_min_val rhs_quantization_axis
UniformQuantizedClipByValue quantization_axis
UniformQuantizedConvolution batch_group_count feature_group_count lhs_quantization_axis output_quantization_axis output_quantization_max_val output_quantization_min_val rhs_quantization_axis
UniformQuantizedConvolutionHybrid batch_group_count feature_group_count rhs_quantization_axis
UniformQuantizedDot lhs_quantization_axis output_quantization_axis output_quantization_max_val output_quantization_min_val rhs_quantization_axis
UniformQuantizedDotHybrid rhs_quantization_axis
UniformRequantize input_quantization_axis output_quantization_axis output_quantization_max_val output_quantization_min_val
Unpack axis
"""
"""Ops and their attrs, recorded from TensorFlow 2.21: each attr of each recorded call was set to 2^33 + 1.

Quantized convolutions are left out: oneDNN computes them, and their kernels without it look at no attr.
"""

CASES = [(op, attr) for op, *attrs in map(str.split, ATTRS.split("\n")[1:-1]) for attr in attrs]


def changed_call(op: str, attr: str) -> Any:
    """A call that TensorFlow answered, with a value of 34 bits for the attr."""
    calls = (json.loads(line) for line, _ in CALLS[op])
    call = next(call for call in calls if "outputs" in call and attr in call["attrs"])
    ((kind, value),) = call["attrs"][attr].items()
    call["attrs"][attr] = {kind: [2**33 + 1, *value[1:]] if kind == "list(int)" else 2**33 + 1}
    return call


@pytest.mark.parametrize(("op", "attr"), [case for case in CASES if case[0] in CALLS])
def test_a_value_of_34_bits_is_refused(op: str, attr: str) -> None:
    answer = op_call(changed_call(op, attr))
    assert answer.get("error_code") == "INVALID_ARGUMENT", answer
