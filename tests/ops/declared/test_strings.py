"""Shapes of ops of strings: the answers are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

INFERRED = [
    ("RegexReplace", {}, "[2,?] [] []", "in0"),
    ("RegexFullMatch", {}, "[2,?] []", "in0"),
    ("Substr", {"T": DataType.DT_INT32}, "[4,3] [3] [3]", "[d0_0,d0_1]"),
    ("Substr", {"T": DataType.DT_INT32}, "[4] ? []", "?"),
    ("StringSplitV2", {}, "[3] []", "[?,2];[?];[2]"),
    (
        "StringNGrams",
        {
            "separator": "",
            "ngram_widths": [2],
            "left_pad": "",
            "right_pad": "",
            "pad_width": 0,
            "preserve_short_sequences": False,
        },
        "[5] [3]",
        "[?];in1",
    ),
    ("UnicodeDecode", {"input_encoding": "UTF-8"}, "[2,3]", "[7];[?]"),
    ("UnicodeEncode", {"output_encoding": "UTF-8"}, "[5] [3]", "[2]"),
    ("StringToHashBucketFast", {"num_buckets": 3}, "[2,?]", "in0"),
    ("UnsortedSegmentJoin", {"Tindices": DataType.DT_INT32}, "[4,5] [4] []", "[?,d0_1]"),
]

REFUSED = [
    ("RegexReplace", {}, "[2,?] [] [1]", "Shape must be rank 0 but is rank 1"),
    (
        "Substr",
        {"T": DataType.DT_INT32},
        "[4] [3] [2]",
        "pos and len shapes must match: [3] vs. [2]",
    ),
    ("Substr", {"T": DataType.DT_INT32}, "[4] [] [2]", "Shape must be rank 1 but is rank 0"),
    ("StringSplitV2", {}, "[3] [1]", "Shape must be rank 0 but is rank 1"),
    (
        "UnicodeEncode",
        {"output_encoding": "UTF-8"},
        "[5] [0]",
        "Negative dimension size caused by subtracting 1 from 0",
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
