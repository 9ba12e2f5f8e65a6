"""Special functions and selections from rows. Expected values are TensorFlow's."""

import re

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
OF_FLOATS = {"T": FLOAT}


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("BesselI0", OF_FLOATS, "[2,?]", "in0"),
        ("Betainc", OF_FLOATS, "[2,?] [] [2,3]", "in2"),
        ("Betainc", OF_FLOATS, "[] [?,3] []", "in1"),
        ("Betainc", OF_FLOATS, "[] [] []", "in0"),
        ("Betainc", OF_FLOATS, "[] ? []", "in1"),
        ("IgammaGradA", OF_FLOATS, "[2,1] [3]", "[d0_0,d1_0]"),
        ("IsotonicRegression", OF_FLOATS, "[2,3]", "in0;in0"),
        ("Fact", {}, "", "?"),
    ],
)
def test_special_functions(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "Betainc",
            OF_FLOATS,
            "[2] [3] []",
            "Dimension 0 in both shapes must be equal, but are 2 and 3",
        ),
    ],
)
def test_special_functions_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        ("KthOrderStatistic", {"k": 2}, "[4,?]", None, "[d0_0]"),
        ("TopKUnique", {"k": 2}, "[4,8]", None, "[d0_0,2];[d0_0,2]"),
        ("SobolSample", {}, "[] [] []", None, "[?,?]"),
        ("SobolSample", {}, "[] [] []", {0: np.int32(3), 1: np.int32(5)}, "[5,3]"),
    ],
)
def test_selections(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("MakeUnique", {}, "[4]", "Shape must be rank 2 but is rank 1"),
        ("SobolSample", {}, "[] [1] []", "Shape must be rank 0 but is rank 1"),
    ],
)
def test_selections_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
