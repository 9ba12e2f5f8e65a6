"""Shapes of ops of sets: the answers are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

INFERRED = [
    (
        "DenseToDenseSetOperation",
        {"set_operation": "union", "T": DataType.DT_INT32},
        "[2,3,4] [2,?,5]",
        "[?,3];[?];[3]",
    ),
    (
        "DenseToDenseSetOperation",
        {"set_operation": "union", "T": DataType.DT_INT32},
        "? [3,3,5]",
        "[?,3];[?];[3]",
    ),
    (
        "DenseToSparseSetOperation",
        {"set_operation": "union", "T": DataType.DT_INT32},
        "[2,3] [?,2] [?] [2]",
        "[?,2];[?];[2]",
    ),
    (
        "SparseToSparseSetOperation",
        {"set_operation": "union", "T": DataType.DT_INT32},
        "? [4] [2] [?,2] ? ?",
        "[?,d2_0];[?];[d2_0]",
    ),
    ("SetSize", {"T": DataType.DT_INT32}, "? ? ?", "?"),
]

REFUSED = [
    (
        "DenseToDenseSetOperation",
        {"set_operation": "union", "T": DataType.DT_INT32},
        "[2,3,4] [3,3,5]",
        "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2,3] and [3,3].",
    ),
    (
        "DenseToSparseSetOperation",
        {"set_operation": "union", "T": DataType.DT_INT32},
        "[2,3] [?,3] [?] [3]",
        "Dimension must be 2 but is 3",
    ),
    (
        "SparseToSparseSetOperation",
        {"set_operation": "union", "T": DataType.DT_INT32},
        "? [4] [1] ? ? ?",
        "Input 0, expected rank >= 2, got 1.",
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
