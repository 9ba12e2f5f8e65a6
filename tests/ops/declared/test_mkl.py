"""oneDNN's ops. Expected values are TensorFlow's."""

import re

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
QINT8 = DataType.DT_QINT8
QUINT8 = DataType.DT_QUINT8
OF_FLOATS = {"T": FLOAT}
CONVOLUTION = {"Tinput": QUINT8, "Tfilter": QINT8, "strides": [1, 1, 1, 1], "padding": "VALID"}


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        ("_MklRelu", OF_FLOATS, "[2,3] [?]", None, "in0;?"),
        ("_MklReluGrad", OF_FLOATS, "[2,?] [?,3] ? ?", None, "[d0_0,d1_1];?"),
        ("_MklMatMul", OF_FLOATS, "[2,3] [3,4]", None, "[d0_0,d1_1]"),
        (
            "_MklNativeConv2D",
            {"T": FLOAT, "strides": [1, 1, 1, 1], "padding": "SAME"},
            "[2,8,8,4] [3,3,4,5]",
            None,
            "[d0_0,d0_1,d0_2,d1_3]",
        ),
        (
            "_MklNativeMaxPool",
            {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
            "[2,8,8,4]",
            None,
            "[d0_0,4,4,4];?",
        ),
        (
            "_MklNativeConv3DBackpropFilterV2",
            {"T": FLOAT, "strides": [1, 1, 1, 1, 1], "padding": "SAME"},
            "? [5] ?",
            {1: ints(3, 3, 3, 4, 5)},
            "[3,3,3,4,5]",
        ),
        (
            "__MklDummyConv2DBackpropFilterWithBias",
            {"T": FLOAT, "strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NCHW"},
            "[2,4,8,8] [4] ?",
            None,
            "[?,?,?,?];[d0_1]",
        ),
        ("_MklTranspose", OF_FLOATS, "[2,3] [2]", {1: ints(1, 0)}, "[d0_1,d0_0]"),
    ],
)
def test_plain_siblings(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("_MklDequantize", {"T": QUINT8}, "[2] [] [1]", "Shape must be rank 0 but is rank 1"),
        ("_MklSoftmax", OF_FLOATS, "[]", "Shape must be at least rank 1 but is rank 0"),
    ],
)
def test_plain_siblings_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        (
            "_MklConcat",
            {"T": FLOAT, "N": 2},
            "[] [2,3] [2,4] [2,5] [9] [9]",
            {0: np.int32(1)},
            "[d1_0,12];?",
        ),
        (
            "_MklQuantizedConv2DWithBiasAndRequantize",
            {**CONVOLUTION, "Tbias": FLOAT},
            "[2,8,8,4] [3,3,4,5] [5] [] [] [5] [5] [1] [1]",
            None,
            "[d0_0,6,6,d1_3];[];[]",
        ),
    ],
)
def test_own_rules(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "_MklQuantizedConcatV2",
            {"T": QUINT8, "N": 2},
            "[] [2,3] ? ? ? ? ?",
            "Shape must be rank 0 but is rank 2",
        ),
    ],
)
def test_own_rules_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
