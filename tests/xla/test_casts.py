"""Casts of numbers that fit no integer: the values that TensorFlow's kernels give for single numbers."""

import numpy as np
import pytest
from tests.xla.single_ops import compiled

pytest.importorskip("jax")
pytestmark = pytest.mark.jax

NAN, INF = float("nan"), float("inf")
VALUES = [NAN, INF, -INF, 300.7, -200.2, 7e4, 3e9, -3e9, 1e19, -1e19, -0.5]
# Recorded from Cast of TensorFlow 2.21, one number a call.
WANTED = {
    "int8": [0, 0, 0, 44, 56, 112, 0, 0, 0, 0, 0],
    "int16": [0, 0, 0, 300, -200, 4464, 0, 0, 0, 0, 0],
    "int32": [-(2**31), -(2**31), -(2**31), 300, -200, 70000, *[-(2**31)] * 4, 0],
    "int64": [*[-(2**63)] * 3, 300, -200, 70000, 3 * 10**9, -3 * 10**9, *[-(2**63)] * 2, 0],
    "uint8": [0, 0, 0, 44, 56, 112, 0, 0, 0, 0, 0],
    "uint16": [0, 0, 0, 300, 65336, 4464, 0, 0, 0, 0, 0],
    "uint32": [0, 0, 0, 300, 2**32 - 200, 70000, 3 * 10**9, 2**32 - 3 * 10**9, 0, 0, 0],
}


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", WANTED)
def test_numbers_that_fit_no_integer(source, target):
    found = compiled("Cast", np.array(VALUES, source), DstT=target)
    assert found.dtype == target
    assert found.tolist() == WANTED[target]


@pytest.mark.parametrize("value", [2.0**63, 1e19, 2.0**53 + 2])
def test_large_unsigned_numbers(value):
    found = compiled("Cast", np.array([value]), DstT="uint64")
    assert found.tolist() == [int(value)]
