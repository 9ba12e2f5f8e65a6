"""Random numbers. Expected values are TensorFlow's."""

import re

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
INT32 = DataType.DT_INT32
OF_FLOATS = {"T": FLOAT}


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        ("RandomUniform", {"dtype": FLOAT, "T": INT32}, "[2]", {0: ints(3, 4)}, "[3,4]"),
        ("TruncatedNormal", {"dtype": FLOAT, "T": INT32}, "[2]", None, "[?,?]"),
        ("RandomGamma", {"S": INT32, "T": FLOAT}, "[2] [5,?]", {0: ints(3, 4)}, "[3,4,d1_0,d1_1]"),
        ("Multinomial", OF_FLOATS, "[5,3] []", {1: np.int32(7)}, "[d0_0,7]"),
        ("RandomIndexShuffle", {"dtype": INT32, "Tseed": INT32}, "[] [3] []", None, "[]"),
        ("RandomIndexShuffle", {"dtype": INT32, "Tseed": INT32}, "[] [4,3] [1]", None, "[4]"),
        ("RandomIndexShuffle", {"dtype": INT32, "Tseed": INT32}, "? [3] []", None, "?"),
    ],
)
def test_stateful(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "RandomUniformInt",
            {"Tout": INT32, "T": INT32},
            "[2] [] [1]",
            "maxval must be a scalar; got a tensor of shape [1]",
        ),
        (
            "ParameterizedTruncatedNormal",
            {"dtype": FLOAT, "T": INT32},
            "[2] [1,1] [] [] []",
            "Shape must be at most rank 1 but is rank 2",
        ),
        ("Multinomial", OF_FLOATS, "[5] []", "Shape must be rank 2 but is rank 1"),
        (
            "RandomIndexShuffle",
            {"dtype": INT32, "Tseed": INT32},
            "[4] [5,3] []",
            "Seed has length 5 but must have length 4",
        ),
        (
            "RandomIndexShuffle",
            {"dtype": INT32, "Tseed": INT32},
            "[4] [2] []",
            "Seed must have shape [3] or [n, 3] but got [2].",
        ),
    ],
)
def test_stateful_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        ("StatefulUniform", {"dtype": FLOAT}, "[] [] [2]", {2: ints(3, 4)}, "[3,4]"),
        ("StatefulRandomBinomial", {"S": INT32}, "[] [1] [2] [] []", None, "[?,?]"),
        ("StatefulStandardNormal", {}, "[] [1]", {1: ints(6)}, "[6]"),
        ("RngReadAndSkip", {}, "[] [] []", None, "[3]"),
        ("AnonymousSeedGenerator", {}, "[1] [] []", None, "[];[]"),
    ],
)
def test_generators(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("StatefulUniform", {"dtype": FLOAT}, "[] [1] [2]", "Shape must be rank 0 but is rank 1"),
        (
            "StatefulUniformInt",
            {},
            "[] [] [2] [] [1]",
            "maxval must be a scalar; got a tensor of shape [1]",
        ),
        ("RngSkip", {}, "[] [] [1]", "Shape must be rank 0 but is rank 1"),
    ],
)
def test_generators_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        ("StatelessRandomUniform", {"T": INT32}, "[2] [2]", {0: ints(3, 4)}, "[3,4]"),
        ("StatelessMultinomial", OF_FLOATS, "[5,3] [] [2]", {1: np.int32(7)}, "[d0_0,7]"),
        ("StatelessRandomGetKeyCounterAlg", {}, "[2]", None, "[1];[2];[]"),
    ],
)
def test_seeds(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("StatelessRandomUniform", {"T": INT32}, "[2] [3]", "Dimension must be 2 but is 3"),
        (
            "StatelessRandomUniformInt",
            {"T": INT32, "dtype": INT32},
            "[2] [2] [1] []",
            "minval must be a scalar; got a tensor of shape [1]",
        ),
        ("StatelessMultinomial", OF_FLOATS, "[5] [] [3]", "Dimension must be 2 but is 3"),
        (
            "StatelessParameterizedTruncatedNormal",
            {"S": INT32, "dtype": FLOAT},
            "[1] [2] [2] [3] [] []",
            "Dimensions must be equal, but are 2 and 3",
        ),
        ("StatelessRandomGetKeyCounter", {}, "[3]", "Dimension must be 2 but is 3"),
    ],
)
def test_seeds_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        ("StatelessRandomUniformV2", {}, "[2] [1] [2] []", {0: ints(3, 4)}, "[3,4]"),
        ("StatelessShuffle", OF_FLOATS, "[4,?] [] [] []", None, "in0"),
        ("StochasticCastToInt", {"Tin": FLOAT, "Tout": INT32}, "[4,?] [1] [2] []", None, "in0"),
    ],
)
def test_keys(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("StatelessRandomUniformV2", {}, "[2] [2] [2] []", "Dimension must be 1 but is 2"),
        (
            "StatelessRandomUniformIntV2",
            {"dtype": INT32},
            "[2] [1] [2] [] [] [1]",
            "maxval must be a scalar; got a tensor of shape [1]",
        ),
        (
            "StochasticCastToInt",
            {"Tin": FLOAT, "Tout": INT32},
            "[4,?] [1] [2] [1]",
            "Shape must be rank 0 but is rank 1",
        ),
    ],
)
def test_keys_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
