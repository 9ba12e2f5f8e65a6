"""Python values as tensors: which type they have and which they may take."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import (
    DataType,
    OpaqueVariant,
    ResourceHandle,
    array_from_python,
    can_become,
    dtype_of_array,
    natural_dtype,
)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, "bool"), (1, "int32"), (2**31, "int64"), (-(2**31), "int32"), (1.0, "float32"),
        (1j, "complex128"), ("a", "string"), (b"a", "string"), ([], "float32"), ([1, 2.5], "float32"),
        ([[1], [2**40]], "int64"), ([np.float64(1), 2], "float64"), (np.int8(1), "int8"),
        (np.ones(2), "float64"), ((np.float16(1),), "float16"), (["a", b"b"], "string"),
        (np.array(["a"], object), "string"), (ml_dtypes.bfloat16(1), "bfloat16"),
        (ResourceHandle(), "resource"), ([OpaqueVariant()], "variant"),
    ],
)  # fmt: skip
def test_natural_types(value: Any, dtype: str) -> None:
    assert natural_dtype(value).tf_name == dtype


@pytest.mark.parametrize("value", [None, {"a": 1}, [1, None], [[1], [1, 2]], object(), 2**70])
def test_what_makes_no_tensor(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="Cannot make a tensor of"):
        natural_dtype(value)


def test_only_arrays_and_handles_have_a_type_already() -> None:
    assert dtype_of_array(np.float32(1)) == DataType.DT_FLOAT
    assert dtype_of_array(OpaqueVariant()) == DataType.DT_VARIANT
    assert [dtype_of_array(value) for value in (1, "a", [np.ones(1)], None)] == [None] * 4


@pytest.mark.parametrize(
    ("value", "dtype", "can"),
    [
        (1, "float32", True), (1, "complex64", True), (1, "int8", True), (300, "uint8", False),
        (-1, "uint8", False), (1.0, "int32", False), (1.0, "qint8", False), (1, "bool", False),
        (True, "bool", True), (True, "int32", True), (1j, "float32", False), ("a", "int32", False),
        (1, "string", False), ("a", "string", True), ([], "int32", True), ([], "string", True),
        (2**70, "float32", True), (2**70, "int64", False), (None, "float32", False),
        (1.5, "bfloat16", True), (3, "int4", True),
    ],
)  # fmt: skip
def test_types_that_values_may_take(value: Any, dtype: str, can: bool) -> None:
    assert can_become(value, DataType.from_string(dtype)) is can


def test_arrays_of_a_type() -> None:
    assert array_from_python([1, 2], DataType.DT_HALF).dtype == np.float16
    assert array_from_python([b"a\0"], DataType.DT_STRING).tolist() == [b"a\0"]
    with pytest.raises(InvalidArgumentError, match=r"Cannot make a int32 tensor of \[1.5\]"):
        array_from_python([1.5], DataType.DT_INT32)
