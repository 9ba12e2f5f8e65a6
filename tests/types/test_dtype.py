import json
import pickle

import ml_dtypes
import numpy as np
import pytest

import opkernel.types as ok
from opkernel.errors import InvalidArgumentError
from opkernel.proto import AttrValue, TensorProto
from opkernel.types import DataType, as_dtype

# number, DataTypeString, tf.DType.name, bytes, NumPy dtype here, kind
TABLE = [
    (1, "float", "float32", 4, np.float32, "floating"),
    (2, "double", "float64", 8, np.float64, "floating"),
    (3, "int32", "int32", 4, np.int32, "integer"),
    (4, "uint8", "uint8", 1, np.uint8, "unsigned"),
    (5, "int16", "int16", 2, np.int16, "integer"),
    (6, "int8", "int8", 1, np.int8, "integer"),
    (7, "string", "string", 0, object, ""),
    (8, "complex64", "complex64", 8, np.complex64, "complex"),
    (9, "int64", "int64", 8, np.int64, "integer"),
    (10, "bool", "bool", 1, np.bool_, "bool"),
    (11, "qint8", "qint8", 1, np.int8, "quantized"),
    (12, "quint8", "quint8", 1, np.uint8, "quantized"),
    (13, "qint32", "qint32", 4, np.int32, "quantized"),
    (14, "bfloat16", "bfloat16", 2, ml_dtypes.bfloat16, "floating"),
    (15, "qint16", "qint16", 2, np.int16, "quantized"),
    (16, "quint16", "quint16", 2, np.uint16, "quantized"),
    (17, "uint16", "uint16", 2, np.uint16, "unsigned"),
    (18, "complex128", "complex128", 16, np.complex128, "complex"),
    (19, "half", "float16", 2, np.float16, "floating"),
    (20, "resource", "resource", 0, object, ""),
    (21, "variant", "variant", 0, object, ""),
    (22, "uint32", "uint32", 4, np.uint32, "unsigned"),
    (23, "uint64", "uint64", 8, np.uint64, "unsigned"),
    (24, "float8_e5m2", "float8_e5m2", 1, ml_dtypes.float8_e5m2, "floating"),
    (25, "float8_e4m3fn", "float8_e4m3fn", 1, ml_dtypes.float8_e4m3fn, "floating"),
    (26, "float8_e4m3fnuz", "float8_e4m3fnuz", 1, ml_dtypes.float8_e4m3fnuz, "floating"),
    (27, "float8_e4m3b11fnuz", "float8_e4m3b11fnuz", 1, ml_dtypes.float8_e4m3b11fnuz, "floating"),
    (28, "float8_e5m2fnuz", "float8_e5m2fnuz", 1, ml_dtypes.float8_e5m2fnuz, "floating"),
    (29, "int4", "int4", 1, ml_dtypes.int4, "integer"),
    (30, "uint4", "uint4", 1, ml_dtypes.uint4, "unsigned"),
    (31, "int2", "int2", 1, ml_dtypes.int2, "integer"),
    (32, "uint2", "uint2", 1, ml_dtypes.uint2, "unsigned"),
    (33, "float4_e2m1fn", "float4_e2m1fn", 1, ml_dtypes.float4_e2m1fn, "floating"),
]
NUMBERS = [row[0] for row in TABLE]


@pytest.mark.parametrize(("number", "string", "tf_name", "size", "numpy_type", "kind"), TABLE)
def test_facts_of_each_type(number, string, tf_name, size, numpy_type, kind):
    dtype = DataType(number)
    assert dtype.name == "DT_" + string.upper()
    assert (dtype.string, dtype.tf_name, dtype.size) == (string, tf_name, size)
    assert dtype.numpy_dtype == np.dtype(numpy_type)
    predicates = {
        "floating": dtype.is_floating,
        "integer": dtype.is_integer,
        "unsigned": dtype.is_unsigned,
        "complex": dtype.is_complex,
        "quantized": dtype.is_quantized,
        "bool": dtype.is_bool,
    }
    expected = {"integer", "unsigned"} if kind == "unsigned" else {kind} - {""}
    assert {name for name, holds in predicates.items() if holds} == expected
    assert dtype.can_memcpy == (size > 0)
    assert dtype.is_numeric == (bool(kind) and kind != "bool" and number < 24)


@pytest.mark.parametrize("number", NUMBERS)
def test_reference_types(number):
    dtype = DataType(number)
    ref = DataType(number + 100)
    assert dtype.ref is ref
    assert ref.ref is ref
    assert ref.base is dtype
    assert dtype.base is dtype
    assert ref.is_ref
    assert not dtype.is_ref
    assert ref.name == dtype.name + "_REF"
    assert (ref.string, ref.tf_name) == (dtype.string + "_ref", dtype.tf_name + "_ref")
    assert (ref.size, ref.numpy_dtype) == (dtype.size, dtype.numpy_dtype)
    assert not any([ref.is_floating, ref.is_integer, ref.is_unsigned, ref.is_complex])
    assert not any([ref.is_quantized, ref.is_bool, ref.is_numeric, ref.can_memcpy])


def test_host_types():
    hosted = {dtype.string for dtype in DataType if dtype.always_on_host}
    assert hosted == {"string", "string_ref", "resource"}


def test_invalid_type():
    invalid = DataType.DT_INVALID
    assert (invalid.string, invalid.size, invalid.is_ref) == ("INVALID", 0, False)
    with pytest.raises(InvalidArgumentError, match="DT_INVALID"):
        _ = invalid.numpy_dtype
    with pytest.raises(InvalidArgumentError):
        DataType.from_string("INVALID")


def test_is_a_number_in_protos_and_a_name_in_texts():
    assert DataType(AttrValue(type=DataType.DT_HALF).type) is ok.half
    assert TensorProto(dtype=ok.qint8.ref).dtype == 111
    assert json.dumps(ok.int32) == "3"
    assert f"{ok.float32} {ok.float16.ref!s:>9}" == "float32 float16_ref"
    assert pickle.loads(pickle.dumps(ok.variant)) is ok.variant


@pytest.mark.parametrize("number", [-1, 34, 100, 134, 5000])
def test_number_of_no_type(number):
    with pytest.raises(InvalidArgumentError, match=str(number)):
        DataType(number)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("float", 1),
        ("float32", 1),
        ("float32_ref", 101),
        ("float_ref", 101),
        ("float64", 2),
        ("double", 2),
        ("half", 19),
        ("float16_ref", 119),
        ("bool", 10),
        ("float4_e2m1fn", 33),
    ],
)
def test_from_string(name, number):
    assert DataType.from_string(name) == number
    assert as_dtype(name) == number


@pytest.mark.parametrize(
    "name",
    ["", "Float", "float ", "_ref", "float_ref_ref", "int", "invalid", "DT_FLOAT", "numbertype"],
)
def test_from_string_of_no_type(name):
    with pytest.raises(InvalidArgumentError, match=f"'{name}'"):
        DataType.from_string(name)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ok.qint8, ok.qint8),
        (101, ok.float32.ref),
        (np.float16, ok.float16),
        (np.dtype(">f4"), ok.float32),
        (np.dtype(np.longlong), ok.int64),
        (np.longlong, ok.int64),
        (np.int8, ok.int8),
        (np.dtype(ml_dtypes.bfloat16), ok.bfloat16),
        (ml_dtypes.int4, ok.int4),
        (np.dtype([("quint8", np.uint8)]), ok.quint8),
        (np.dtype("S3"), ok.string),
        (np.str_, ok.string),
        (np.dtype(object), ok.string),
        (float, ok.float32),
        (bool, ok.bool_),
        (object, ok.string),
    ],
)
def test_as_dtype(value, expected):
    assert as_dtype(value) is expected


@pytest.mark.parametrize(
    "value",
    [None, int, str, complex, 3.5, np.longdouble, np.dtype("M8[s]"), np.dtype([("a", "i4")])],
)
def test_as_dtype_of_no_type(value):
    with pytest.raises(InvalidArgumentError):
        as_dtype(value)


@pytest.mark.parametrize("number", NUMBERS)
def test_numpy_dtypes_lead_back(number):
    dtype = DataType(number)
    back = as_dtype(dtype.as_numpy_dtype)
    assert back is (dtype if dtype.can_memcpy else ok.string)


def test_users_see_quantized_types_as_records():
    assert ok.qint32.as_numpy_dtype == np.dtype([("qint32", np.int32)])
    assert ok.qint32.ref.as_numpy_dtype == np.dtype([("qint32", np.int32)])
    assert ok.float32.as_numpy_dtype == np.float32


@pytest.mark.parametrize(
    ("dtype", "least", "greatest"),
    [
        (ok.int64, -(2**63), 2**63 - 1),
        (ok.uint64, 0, 2**64 - 1),
        (ok.int4, -8, 7),
        (ok.uint2, 0, 3),
        (ok.float16, -65504.0, 65504.0),
        (ok.bfloat16, -3.3895314e38, 3.3895314e38),
        (ok.float8_e4m3fn, -448.0, 448.0),
        (ok.float8_e4m3b11fnuz, -30.0, 30.0),
        (ok.float4_e2m1fn, -6.0, 6.0),
    ],
)
def test_least_and_greatest(dtype, least, greatest):
    assert float(dtype.min) == pytest.approx(least, rel=1e-6)
    assert float(dtype.max) == pytest.approx(greatest, rel=1e-6)


@pytest.mark.parametrize("dtype", [ok.string, ok.bool_, ok.complex64, ok.qint8, ok.resource])
def test_types_without_least(dtype):
    with pytest.raises(InvalidArgumentError, match=dtype.string):
        _ = dtype.min


def test_limits():
    assert ok.float32.limits == (0, 1)
    assert ok.int16.limits == (0, 32767)
    assert ok.bool_.limits == (0, True)
    for dtype in (ok.float16, ok.int4, ok.qint8, ok.string):
        with pytest.raises(InvalidArgumentError, match=dtype.string):
            _ = dtype.limits


def test_constants_carry_the_names_of_the_python_api():
    for _, _, tf_name, *_ in TABLE:
        constant = getattr(ok, "bool_" if tf_name == "bool" else tf_name)
        assert constant.tf_name == tf_name
    assert ok.half is ok.float16
    assert ok.double is ok.float64
