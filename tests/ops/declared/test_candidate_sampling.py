"""Samplers of classes. Expected values are TensorFlow's."""

import re

import pytest

from opkernel.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        (
            "UniformCandidateSampler",
            {"num_true": 2, "num_sampled": 5, "unique": True, "range_max": 9},
            "[?,2]",
            "[5];[d0_0,2];[5]",
        ),
        ("ComputeAccidentalHits", {"num_true": 2}, "[4,2] [5]", "[?];[?];[?]"),
    ],
)
def test_samplers(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "LogUniformCandidateSampler",
            {"num_true": 2, "num_sampled": 5, "unique": True, "range_max": 9},
            "[2]",
            "Shape must be rank 2 but is rank 1",
        ),
        ("ComputeAccidentalHits", {"num_true": 2}, "[4,3] [5]", "Dimension must be 2 but is 3"),
        (
            "ComputeAccidentalHits",
            {"num_true": 2},
            "[4,2] [5,1]",
            "Shape must be rank 1 but is rank 2",
        ),
    ],
)
def test_samplers_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
