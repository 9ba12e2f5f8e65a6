"""Shapes of ops of collectives: the answers are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

INFERRED = [
    ("CollectiveGatherV2", {"T": DataType.DT_FLOAT}, "[3,?] [] [] []", "[?,d0_1]"),
    (
        "CollectiveReduceV2",
        {"T": DataType.DT_FLOAT, "merge_op": "Add", "final_op": "Id"},
        "[3,?] [] [] []",
        "in0",
    ),
    (
        "AllToAll",
        {"T": DataType.DT_FLOAT, "concat_dimension": 0, "split_dimension": 1, "split_count": 2},
        "[2,4,?] [3,2]",
        "[4,2,d0_2]",
    ),
    (
        "AllToAll",
        {"T": DataType.DT_FLOAT, "concat_dimension": 0, "split_dimension": 1, "split_count": 2},
        "[?,4] [3,2]",
        "?",
    ),
]

REFUSED = [
    (
        "CollectiveGatherV2",
        {"T": DataType.DT_FLOAT},
        "[] [] [] []",
        "Shape must be at least rank 1 but is rank 0",
    ),
    (
        "AllToAll",
        {"T": DataType.DT_FLOAT, "concat_dimension": 0, "split_dimension": 1, "split_count": 2},
        "[2,5] [3,2]",
        "input dimension 5 not divisible by split_count 2",
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
