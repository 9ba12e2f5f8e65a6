"""Shapes of ops of ragged tensors: the answers are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

INFERRED = [
    ("RaggedRange", {}, "[] [3] []", "[4];[?]"),
    ("RaggedRange", {}, "[] [] []", "[2];[?]"),
    (
        "RaggedGather",
        {
            "PARAMS_RAGGED_RANK": 1,
            "OUTPUT_RAGGED_RANK": 1,
            "Tvalues": DataType.DT_FLOAT,
            "Tindices": DataType.DT_INT32,
        },
        "[3] [5,2] [4]",
        "[?];[?,d1_1]",
    ),
    (
        "RaggedTensorToSparse",
        {"RAGGED_RANK": 1, "T": DataType.DT_FLOAT},
        "[3] [5,2]",
        "[10,3];[10];[3]",
    ),
    (
        "RaggedTensorToVariant",
        {"RAGGED_RANK": 1, "Tvalues": DataType.DT_FLOAT, "batched_input": True},
        "[3] [5]",
        "[2]",
    ),
    (
        "RaggedTensorFromVariant",
        {"input_ragged_rank": 1, "output_ragged_rank": 2, "Tvalues": DataType.DT_FLOAT},
        "[3]",
        "[?];[?];?",
    ),
    ("RaggedFillEmptyRows", {"T": DataType.DT_FLOAT}, "[4] [4] [] []", "[?];[?];[?];[d0_0]"),
    (
        "RaggedTensorToTensor",
        {
            "T": DataType.DT_FLOAT,
            "Tindex": DataType.DT_INT64,
            "Tshape": DataType.DT_INT64,
            "num_row_partition_tensors": 1,
            "row_partition_types": ["ROW_SPLITS"],
        },
        "[3] [5,2] [] [4]",
        "[?,?,2]",
    ),
]

REFUSED = [
    ("RaggedRange", {}, "[2] [3] []", "Dimensions must be equal, but are 3 and 2"),
    (
        "RaggedGather",
        {
            "PARAMS_RAGGED_RANK": 1,
            "OUTPUT_RAGGED_RANK": 1,
            "Tvalues": DataType.DT_FLOAT,
            "Tindices": DataType.DT_INT32,
        },
        "[3] [5,2] [4,4]",
        "Shape must be rank 1 but is rank 2",
    ),
    (
        "RaggedTensorToVariant",
        {"RAGGED_RANK": 1, "Tvalues": DataType.DT_FLOAT, "batched_input": True},
        "[3] []",
        "Shape must be at least rank 1 but is rank 0",
    ),
    (
        "RaggedTensorFromVariant",
        {"input_ragged_rank": 1, "output_ragged_rank": 2, "Tvalues": DataType.DT_FLOAT},
        "[]",
        "Shape must be rank 1 but is rank 0",
    ),
    (
        "RaggedTensorToTensor",
        {
            "T": DataType.DT_FLOAT,
            "Tindex": DataType.DT_INT64,
            "Tshape": DataType.DT_INT64,
            "num_row_partition_tensors": 1,
            "row_partition_types": ["ROW_SPLITS"],
        },
        "[2] [5,2] [] [4]",
        "rt_input.shape and shape=[?,?] are incompatible: rt_input.rank = 3 but shape.rank = 2",
    ),
    (
        "RaggedTensorToTensor",
        {
            "T": DataType.DT_FLOAT,
            "Tindex": DataType.DT_INT64,
            "Tshape": DataType.DT_INT64,
            "num_row_partition_tensors": 1,
            "row_partition_types": ["VALUE_ROWIDS"],
        },
        "[3] [5,2] [] [4]",
        "VALUE_ROWIDS cannot be first",
    ),
    (
        "RaggedTensorToTensor",
        {
            "T": DataType.DT_FLOAT,
            "Tindex": DataType.DT_INT64,
            "Tshape": DataType.DT_INT64,
            "num_row_partition_tensors": 1,
            "row_partition_types": ["ROW_SPLITS"],
        },
        "[3] [5,2] [3] [4]",
        "default_value.shape=[3] and rt_input.flat_values.shape=[5,2] are incompatible: default_value.shape[-1] = 3 but rt_input.flat_values.shape[-1] = 2",
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
