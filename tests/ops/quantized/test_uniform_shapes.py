"""Uniformly quantised ops. Expected values are TensorFlow's."""

import re

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.proto import UniformQuantizedConvolutionDimensionNumbersAttr
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
QINT8 = DataType.DT_QINT8
QINT32 = DataType.DT_QINT32
HYBRID = {
    "Tlhs": FLOAT,
    "Trhs": QINT8,
    "Tout": FLOAT,
    "rhs_quantization_min_val": 0,
    "rhs_quantization_max_val": 9,
}
QUANTIZED = {
    "Tin": QINT8,
    "Tout": QINT32,
    "rhs_quantization_min_val": 0,
    "rhs_quantization_max_val": 9,
    "lhs_quantization_min_val": 0,
    "lhs_quantization_max_val": 9,
    "output_quantization_min_val": 0,
    "output_quantization_max_val": 9,
}
NHWC = UniformQuantizedConvolutionDimensionNumbersAttr(
    input_batch_dimension=0,
    input_feature_dimension=3,
    input_spatial_dimensions=[1, 2],
    kernel_input_feature_dimension=2,
    kernel_output_feature_dimension=3,
    kernel_spatial_dimensions=[0, 1],
    output_batch_dimension=0,
    output_feature_dimension=3,
    output_spatial_dimensions=[1, 2],
).SerializeToString()


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("UniformQuantizedDotHybrid", HYBRID, "[2,3] [3,?] [4] [4]", "[d0_0,d1_1]"),
        ("UniformQuantizedDot", QUANTIZED, "[2,3] [3,5] [] [] [5] [5] [] []", "[d0_0,d1_1]"),
    ],
)
def test_dots(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "UniformQuantizedDotHybrid",
            HYBRID,
            "[2,3] [3,5] [4] [4]",
            "Dimensions must be equal, but are 4 and 5",
        ),
        (
            "UniformQuantizedDotHybrid",
            HYBRID,
            "[2,3] [3,5] [5] []",
            "scales and zero_points must have same rank.",
        ),
        (
            "UniformQuantizedDot",
            QUANTIZED,
            "[2,3] [3,5] [1] [] [5] [5] [] []",
            "Shape must be at most rank 0 but is rank 1",
        ),
    ],
)
def test_dots_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "VALID"},
            "[2,4,9,8] [6,4,3,3] [6] [6]",
            "[2,6,7,6]",
        ),
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "SAME", "window_strides": [2, 3]},
            "[2,4,9,8] [6,4,3,3] [] []",
            "[2,6,5,3]",
        ),
        (
            "UniformQuantizedConvolutionHybrid",
            {
                **HYBRID,
                "padding": "EXPLICIT",
                "explicit_padding": [1, 0, 2, 2],
                "lhs_dilation": [2, 1],
                "rhs_dilation": [1, 2],
            },
            "[2,4,9,8] [6,4,3,3] ? ?",
            "[2,6,16,8]",
        ),
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "VALID", "feature_group_count": 2},
            "[2,4,9,8] [6,2,3,3] [6] [6]",
            "[2,6,7,6]",
        ),
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "VALID", "dimension_numbers": NHWC},
            "[2,9,8,4] [3,3,4,6] [6] [6]",
            "[2,7,6,6]",
        ),
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "VALID"},
            "[2,4,?,8] [6,4,3,3] [] []",
            "[?,?,?,?]",
        ),
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "VALID"},
            "? [6,4,3,3] [] []",
            "[?,?,?,?]",
        ),
        (
            "UniformQuantizedConvolution",
            {**QUANTIZED, "padding": "VALID"},
            "[2,4,9,8] [6,4,3,3] [] [] [6] [6] [6] [6]",
            "[2,6,7,6]",
        ),
    ],
)
def test_convolutions(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "VALID", "feature_group_count": 3},
            "[2,4,9,8] [6,2,3,3] [6] [6]",
            "feature_group_count must divide lhs feature dimension size, but 3 does not divide 4",
        ),
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "VALID", "dimension_numbers": b"\xff"},
            "[2,9,8,4] [3,3,4,6] [6] [6]",
            "Error parsing convolution dimension numbers.",
        ),
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "X"},
            "[2,4,9,8] [6,4,3,3] [] []",
            "padding Attr must be one of [EXPLICIT | SAME | VALID], but given: X",
        ),
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "VALID"},
            "[2,4] [6,4] [] []",
            "lhs and rhs shape dims must be at least 3. Given: 2",
        ),
        (
            "UniformQuantizedConvolutionHybrid",
            {**HYBRID, "padding": "VALID"},
            "[2,4,9,8] [6,4,3,3] [5] [5]",
            "Dimensions must be equal, but are 5 and 6",
        ),
    ],
)
def test_convolutions_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
