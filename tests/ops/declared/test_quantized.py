"""Quantised ops. Expected values are TensorFlow's."""

import re

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
QINT8 = DataType.DT_QINT8
QINT32 = DataType.DT_QINT32
QUINT8 = DataType.DT_QUINT8
CONVOLUTION = {"Tinput": QUINT8, "Tfilter": QINT8, "strides": [1, 1, 1, 1], "padding": "VALID"}


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        (
            "QuantizedConv2DPerChannel",
            CONVOLUTION,
            "[2,8,8,4] [3,3,4,5] [] [] [5] [5]",
            "[d0_0,6,6,d1_3];in5;in5",
        ),
        (
            "QuantizedConv2DWithBiasAndRelu",
            CONVOLUTION,
            "[2,8,8,4] [3,3,4,5] [5] [] [] [5] ?",
            "[d0_0,6,6,d1_3];in6;in6",
        ),
        (
            "QuantizedConv2DWithBiasAndRelu",
            {**CONVOLUTION, "padding_list": [0, 0, 1, 2, 3, 4, 0, 0]},
            "[2,8,8,4] [3,3,4,5] [5] [] [] [] []",
            "[d0_0,9,13,d1_3];in6;in6",
        ),
        (
            "QuantizedConv2DWithBiasAndReluAndRequantize",
            {**CONVOLUTION, "Tbias": FLOAT},
            "[2,8,8,4] [3,3,4,5] [5] [] [] [5] [5] [] []",
            "[d0_0,6,6,d1_3];[];[]",
        ),
        (
            "QuantizedDepthwiseConv2DWithBias",
            CONVOLUTION,
            "[2,8,8,4] [3,3,4,2] [1,1] [1] [] [] []",
            "[d0_0,6,6,8];?;?",
        ),
    ],
)
def test_convolutions(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "QuantizedConv2DAndRequantize",
            CONVOLUTION,
            "[2,8,8,4] [3,3,4,5] [] [] [5] [] [] []",
            "Shape must be rank 0 but is rank 1",
        ),
        (
            "QuantizedConv2DWithBiasAndRelu",
            {**CONVOLUTION, "padding_list": [1, 2]},
            "[2,8,8,4] [3,3,4,5] [5] [] [] [] []",
            "explicit_paddings attribute must contain 8 values, but got: 2",
        ),
        (
            "QuantizedConv2DWithBiasAndReluAndRequantize",
            {**CONVOLUTION, "Tbias": FLOAT},
            "[2,8,8,4] [3,3,4,5] [5] [] [] [5] [5] [] [1]",
            "Shape must be rank 0 but is rank 1",
        ),
    ],
)
def test_convolutions_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        (
            "_FusedQuantizedConv2D",
            {
                **CONVOLUTION,
                "Tsummand": FLOAT,
                "Tdevice_inputs": [FLOAT] * 4,
                "Thost_inputs": [FLOAT] * 4,
                "Tdevice_outputs": [FLOAT],
                "Thost_outputs": [FLOAT] * 2,
                "fused_ops": ["BiasAdd", "Sum"],
            },
            "[2,8,8,4] [3,3,4,5] [5] [2,6,6,5] [] [] [5] [5]",
            "[d0_0,6,6,d1_3];in7;in7",
        ),
        (
            "_FusedQuantizedConv2D",
            {
                **CONVOLUTION,
                "Tsummand": FLOAT,
                "Tdevice_inputs": [FLOAT] * 4,
                "Thost_inputs": [FLOAT] * 4,
                "Tdevice_outputs": [FLOAT],
                "Thost_outputs": [FLOAT] * 2,
                "fused_ops": ["BiasAdd", "Sum", "Requantize"],
            },
            "[2,8,8,4] [3,3,4,5] [5] [2,6,6,5] [] [] [5] [5]",
            "[d0_0,6,6,d1_3];[];[]",
        ),
    ],
)
def test_fused(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "_FusedQuantizedConv2D",
            {
                **CONVOLUTION,
                "Tsummand": FLOAT,
                "Tdevice_inputs": [FLOAT] * 4,
                "Thost_inputs": [FLOAT] * 4,
                "Tdevice_outputs": [FLOAT],
                "Thost_outputs": [FLOAT] * 2,
                "fused_ops": ["BiasAdd", "Sum"],
            },
            "[2,8,8,4] [3,3,4,5] [5] [1] [] [] [5] [5]",
            "Shape must be rank 4 but is rank 1",
        ),
    ],
)
def test_fused_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        (
            "QuantizedMatMul",
            {"T1": QUINT8, "T2": QINT8},
            "[2,3] [3,4] [] [] [] []",
            None,
            "[d0_0,d1_1];[];[]",
        ),
        (
            "QuantizedMatMulWithBiasAndDequantize",
            {"T1": QUINT8, "T2": QINT8, "Tbias": FLOAT, "Toutput": FLOAT},
            "[2,3] [3,4] [4] [] [] [] [] [] []",
            None,
            "[d0_0,d1_1]",
        ),
        (
            "QuantizedMul",
            {"T1": QUINT8, "T2": QINT8},
            "[2,1] [3] [1] [] [] []",
            None,
            "[d0_0,d1_0];[];[]",
        ),
        (
            "QuantizedConcat",
            {"T": QUINT8, "N": 2},
            "[] [2,3] [2,4] [] [] [] []",
            {0: np.int32(1)},
            "[d1_0,7];[];[]",
        ),
        ("QuantizedReshape", {"T": QUINT8}, "[2,6] [2] [] []", {1: ints(3, -1)}, "[3,4];[];[]"),
        (
            "QuantizedResizeBilinear",
            {"T": QUINT8},
            "[2,8,8,3] [2] [] []",
            {1: ints(4, 5)},
            "[d0_0,4,5,d0_3];[];[]",
        ),
        (
            "QuantizedBatchNormWithGlobalNormalization",
            {
                "Tinput": QUINT8,
                "out_type": QINT32,
                "variance_epsilon": 0.5,
                "scale_after_normalization": True,
            },
            "[2,8,8,?] [] [] [3] [] [] [3] [] [] [3] [] [] [3] [] []",
            None,
            "[d0_0,d0_1,d0_2,d3_0];[];[]",
        ),
        ("RequantizationRangePerChannel", {"clip_value_max": 1.0}, "[2] [2] [2]", None, "[];[]"),
        ("Dequantize", {"T": QUINT8, "axis": 1}, "[2,3] [3] [3]", None, "in0"),
        (
            "QuantizeAndDequantizeV4Grad",
            {"T": FLOAT, "axis": 1},
            "[?,3] [2,3] [3] [3]",
            None,
            "in1;in3;in3",
        ),
        ("CustomAggregator", {"id": "", "num_bins": 4}, "[2]", None, "in0;[];[];[4]"),
    ],
)
def test_others(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "fact"),
    [
        (
            "QuantizedMatMulWithBiasAndRequantize",
            {"T1": QUINT8, "T2": QINT8, "Tbias": FLOAT},
            "[2,3] [3,4] [4] [] [] [] [] [] [1]",
            None,
            "Shape must be rank 0 but is rank 1",
        ),
        (
            "QuantizedRelu",
            {"Tinput": QUINT8},
            "[2,3] [] [1]",
            None,
            "Shape must be rank 0 but is rank 1",
        ),
        (
            "QuantizedConcatV2",
            {"T": QUINT8, "N": 2},
            "[2,3] [2,4] [] [] [] [] [1]",
            {2: np.int32(1)},
            "Shape must be rank 0 but is rank 1",
        ),
        (
            "Requantize",
            {"Tinput": QUINT8, "out_type": QINT8},
            "[2] [] [] [] [1]",
            None,
            "Shape must be rank 0 but is rank 1",
        ),
        (
            "Dequantize",
            {"T": QUINT8, "axis": 1},
            "[2,3] [2] [2]",
            None,
            "Dimensions must be equal, but are 2 and 3",
        ),
        (
            "Dequantize",
            {"T": QUINT8, "axis": 1},
            "? [2] [2]",
            None,
            "Axis must be less than input dimension(-1), got 1",
        ),
    ],
)
def test_others_refuses(infer_op, op, attrs, inputs, constants, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs, constants=constants)
