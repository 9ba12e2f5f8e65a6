"""Shapes of ops of connectionist temporal classification: the answers are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError

INFERRED = [
    ("CTCLoss", {}, "[5,?,7] [4,2] [4] [3]", "[d3_0];[d0_0,d3_0,d0_2]"),
    ("CTCGreedyDecoder", {}, "[5,2,7] [?]", "[?,2];[?];[2];[d0_1,1]"),
    (
        "CTCBeamSearchDecoder",
        {"beam_width": 2, "top_paths": 2},
        "[5,?,7] [3]",
        "[?,2];[?,2];[?];[?];[2];[2];[d1_0,2]",
    ),
]

REFUSED: list[tuple[str, dict[str, int], str, str]] = [
    ("CTCLoss", {}, "[5,2,7] [4,2] [4] [3]", "Dimensions must be equal, but are 2 and 3"),
]


@pytest.mark.parametrize(("op", "attrs", "inputs", "outputs"), INFERRED)
def test_shapes_follow_from_the_inputs(infer_op, op, attrs, inputs, outputs):
    assert infer_op(op, *inputs.split(), attrs=attrs) == outputs


@pytest.mark.parametrize(("op", "attrs", "inputs", "message"), REFUSED)
def test_inputs_that_do_not_fit_are_refused(infer_op, op, attrs, inputs, message):
    with pytest.raises(InvalidArgumentError) as refusal:
        infer_op(op, *inputs.split(), attrs=attrs)
    assert message in str(refusal.value)
