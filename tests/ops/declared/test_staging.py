"""Shapes of ops that keep tensors between steps. Expected values are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import float32, int32

DTYPES = {"dtypes": [float32, int32]}


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("Stage", DTYPES, ["[2]", "[3]"], ""),
        ("Unstage", DTYPES, [], "?;?"),
        ("StageSize", DTYPES, [], "[]"),
        ("MapStage", {**DTYPES, "fake_dtypes": [float32]}, ["[]", "[1]", "[2]"], ""),
        ("OrderedMapUnstageNoKey", DTYPES, ["[1]"], "?;?;?"),
        ("MapIncompleteSize", DTYPES, [], "[]"),
        ("TensorMapInsert", {"key_dtype": int32, "value_dtype": float32}, ["[3]", "?", "?"], "[]"),
        ("TensorMapLookup", {"key_dtype": int32, "value_dtype": float32}, ["[]", "[]"], "?"),
        ("GetSessionHandleV2", {"T": float32}, ["[7]"], "[]"),
        ("GetSessionTensor", {"dtype": float32}, ["[]"], "?"),
    ],
)
def test_outputs(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs, attrs=attrs) == expected


def test_handles_of_sessions_are_scalars(infer_op):
    with pytest.raises(InvalidArgumentError, match="must be rank 0 but is rank 1"):
        infer_op("GetSessionTensor", "[1]", attrs={"dtype": float32})
