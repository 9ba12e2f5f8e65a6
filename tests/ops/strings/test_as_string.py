"""AsString; expected texts are TensorFlow's, and so C's."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import allocation_limit

F = np.float32


def texts(values: Any, dtype: Any, **attrs: Any) -> Any:
    return raw_ops.AsString(input=np.array(values, dtype), **attrs).tolist()


ODD = [np.inf, -np.inf, np.nan, -np.nan]

TEXTS: list[tuple[Any, Any, dict[str, Any], list[bytes]]] = [
    ([1.5, -0.0, 1e10], F, {}, [b"1.500000", b"-0.000000", b"10000000000.000000"]),
    ([1.5, 1e10], F, {"scientific": True, "precision": 1}, [b"1.5e+00", b"1.0e+10"]),
    ([1.5, 123456789], F, {"shortest": True}, [b"1.5", b"1.23457e+08"]),
    ([1.5, -2], F, {"width": 6, "precision": 2, "fill": "0"}, [b"001.50", b"-02.00"]),
    ([1.5, 2], F, {"precision": 0, "fill": "#"}, [b"2.", b"2."]),
    (ODD, F, {"width": 5, "fill": "0"}, [b"  inf", b" -inf", b"  nan", b" -nan"]),
    (ODD, F, {"fill": "+"}, [b"+inf", b"-inf", b"+nan", b"-nan"]),
    ([1e-40], F, {"shortest": True}, [b"0"]),
    ([1e-40], np.float64, {"shortest": True}, [b"1e-40"]),
    ([1.1], np.float16, {}, [b"1.099609"]),
    ([1.1], ml_dtypes.bfloat16, {}, [b"1.101562"]),
    ([1 - 2j], np.complex64, {"width": 6, "precision": 1}, [b"(   1.0,  -2.0)"]),
    ([-128, 7], np.int8, {"width": 5, "fill": "0"}, [b"-0128", b"00007"]),
    ([7], np.int16, {"fill": "+"}, [b"+7"]),
    ([7], np.uint16, {"fill": "+"}, [b"7"]),
    ([2**64 - 1], np.uint64, {"width": 22, "fill": "-"}, [b"18446744073709551615  "]),
    ([True, False], np.bool_, {"width": 9}, [b"true", b"false"]),
    ([b"abc", b"\xff\x00"], object, {"width": 4, "fill": "0"}, [b" abc", b"  \xff\x00"]),
    ([b"abc"], object, {"width": 4, "precision": 2, "fill": "-"}, [b"ab  "]),
    ([b"abc"], object, {"precision": 2}, [b"abc"]),
]


@pytest.mark.parametrize(("values", "dtype", "attrs", "expected"), TEXTS)
def test_text(values: Any, dtype: Any, attrs: Any, expected: list[bytes]) -> None:
    assert texts(values, dtype, **attrs) == expected


def test_shapes() -> None:
    assert texts([[1], [2]], np.int32) == [[b"1"], [b"2"]]
    assert raw_ops.AsString(input=np.int64(3)) == b"3"
    assert raw_ops.AsString(input=np.zeros((0, 2))).shape == (0, 2)


def test_lists() -> None:
    handle = raw_ops.TensorListReserve(element_shape=[1], num_elements=1, element_dtype=np.int32)
    assert raw_ops.AsString(input=np.array(handle, object)) == (
        b"Variant<type: tensorflow::TensorList value: TensorList>"
    )


@pytest.mark.parametrize(
    ("dtype", "attrs", "message"),
    [
        (F, {"scientific": True, "shortest": True}, "both scientific and shortest"),
        (np.int32, {"scientific": True}, "format not supported for datatype int32"),
        (np.bool_, {"precision": 1}, "precision not supported for datatype bool"),
        (F, {"fill": "ab"}, "one or fewer characters"),
        (F, {"fill": "x"}, 'not supported: "x"'),
        (F, {"precision": -(2**63)}, "Attr precision has value -9223372036854775808 out of range"),
        (F, {"width": 2**31}, "Attr width has value 2147483648 out of range"),
    ],
)
def test_errors(dtype: Any, attrs: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        texts([1], dtype, **attrs)


def test_memory_is_not_taken_beyond_the_limit() -> None:
    for attrs in ({"width": 2**30}, {"precision": 2**30}):
        with allocation_limit(1 << 20), pytest.raises(ResourceExhaustedError):
            texts([1.0], F, **attrs)
