"""Shapes of ops of XLA, RISC, SDCA and test ops: the answers are TensorFlow's."""

import pytest

from opkernel import Graph, placeholder, raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

INFERRED = [
    ("RiscAdd", {"T": DataType.DT_FLOAT}, "[2,?] [?,3]", "in0"),
    (
        "XlaPad",
        {"T": DataType.DT_FLOAT, "Tindices": DataType.DT_INT32},
        "[2,3] [] [2] [2] [2]",
        "[?,?]",
    ),
    ("XlaEinsum", {"T": DataType.DT_FLOAT, "equation": "ab,bc->ac"}, "[2,3] [3,?]", "[d0_0,d1_1]"),
    ("SdcaFprint", {}, "[3]", "[d0_0,2]"),
]

REFUSED = [
    ("RiscAdd", {"T": DataType.DT_FLOAT}, "[2,2] [2,3]", "Mismatch shapes for input."),
    (
        "XlaDot",
        {"T": DataType.DT_FLOAT, "dimension_numbers": "\n\x05\x01", "precision_config": ""},
        "[2,3] [3,2]",
        "same number of contracting dimensions",  # and the field ends before its length
    ),
    ("KernelLabelRequired", {}, "[]", "Shape must be rank 1 but is rank 0"),
]


@pytest.mark.parametrize(("op", "attrs", "inputs", "outputs"), INFERRED)
def test_shapes_follow_from_the_inputs(infer_op, op, attrs, inputs, outputs):
    assert infer_op(op, *inputs.split(), attrs=attrs) == outputs


@pytest.mark.parametrize(("op", "attrs", "inputs", "message"), REFUSED)
def test_inputs_that_do_not_fit_are_refused(infer_op, op, attrs, inputs, message):
    with pytest.raises(InvalidArgumentError) as refusal:
        infer_op(op, *inputs.split(), attrs=attrs)
    assert message in str(refusal.value)


def test_ops_without_a_shape_function_have_outputs_of_unknown_shape():
    with Graph().as_default():
        x = placeholder(DataType.DT_FLOAT, [2, 3])
        assert raw_ops.TPUReplicatedInput(inputs=[x, x]).shape.rank is None
        assert raw_ops.TwoFloatInputsFloatOutput(a=x, b=x).shape.rank is None
