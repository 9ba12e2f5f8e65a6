import pytest

import opkernel.types as ok

# In the order of the enum, which attr specs list them in.
NUMBERS = (
    "float double int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 qint16 "
    "quint16 uint16 complex128 half uint32 uint64"
)
REAL = "float double int32 uint8 int16 int8 int64 bfloat16 uint16 half uint32 uint64"
REAL_AND_QUANTIZED = (
    "float double int32 uint8 int16 int8 int64 qint8 quint8 qint32 bfloat16 qint16 quint16 uint16 "
    "half"
)
FLOATING = (
    "float double bfloat16 half float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz "
    "float8_e5m2fnuz float4_e2m1fn"
)


@pytest.mark.parametrize(
    ("group", "names"),
    [
        (ok.NUMBER_TYPES, NUMBERS),
        (ok.REAL_NUMBER_TYPES, REAL),
        (ok.REAL_AND_QUANTIZED_TYPES, REAL_AND_QUANTIZED),
        (ok.QUANTIZED_TYPES, "qint8 quint8 qint32 qint16 quint16"),
        (ok.FLOATING_TYPES, FLOATING),
        (ok.COMPLEX_TYPES, "complex64 complex128"),
        (ok.SIGNED_TYPES, "int32 int16 int8 int64 int4 int2"),
        (ok.UNSIGNED_TYPES, "uint8 uint16 uint32 uint64 uint4 uint2"),
        (
            ok.INTEGER_TYPES,
            "int32 uint8 int16 int8 int64 uint16 uint32 uint64 int4 uint4 int2 uint2",
        ),
    ],
)
def test_members(group, names):
    assert [dtype.string for dtype in group] == names.split()


def test_all_types_are_those_of_tensorflow():
    assert [int(dtype) for dtype in ok.ALL_TYPES] == list(range(1, 33))
