"""Python values as tensors: the type that a value has by itself, and its array.

Source: TensorFlow python/framework/tensor_util.py, python/eager/execute.py.
"""

from types import UnionType
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.messages import short_repr
from opkernel.types.dtype import DataType, as_dtype
from opkernel.types.resource_handle import ResourceHandle
from opkernel.types.variant_value import Variant

_DTYPE_OF_SCALAR = {
    bool: DataType.DT_BOOL,
    float: DataType.DT_FLOAT,
    complex: DataType.DT_COMPLEX128,
    str: DataType.DT_STRING,
    bytes: DataType.DT_STRING,
}
_DTYPE_OF_OBJECTS: tuple[tuple[type | UnionType, DataType], ...] = (
    (str | bytes, DataType.DT_STRING),
    (ResourceHandle, DataType.DT_RESOURCE),
    (Variant, DataType.DT_VARIANT),
)


def object_scalar(value: object) -> np.ndarray[Any, Any]:
    """The tensor of rank 0 that holds an object: a handle, a variant, a string."""
    scalar = np.empty((), object)
    scalar[()] = value
    return scalar


def holds_handles(array: np.ndarray[Any, Any]) -> bool:
    """Whether all elements of an object array are ResourceHandles."""
    return all(isinstance(item, ResourceHandle) for item in array.ravel().tolist())


def check_handles(array: np.ndarray[Any, Any]) -> None:
    """Raise TypeError, with the first element that is wrong, unless all are ResourceHandles."""
    wrong = [item for item in array.ravel().tolist() if not isinstance(item, ResourceHandle)]
    if wrong:
        raise TypeError(f"the elements must be ResourceHandles, not {short_repr(wrong[0])}")


def dtype_of_array(value: Any) -> DataType | None:
    """The type of an array, a NumPy scalar or a handle; None for other values.

    Raises:
        InvalidArgumentError: no tensor has elements like those of the array.
    """
    if isinstance(value, np.ndarray | np.generic):
        return as_dtype(value.dtype) if value.dtype.kind != "O" else _dtype_of_objects(value)
    return _dtype_of_objects(value) if isinstance(value, ResourceHandle | Variant) else None


def natural_dtype(value: Any) -> DataType:
    """The type of the tensor that a value makes where nothing else decides.

    Floats are float32 and ints int32 where they fit; NumPy's arrays and scalars keep their type,
    in lists too, whose first element counts.

    Raises:
        InvalidArgumentError: the value makes no tensor.
    """
    dtype = _DTYPE_OF_SCALAR.get(type(value))
    if dtype is not None:
        return dtype
    if type(value) is int and -(2**31) <= value < 2**31:
        return DataType.DT_INT32
    first = value
    while isinstance(first, list | tuple) and first:
        first = first[0]
    dtype = dtype_of_array(first)
    if dtype is None:
        dtype = dtype_of_array(array_from_python(value))
    assert dtype is not None
    return dtype


def _dtype_of_objects(value: Any) -> DataType:
    """The type of an array of objects, or of a handle."""
    items = value.ravel().tolist() if isinstance(value, np.ndarray) else [value]
    for kinds, dtype in _DTYPE_OF_OBJECTS:
        if all(isinstance(item, kinds) for item in items):
            return dtype
    raise InvalidArgumentError(f"Cannot make a tensor of {short_repr(value)}")


def can_become(value: Any, dtype: DataType) -> bool:
    """Whether a value makes a tensor of a type."""
    try:
        array_from_python(value, dtype)
    except InvalidArgumentError:
        return False
    return True


def array_from_python(value: Any, dtype: DataType | None = None) -> np.ndarray[Any, Any]:
    """The array of a Python value: of `dtype`, or of the type that TensorFlow gives it.

    Strings come as an object array of the given objects.

    Raises:
        InvalidArgumentError: the value makes no array, or none of the type: floats are no ints,
            numbers are neither truth values nor strings.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind in "SU":
            array = np.asarray(value, object)  # which keeps zeros at the end of bytes
        if dtype is None:
            return _narrow(array)
        if array.size and not _holds(array, dtype):
            raise TypeError(f"values of type {array.dtype}")
        return np.asarray(value, dtype.numpy_dtype)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # also its `__array__`
        kind = "tensor" if dtype is None else f"{dtype.string} tensor"
        raise InvalidArgumentError(
            f"Cannot make a {kind} of {short_repr(value)}: {error}"
        ) from None


def _narrow(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Python's floats as float32, its ints as int32 where they fit."""
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64 and np.array_equal(array, array.astype(np.int32)):
        return array.astype(np.int32)
    return array


def _holds(array: np.ndarray[Any, Any], dtype: DataType) -> bool:
    """Whether a type has room for this kind of values; their sizes NumPy checks."""
    kind: str = array.dtype.kind
    wanted_kind = dtype.numpy_dtype.kind
    if dtype is DataType.DT_RESOURCE:
        check_handles(array)
        return True
    if "O" in (kind, wanted_kind):
        # NumPy makes objects of ints beyond 64 bits.
        holds_all = wanted_kind == "O" or all(isinstance(item, int) for item in array.flat)
        return kind == "O" and holds_all
    if dtype.is_bool:
        return kind == "b"
    if kind in "fc" and (dtype.is_integer or dtype.is_quantized):
        return False
    return kind != "c" or dtype.is_complex
