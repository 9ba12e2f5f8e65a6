"""StringToNumber."""

from typing import Any

import numpy as np
import pytest

from opkernel import DataType, raw_ops
from opkernel.errors import InvalidArgumentError

FLOATS = [
    ("1", 1.0),
    (" +1. ", 1.0),
    ("1e400", np.inf),
    ("-1e400", -np.inf),
    ("0x1p3", 8.0),
    ("0x10", 16.0),
    ("-infinity", -np.inf),
    ("nan(1)", np.nan),
    ("\t1\n", 1.0),
    ("0x.8p1", 1.0),
    ("-0X.8p+2", -2.0),
    ("0x1p20000", np.inf),
    ("-0x1p20000", -np.inf),
    ("0x1p-2000", 0.0),
    ("1e-400", 0.0),
    ("-nan", np.nan),
]
NO_FLOATS: list[Any] = [
    "1_0",
    "",
    " ",
    "+-1",
    "1 2",
    "infinityx",
    "1e",
    ".",
    "0x",
    "１",
    "1f",
    "1d5",
    b"1\x00",
]


def number(text: Any, dtype: DataType) -> Any:
    data = text if isinstance(text, bytes) else text.encode()
    found = raw_ops.StringToNumber(string_tensor=np.array([data], object), out_type=dtype)
    assert found.dtype == dtype.numpy_dtype
    return found[0]


@pytest.mark.parametrize("dtype", [DataType.DT_FLOAT, DataType.DT_DOUBLE])
def test_floats(dtype: DataType) -> None:
    for text, want in FLOATS:
        np.testing.assert_equal(number(text, dtype), want)
    for wrong in NO_FLOATS:
        with pytest.raises(InvalidArgumentError, match="could not correctly convert"):
            number(wrong, dtype)


def test_floats_are_rounded_once() -> None:
    tie = "0.50000002980232238769531250"
    assert number(tie, DataType.DT_FLOAT) == np.float32(0.5)
    assert number(tie + "00001", DataType.DT_FLOAT) == np.nextafter(np.float32(0.5), np.float32(1))
    assert number("1e-45", DataType.DT_FLOAT) == np.float32(1e-45)


INTEGERS: list[tuple[DataType, list[str], list[str]]] = [
    (DataType.DT_INT32, ["-2147483648", " 2147483647 "], ["2147483648", "1.", "0x1", "1_0", ""]),
    (DataType.DT_UINT32, ["4294967295", "+1"], ["4294967296", "-1", "-0"]),
    (DataType.DT_INT64, ["-9223372036854775808"], ["9223372036854775808"]),
    (DataType.DT_UINT64, ["18446744073709551615"], ["18446744073709551616", "-0"]),
]


@pytest.mark.parametrize(("dtype", "right", "wrong"), INTEGERS)
def test_integers(dtype: DataType, right: list[str], wrong: list[str]) -> None:
    for text in right:
        assert int(number(text, dtype)) == int(text)
    for text in wrong:
        with pytest.raises(InvalidArgumentError, match="could not correctly convert"):
            number(text, dtype)


def test_shapes_are_kept() -> None:
    texts = np.array([[b"1", b"2"], [b"3", b"4"]], object)
    assert raw_ops.StringToNumber(string_tensor=texts).tolist() == [[1, 2], [3, 4]]
    assert raw_ops.StringToNumber(string_tensor=texts[:0]).shape == (0, 2)
