"""Fourier transforms. Expected values are TensorFlow's."""

import re

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        ("FFT", {}, "[2,3]", None, "in0"),
        ("FFTND", {}, "[2,3] [?] [?]", None, "in0"),
        ("BatchFFT", {}, "[2,3]", None, "?"),
        ("RFFT", {}, "[2,8] [1]", None, "[d0_0,?]"),
        ("RFFT", {}, "[2,8] [1]", {1: ints(8)}, "[d0_0,5]"),
        ("IRFFT", {}, "[2,5] [1]", {1: ints(8)}, "[d0_0,8]"),
        ("RFFT2D", {}, "[7,4,8] [2]", {1: ints(6, 0)}, "[d0_0,6,0]"),
        ("RFFT2D", {}, "[7,4,8] [2]", {1: ints(-1, -1)}, "[d0_0,?,1]"),
    ],
)
def test_transforms(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("FFT", {}, "[]", "Shape must be at least rank 1 but is rank 0"),
        ("IFFT2D", {}, "[3]", "Shape must be at least rank 2 but is rank 1"),
        ("RFFT3D", {}, "[4,8] [3]", "Shape must be at least rank 3 but is rank 2"),
        ("RFFT2D", {}, "[4,8] [3]", "Dimension must be 2 but is 3"),
        ("RFFT2D", {}, "[4,8] [2,1]", "Shape must be rank 1 but is rank 2"),
    ],
)
def test_transforms_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
