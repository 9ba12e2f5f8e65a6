from functools import partial

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opkernel import raw_ops
from opkernel.errors import InternalError, InvalidArgumentError

f32 = partial(np.array, dtype=np.float32)
c64 = partial(np.array, dtype=np.complex64)
c128 = partial(np.array, dtype=np.complex128)

NAN, INF = np.nan, np.inf


def of_integers(op, x, y, dtype=np.int32):
    return getattr(raw_ops, op)(x=np.array(x, dtype), y=np.array(y, dtype)).tolist()


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Div", [3, -3, -3, 3]),
        ("TruncateDiv", [3, -3, -3, 3]),
        ("FloorDiv", [3, -4, -4, 3]),
        ("FloorMod", [1, 1, -1, -1]),
        ("Mod", [1, -1, 1, -1]),
        ("TruncateMod", [1, -1, 1, -1]),
    ],
)
def test_rounding_of_integers(op, expected):
    assert of_integers(op, [7, -7, 7, -7], [2, 2, -2, -2]) == expected


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize("op", ["Div", "TruncateDiv", "FloorDiv"])
def test_the_smallest_integer_by_minus_one_wraps_around(op, dtype):
    smallest = int(np.iinfo(dtype).min)
    assert of_integers(op, [smallest], [-1], dtype) == [smallest]
    assert of_integers("FloorMod", [smallest], [-1], dtype) == [0]


@pytest.mark.parametrize("op", ["Div", "FloorDiv", "FloorMod", "Mod"])
def test_integer_division_by_zero(op):
    with pytest.raises(InvalidArgumentError, match="Integer division by zero"):
        of_integers(op, [1, 2], [1, 0])
    assert of_integers(op, np.zeros((0,)), [0]) == []


@pytest.mark.parametrize("op", ["TruncateDiv", "TruncateMod"])
def test_truncating_ops_report_division_by_zero_as_internal(op):
    with pytest.raises(InternalError, match="binary operator"):
        of_integers(op, [1], [0])


@given(
    hnp.arrays(np.int16, 5),
    hnp.arrays(np.int16, 5, elements=st.integers(-300, 300).filter(lambda y: y != 0)),
)
def test_quotient_and_remainder_make_up_the_dividend(x, y):
    for divide, remainder in (("FloorDiv", "FloorMod"),):
        quotient = getattr(raw_ops, divide)(x=x, y=y)
        rest = getattr(raw_ops, remainder)(x=x, y=y)
        np.testing.assert_array_equal(quotient * y + rest, x)
        assert np.all((rest == 0) | ((rest < 0) == (y < 0)))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("FloorDiv", [3, -4, INF, 0, NAN, -0.0, -INF]),
        ("TruncateDiv", [3, -3, INF, 0, NAN, -0.0, -INF]),
        ("FloorMod", [1, 1, NAN, 1, NAN, INF, NAN]),
    ],
)
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.float64])
def test_floats(op, expected, dtype):
    x = np.array([7, -7, INF, 1, 0, -1, -1], dtype)
    y = np.array([2, 2, 2, INF, 0, INF, 0], dtype)
    result = getattr(raw_ops, op)(x=x, y=y)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(np.float64), expected)


def test_quotients_are_rounded_before_they_are_cut():
    x, y = np.array([10], ml_dtypes.bfloat16), np.array([-1.4297], ml_dtypes.bfloat16)
    assert raw_ops.TruncateDiv(x=x, y=y).astype(np.float32).tolist() == [-7]


def test_guarded_quotients():
    x, y = f32([1, NAN, 0, 3]), f32([0, 0, NAN, 2])
    np.testing.assert_array_equal(raw_ops.DivNoNan(x=x, y=y), f32([0, 0, NAN, 1.5]))
    np.testing.assert_array_equal(
        raw_ops.Xdivy(x=f32([0, 0, 1]), y=f32([NAN, 0, 0])), f32([0, 0, INF])
    )


def test_complex_quotients():
    x, y = c64([4 + 2j, 1, 0]), c64([1 + 1j, INF, 1e-30])
    np.testing.assert_allclose(raw_ops.RealDiv(x=x, y=y), [3 - 1j, NAN + NAN * 1j, 0])
    assert raw_ops.Reciprocal(x=c128([2j])).tolist() == [-0.5j]
