"""Fractional pooling and fused convolutions. Expected values are TensorFlow's."""

import re

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
OF_FLOATS = {"T": FLOAT}


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        (
            "FractionalMaxPool",
            {"T": FLOAT, "pooling_ratio": [1.0, 1.4, 2.0, 1.0]},
            "[?,8,9,3]",
            None,
            "[?,5,4,3];[5];[4]",
        ),
        ("FractionalMaxPoolGrad", OF_FLOATS, "[2,8,9,3] ? ? ? ?", None, "in0"),
        ("FractionalAvgPoolGrad", OF_FLOATS, "[4] ? ? ?", None, "[?,?,?,?]"),
        ("FractionalAvgPoolGrad", OF_FLOATS, "[4] ? ? ?", {0: np.array([2, 8, 9, 3])}, "[2,8,9,3]"),
    ],
)
def test_fractional_pooling(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "FractionalAvgPool",
            {"T": FLOAT, "pooling_ratio": [1.0, 1.4, 2.0, 1.0, 1.0]},
            "[2,8,9,3]",
            "pooling_ratio field must specify 4 dimensions",
        ),
    ],
)
def test_fractional_pooling_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        (
            "FusedResizeAndPadConv2D",
            {"T": FLOAT, "mode": "REFLECT", "strides": [1, 1, 2, 1], "padding": "VALID"},
            "[2,8,8,3] [2] [4,2] [3,3,3,5]",
            {1: ints(10, 12), 2: np.array([[0, 0], [1, 2], [3, 4], [0, 0]], np.int32)},
            "[d0_0,11,9,d3_3]",
        ),
        (
            "FusedResizeAndPadConv2D",
            {"T": FLOAT, "mode": "REFLECT", "strides": [1, 1, 2, 1], "padding": "VALID"},
            "[2,8,8,3] [2] [4,2] [3,3,3,5]",
            None,
            "[?,?,?,d3_3]",
        ),
        (
            "_FusedBatchNormGradEx",
            {"T": FLOAT, "U": FLOAT, "num_side_inputs": 1},
            "[2,8,8,?] [2,8,8,4] [4] [4] [4] ? [4] ?",
            None,
            "[d0_0,d0_1,d0_2,d1_3];[d1_3];[d1_3];[0];[0];[d0_0,d0_1,d0_2,d1_3]",
        ),
        (
            "_FusedConv3D",
            {
                "T": FLOAT,
                "num_args": 0,
                "strides": [1, 1, 1, 1, 1],
                "padding": "VALID",
                "dilations": [1, 1, 2, 3, 1],
            },
            "[2,20,20,20,4] [3,3,3,4,5]",
            None,
            "[d0_0,18,14,16,d1_4]",
        ),
    ],
)
def test_fused(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "FusedResizeAndPadConv2D",
            {"T": FLOAT, "mode": "REFLECT", "strides": [1, 1, 2, 1], "padding": "VALID"},
            "[2,8,8,3] [3] [4,2] [3,3,3,5]",
            "Dimension 0 in both shapes must be equal, but are 3 and 2",
        ),
        (
            "FusedResizeAndPadConv2D",
            {"T": FLOAT, "mode": "REFLECT", "strides": [1, 1, 2, 1], "padding": "VALID"},
            "[2,8,8,3] [2] [3,2] [3,3,3,5]",
            "Shape must be rank 3 but is rank 4",
        ),
    ],
)
def test_fused_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
