import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.opdef.text.debug_string import double_text, float_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1 / 3, "0.333333343"),
        (123456789.0, "123456792"),
        (1e6, "1e+06"),
        (1e10, "1e+10"),
        (1e-45, "1.4013e-45"),
        (3.4028235e38, "3.40282347e+38"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (math.copysign(math.nan, -1), "-nan"),
    ],
)
def test_float32(value, text):
    assert float_text(float(np.float32(value))) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1 / 3, "0.33333333333333331"), (1e300, "1e+300"), (math.inf, "inf")],
)
def test_float64(value, text):
    assert double_text(value) == text


@given(st.floats(width=32, allow_nan=False))
def test_float32_reads_back(value):
    assert np.float32(float_text(value)) == np.float32(value)


@given(st.floats(allow_nan=False))
def test_float64_reads_back(value):
    assert float(double_text(value)) == value
