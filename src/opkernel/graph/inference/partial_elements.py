"""Elements of which some are unknown: arrays of them, and arithmetic.

An element is an int (or bool), a dimension of unknown size, or None. A result is an int where it is known, the dimension that it equals, a new dimension where it is some
size, and else None. Sizes are taken not to overflow.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from opkernel.opdef import DimensionHandle, ShapeHandle
from opkernel.types import Array, DataType

PartialValue: TypeAlias = Array
"""The elements of a tensor: ints, DimensionHandles of unknown size, None."""

MAX_ELEMENTS = 1024
"""Larger tensors are not followed."""


@functools.cache
def is_tracked(dtype: DataType) -> bool:
    """Whether tensors of this type are followed: integers and bools."""
    return dtype.is_integer or dtype.is_bool


def array_of(elements: Any) -> PartialValue:
    """The array of an element, of (nested lists of) elements, or an array itself."""
    if isinstance(elements, np.ndarray):
        return elements if elements.dtype == object else elements.astype(object)
    array = np.empty(np.shape(elements), dtype=object)
    array[...] = elements
    return array


def unknown_elements(shape: ShapeHandle) -> PartialValue | None:
    """An array of this shape of which nothing is known; None if that is not known or large."""
    if shape.dims is None:
        return None
    sizes = [dim.value for dim in shape.dims]
    if min(sizes, default=0) < 0 or np.prod(sizes, dtype=object) > MAX_ELEMENTS:
        return None
    return np.full(sizes, None, dtype=object)


def is_complete(value: PartialValue) -> bool:
    """Whether all elements are known."""
    return all(isinstance(element, int) for element in value.flat)


def within_type(value: PartialValue, dtype: DataType) -> PartialValue:
    """The value with None for what the type cannot hold, as C++ would wrap it."""
    if dtype.is_bool:
        return value
    low, high = _limits(dtype)
    if all(not isinstance(element, int) or low <= element <= high for element in value.flat):
        return value
    return array_of(
        np.frompyfunc(lambda e: None if isinstance(e, int) and not low <= e <= high else e, 1, 1)(
            value
        )
    )


@functools.cache
def _limits(dtype: DataType) -> tuple[int, int]:
    return int(dtype.min), int(dtype.max)


def when_known(compute: Callable[[int, int], int]) -> Callable[[Any, Any], int | None]:
    """The function where both elements are known, and else None."""
    return lambda a, b: compute(a, b) if isinstance(a, int) and isinstance(b, int) else None


def is_size(element: Any) -> bool:
    """Whether an element is no less than 0."""
    return isinstance(element, DimensionHandle) or (isinstance(element, int) and element >= 0)


def add(a: Any, b: Any) -> Any:
    """The sum."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0 or b == 0:
        return b if a == 0 else a
    return DimensionHandle() if is_size(a) and is_size(b) else None


def subtract(a: Any, b: Any) -> Any:
    """The difference; known where both are the same dimension."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if b == 0:
        return a
    return 0 if a is b and a is not None else None


def multiply(a: Any, b: Any) -> Any:
    """The product."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a == 1 or b == 1:
        return b if a == 1 else a
    return DimensionHandle() if is_size(a) and is_size(b) else None


def floor_divide(a: Any, b: Any) -> Any:
    """The quotient, rounded down."""
    if not isinstance(b, int) or b == 0:
        return None
    if b == 1:
        return a
    if isinstance(a, int):
        return a // b
    return DimensionHandle() if isinstance(a, DimensionHandle) and b > 0 else None


def truncate_divide(a: Any, b: Any) -> Any:
    """The quotient, rounded towards 0."""
    if isinstance(a, int) and isinstance(b, int) and b and (a < 0 or b < 0):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return floor_divide(a, b)


def floor_mod(a: Any, b: Any) -> Any:
    """The remainder of the quotient that is rounded down."""
    if not isinstance(b, int) or b == 0:
        return None
    if b == 1:
        return 0
    if isinstance(a, int):
        return a % b
    return DimensionHandle() if b > 0 else None


def _extreme(choose: Callable[[int, int], int], a: Any, b: Any) -> Any:
    """What `choose`, which is min or max, gives of two elements."""
    if isinstance(a, int) and isinstance(b, int):
        return choose(a, b)
    if a is b:
        return a
    for known, other in ((a, b), (b, a)):
        if isinstance(known, int) and known <= 0 and isinstance(other, DimensionHandle):
            return other if choose is max else known
    is_size_too = any if choose is max else all
    return DimensionHandle() if is_size_too([is_size(a), is_size(b)]) else None


maximum = functools.partial(_extreme, max)
"""The larger one."""
minimum = functools.partial(_extreme, min)
"""The smaller one."""


def equal(a: Any, b: Any) -> bool | None:
    """Whether they are equal, if that is known."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return True if a is b and a is not None else None


def not_equal(a: Any, b: Any) -> bool | None:
    """Whether they differ, if that is known."""
    same = equal(a, b)
    return None if same is None else not same


def select(condition: Any, a: Any, b: Any) -> Any:
    """One of two, or what both are."""
    if isinstance(condition, int):
        return a if condition else b
    return a if a is b or (isinstance(a, int) and isinstance(b, int) and a == b) else None


def logical_and(a: Any, b: Any) -> bool | None:
    """Whether both hold, if that is known."""
    if isinstance(a, int) and isinstance(b, int):
        return bool(a and b)
    return False if a is False or b is False else None


def logical_or(a: Any, b: Any) -> bool | None:
    """Whether one holds, if that is known."""
    if isinstance(a, int) and isinstance(b, int):
        return bool(a or b)
    return True if a is True or b is True else None


def broadcast_size(a: Any, b: Any) -> Any:
    """The size that two sizes broadcast to; ValueError where they do not."""
    for one, other in ((a, b), (b, a)):
        if one == 1:
            return other
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise ValueError(a, b)
    for one in (a, b):
        if isinstance(one, int):
            return one
    return a if a is b else None
