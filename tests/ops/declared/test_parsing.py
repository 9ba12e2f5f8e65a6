"""Shapes of ops of parsing: the answers are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

INFERRED = [
    ("DecodeRaw", {"out_type": DataType.DT_FLOAT}, "[2]", "[d0_0,?]"),
    ("DecodeCSV", {"OUT_TYPE": [DataType.DT_FLOAT, DataType.DT_STRING]}, "[3] [1] [0]", "in0;in0"),
    (
        "DecodeProtoV2",
        {
            "message_type": "m",
            "field_names": ["a", "b"],
            "output_types": [DataType.DT_FLOAT, DataType.DT_INT32],
        },
        "[5]",
        "[d0_0,2];[d0_0,?];[d0_0,?]",
    ),
    (
        "EncodeProto",
        {
            "field_names": ["a", "b"],
            "message_type": "m",
            "Tinput_types": [DataType.DT_FLOAT, DataType.DT_INT32],
        },
        "? [3,?] [?,4]",
        "[d1_0]",
    ),
    ("SerializeTensor", {"T": DataType.DT_FLOAT}, "[2]", "[]"),
]

REFUSED = [
    (
        "DecodeCSV",
        {"OUT_TYPE": [DataType.DT_FLOAT]},
        "[3] [2]",
        "Shape of a default must be a length-0 or length-1 vector, or a scalar.",
    ),
    (
        "EncodeProto",
        {"field_names": ["a"], "message_type": "m", "Tinput_types": [DataType.DT_FLOAT]},
        "? [3]",
        "Shape must be at least rank 2 but is rank 1",
    ),
]


@pytest.mark.parametrize(("op", "attrs", "inputs", "outputs"), INFERRED)
def test_shapes_follow_from_the_inputs(infer_op, op, attrs, inputs, outputs):
    assert infer_op(op, *inputs.split(), attrs=attrs) == outputs


@pytest.mark.parametrize(("op", "attrs", "inputs", "message"), REFUSED)
def test_inputs_that_do_not_fit_are_refused(infer_op, op, attrs, inputs, message):
    with pytest.raises(InvalidArgumentError) as refusal:
        infer_op(op, *inputs.split(), attrs=attrs)
    assert message in str(refusal.value)
