"""Sums and zeros of the elements of lists, which gradients of lists are added up with.

Source: TensorFlow core/kernels/tensor_list_util.cc, core/util/tensor_ops_util.h.
"""

from typing import Any, TypeAlias

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.ops.kernel_types import NUMBERS
from opkernel.types import DataType, TensorShape

__all__ = ["sum_of_elements", "zeros_like_element"]

_Element: TypeAlias = Any | None
"""A tensor, or None where none was set."""

_ADDABLE = frozenset({*NUMBERS, DataType.DT_VARIANT})
_WITHOUT_ZERO = frozenset({DataType.DT_STRING, DataType.DT_RESOURCE})


def sum_of_elements(a: _Element, b: _Element, dtype: DataType) -> _Element:
    """The sum of two elements; where one was not set, the other.

    Raises:
        InvalidArgumentError: they differ in shape, or there is no sum of that type.
    """
    if a is None or b is None:
        return b if a is None else a
    if a.shape != b.shape:
        raise InvalidArgumentError(
            "Trying to add two tensors with incompatible element shapes. One is "
            f"{TensorShape(a.shape)} and the other is {TensorShape(b.shape)}"
        )
    if dtype not in _ADDABLE:
        raise InvalidArgumentError(f"Trying to add unsupported dtype {dtype.string}")
    if dtype is not DataType.DT_VARIANT:
        return a + b
    return _objects([x + y for x, y in zip(a.flat, b.flat, strict=True)], a.shape)


def zeros_like_element(element: _Element, dtype: DataType) -> _Element:
    """Zeros in the shape of an element; None where none was set.

    Raises:
        InvalidArgumentError: the type has no zero.
    """
    if element is None:
        return None
    if dtype in _WITHOUT_ZERO:
        raise InvalidArgumentError(
            f"Trying to compute zeros_like for unsupported dtype {dtype.string}"
        )
    if dtype is not DataType.DT_VARIANT:
        return np.zeros_like(element)
    return _objects([value.zeros_like() for value in element.flat], element.shape)


def _objects(values: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)
