from functools import partial

import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError

f32 = partial(np.array, dtype=np.float32)
f64 = partial(np.array, dtype=np.float64)
c64 = partial(np.array, dtype=np.complex64)
c128 = partial(np.array, dtype=np.complex128)
i32 = partial(np.array, dtype=np.int32)
i64 = partial(np.array, dtype=np.int64)
u8 = partial(np.array, dtype=np.uint8)


def cast(x, target, **attrs):
    return raw_ops.Cast(x=x, DstT=target, **attrs)


@pytest.mark.parametrize(
    ("x", "target", "expected"),
    [
        (f32([1.9, -1.9, 300.5]), "int32", [1, -1, 300]),
        (f32([np.nan, 1e10]), "int32", [-(2**31), -(2**31)]),
        (np.array([np.inf], ml_dtypes.float8_e5m2), "int64", [-(2**63)]),
        (i32([-1, 257]), "uint8", [255, 1]),
        (i64([0, -3]), "bool", [False, True]),
        (f32([0, np.nan, 0.1, 1e-40]), "bool", [False, True, True, False]),
        (c64([2 + 5j, 1j]), "float32", [2, 0]),
        (c64([2 + 5j, 1j]), "bool", [True, False]),
        (np.array([True, False]), "float64", [1, 0]),
        (np.array([7, -8], ml_dtypes.int4), "uint4", [7, 8]),
        (f64([3.7]), "complex128", [3.7 + 0j]),
        (f32([1.1]), "float8_e4m3fn", [1.125]),
    ],
)
def test_values(x, target, expected):
    assert cast(x, target).tolist() == expected


def test_quantised_types_hold_integers():
    result = cast(f32([3.7, -2]), "qint8")
    assert result.view(np.int8).tolist() == [3, -2]


def test_the_same_type_is_no_work():
    x = f32([1, 2])
    assert cast(x, "float32").tolist() == [1, 2]
    strings = np.array([b"a"], object)
    assert cast(strings, "string").tolist() == [b"a"]


@pytest.mark.parametrize(
    ("x", "target"),
    [
        (i32([1]), "string"),
        (np.array([b"1"], object), "int32"),
        (f32([1]), "int4"),
        (i32([1]), "float8_e5m2"),
        (f32([1]), "float8_e4m3b11fnuz"),
    ],
)
def test_pairs_of_types_that_are_not_supported(x, target):
    with pytest.raises(UnimplementedError, match=f"Cast .* to {target} is not supported"):
        cast(x, target)


@pytest.mark.parametrize(
    ("x", "target", "expected"),
    [
        (f64([3.7]), "float32", 3.6999998),
        (f32([65535.0]), "float16", 65504.0),
        (f32([-3.7]), "bfloat16", -3.6875),
        (c128([3.7 + 3.7j]), "complex64", 3.6999998 + 3.6999998j),
        (f64([3.7]), "bfloat16", 3.703125),
        (f64([np.nan]), "float16", np.nan),
    ],
)
def test_truncate_cuts_digits_off(x, target, expected):
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    result = cast(x, target, Truncate=True).astype(wide)
    np.testing.assert_allclose(result, [expected], rtol=1e-7)


def test_bitcast_between_sizes():
    x = u8([[1, 0, 0, 0], [0, 0, 128, 63]])
    as_float = raw_ops.Bitcast(input=x, type="float32")
    assert as_float.shape == (2,)
    assert as_float[1] == 1.0
    assert raw_ops.Bitcast(input=as_float, type="uint8").tolist() == x.tolist()
    assert raw_ops.Bitcast(input=np.float32(1), type="int32") == 0x3F800000
    assert raw_ops.Bitcast(input=np.float32(1), type="uint8").tolist() == [0, 0, 128, 63]
    assert raw_ops.Bitcast(input=x[0], type="int32") == 1


def test_bitcast_of_views():
    x = np.arange(6, dtype=np.float32).reshape(2, 3).T
    back = raw_ops.Bitcast(input=raw_ops.Bitcast(input=x, type="uint16"), type="float32")
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_bitcast_needs_just_the_bytes_of_one_number(shape):
    with pytest.raises(InvalidArgumentError, match="Cannot bitcast from 4 to 3"):
        raw_ops.Bitcast(input=np.zeros(shape, np.uint8), type="int32")
