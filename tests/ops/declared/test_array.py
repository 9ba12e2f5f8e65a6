"""Copies and constants. Expected values are TensorFlow's."""

import re

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType, PartialTensorShape

FLOAT = DataType.DT_FLOAT
OF_FLOATS = {"T": FLOAT}


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        ("Copy", OF_FLOATS, "[2,?]", None, "in0"),
        ("Empty", {"dtype": FLOAT}, "[2]", {0: ints(3, 4)}, "[3,4]"),
        ("InplaceAdd", OF_FLOATS, "[2,?] [1] [1,3]", None, "in0"),
        ("HostConst", {"dtype": FLOAT, "value": np.zeros(3, np.float32)}, "", None, "?"),
        (
            "ImmutableConst",
            {"dtype": FLOAT, "shape": PartialTensorShape([2, 3]), "memory_region_name": ""},
            "",
            None,
            "[2,3]",
        ),
    ],
)
def test_copies(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        (
            "ParallelConcat",
            {"T": FLOAT, "N": 2, "shape": PartialTensorShape([2, 3])},
            "[1,3] [1,3]",
            "[2,3]",
        ),
    ],
)
def test_parallel_concat(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "ParallelConcat",
            {"T": FLOAT, "N": 2, "shape": PartialTensorShape([2, 3])},
            "[1,3] [1,4]",
            "Dimension 1 in both shapes must be equal, but are 4 and 3",
        ),
        (
            "ParallelConcat",
            {"T": FLOAT, "N": 2, "shape": PartialTensorShape([2, 3])},
            "[1,?] [1,3]",
            "All input shapes must be fully defined.",
        ),
        (
            "ParallelConcat",
            {"T": FLOAT, "N": 2, "shape": PartialTensorShape([2, 3])},
            "[] [1,3]",
            "The rank of all input shapes must be greater than 0, but input 0 had rank 0.",
        ),
        (
            "ParallelConcat",
            {"T": FLOAT, "N": 2, "shape": PartialTensorShape([2, 3])},
            "[2,3] [1,3]",
            "Size of first dimension must be 1.",
        ),
    ],
)
def test_parallel_concat_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
