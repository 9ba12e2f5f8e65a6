"""Shapes of ops of files and checkpoints: the answers are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

INFERRED = [
    ("SaveV2", {"dtypes": [DataType.DT_FLOAT, DataType.DT_FLOAT]}, "[] [2] [?] ? ?", ""),
    ("RestoreV2", {"dtypes": [DataType.DT_FLOAT]}, "[] [1] [1]", "?"),
    ("ReaderReadUpTo", {}, "[2] [2] []", "[?];[?]"),
    ("ReaderReadV2", {}, "[] []", "[];[]"),
    ("MatchingFiles", {}, "[3]", "[?]"),
    ("GenerateVocabRemapping", {"new_vocab_offset": 0, "num_new_vocab": 7}, "[] []", "[7];[]"),
    ("LoadAndRemapMatrix", {"num_rows": 2, "num_cols": 3}, "[3] [] ? ? ?", "[2,3]"),
    ("ShardedFilename", {}, "[] [] []", "[]"),
]

REFUSED = [
    (
        "SaveV2",
        {"dtypes": [DataType.DT_FLOAT, DataType.DT_FLOAT]},
        "[] [3] [?] ? ?",
        "Dimension must be 2 but is 3",
    ),
    (
        "RestoreV2",
        {"dtypes": [DataType.DT_FLOAT]},
        "[] [1] [2]",
        "Dimension 0 in both shapes must be equal, but are 1 and 2. Shapes are [1] and [2].",
    ),
    ("ReaderRead", {}, "[2] [3]", "Dimension must be 2 but is 3"),
    ("MatchingFiles", {}, "[3,1]", "Shape must be at most rank 1 but is rank 2"),
    ("ReadFile", {}, "[2]", "Shape must be rank 0 but is rank 1"),
]


@pytest.mark.parametrize(("op", "attrs", "inputs", "outputs"), INFERRED)
def test_shapes_follow_from_the_inputs(infer_op, op, attrs, inputs, outputs):
    assert infer_op(op, *inputs.split(), attrs=attrs) == outputs


@pytest.mark.parametrize(("op", "attrs", "inputs", "message"), REFUSED)
def test_inputs_that_do_not_fit_are_refused(infer_op, op, attrs, inputs, message):
    with pytest.raises(InvalidArgumentError) as refusal:
        infer_op(op, *inputs.split(), attrs=attrs)
    assert message in str(refusal.value)
