"""Recurrent layers of cuDNN and gradients of cells. Expected values are TensorFlow's."""

import re

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
INT32 = DataType.DT_INT32
OF_FLOATS = {"T": FLOAT}


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("CudnnRNN", OF_FLOATS, "[9,2,4] [1,2,5] [1,2,5] [99]", "[d0_0,d0_1,d1_2];in1;in1;?"),
        (
            "CudnnRNNV2",
            {"T": FLOAT, "rnn_mode": "gru", "direction": "bidirectional"},
            "[9,2,4] [2,2,5] [] [99]",
            "[d0_0,d0_1,10];in1;[];?;?",
        ),
        (
            "CudnnRNNV3",
            OF_FLOATS,
            "[9,2,4] [1,2,5] [1,2,7] [99] [2]",
            "[d0_0,d0_1,d1_2];in1;in2;?;?",
        ),
        (
            "CudnnRNNBackprop",
            OF_FLOATS,
            "[9,2,4] [1,2,5] [1,2,5] [99] ? ? ? ? ? ? ?",
            "in0;in1;in2;in3",
        ),
        ("CudnnRNNParamsSize", {"T": FLOAT, "S": INT32}, "[] [] []", "[1]"),
        (
            "CudnnRNNParamsToCanonicalV2",
            {"T": FLOAT, "num_params_weights": 2, "num_params_biases": 1},
            "[] [] [] [99]",
            "[?,?];[?,?];[?]",
        ),
        ("CudnnRNNCanonicalToParams", {"T": FLOAT, "num_params": 1}, "[] [] [] [4,4] [4]", "[?]"),
    ],
)
def test_cudnn(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "CudnnRNNV3",
            OF_FLOATS,
            "[9,2,4] [1,2,5] [1,2] [99] [2]",
            "Shape must be rank 3 but is rank 2",
        ),
        ("CudnnRNN", OF_FLOATS, "[9,2] [1,2,5] [1,2,5] [99]", "Shape must be rank 3 but is rank 2"),
    ],
)
def test_cudnn_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        (
            "GRUBlockCellGrad",
            OF_FLOATS,
            "[2,4] [?,5] [9,10] ? ? ? ? ? ? ?",
            "in0;[d0_0,d1_1];[d0_0,d1_1];[d0_0,d2_1]",
        ),
        (
            "LSTMBlockCellGrad",
            {"T": FLOAT, "use_peephole": False},
            "[2,4] [2,5] ? ? ? ? ? ? ? ? ? ? ? ? ? ?",
            "[d0_0,d1_1];[d0_0,20];[d1_1];[d1_1];[d1_1]",
        ),
        (
            "BlockLSTMGrad",
            {"T": FLOAT, "use_peephole": False},
            "[] [9,2,4] [2,5] [2,5] [9,20] [5] [5] [5] [20] ? ? ? ? ? ? ? ? ?",
            "in1;in2;in3;in4;in5;in6;in7;in8",
        ),
    ],
)
def test_gradients(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "BlockLSTMGradV2",
            {"T": FLOAT, "use_peephole": False},
            "[] [9,2] [2,5] [2,5] [9,20] [5] [5] [5] [20] ? ? ? ? ? ? ? ? ?",
            "Shape must be rank 3 but is rank 2",
        ),
    ],
)
def test_gradients_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
