"""Handles of shapes and dimensions in shape inference, and arithmetic on dimensions.

A handle stands for one shape or one dimension; more of it may be learned later. Two unknown
dimensions are known to be equal only if they are the very same handle, so handles compare by
identity and are never changed. Arithmetic gives an unknown dimension where one comes in, and the argument itself where
it changes nothing. What can be worked out from shapes alone stands in `opkernel.opdef.shapes.shape_algebra`.

Source: TensorFlow core/framework/shape_inference.{h,cc}.
"""

from __future__ import annotations

import operator
from typing import NamedTuple, TypeAlias

from opkernel.errors import InvalidArgumentError
from opkernel.proto import FullTypeDef
from opkernel.types import DataType

UNKNOWN_DIM = -1
"""The value of an unknown dimension."""
UNKNOWN_RANK = -1
"""The rank of an unknown shape."""


class DimensionHandle:
    """One dimension: its size, or `UNKNOWN_DIM`. Equal only to itself."""

    __slots__ = ("value",)

    def __init__(self, value: int = UNKNOWN_DIM) -> None:
        self.value = value

    def same_handle(self, other: DimensionHandle) -> bool:
        """Whether both are the same dimension, known or not."""
        return self is other

    def __repr__(self) -> str:
        return "?" if self.value == UNKNOWN_DIM else str(self.value)


class ShapeHandle:
    """One shape: its dimensions, or None where the rank is unknown. Equal only to itself."""

    __slots__ = ("dims",)

    def __init__(self, dims: tuple[DimensionHandle, ...] | None = None) -> None:
        self.dims = dims

    def same_handle(self, other: ShapeHandle) -> bool:
        """Whether both are the same shape, known or not."""
        return self is other

    def __repr__(self) -> str:
        return "?" if self.dims is None else f"[{','.join(map(repr, self.dims))}]"


DimensionOrConstant: TypeAlias = DimensionHandle | int | None
"""A dimension, or the size of a new one; None, like `UNKNOWN_DIM`, is a new unknown one."""


class ShapeAndType(NamedTuple):
    """The shape and dtype of a tensor that a resource or variant holds."""

    shape: ShapeHandle
    dtype: DataType
    full_type: FullTypeDef | None = None


_MAX_INT64 = 2**63 - 1


def make_dim(dim: DimensionOrConstant) -> DimensionHandle:
    """A dimension itself; of a size, or None or `UNKNOWN_DIM`, a new dimension."""
    if isinstance(dim, DimensionHandle):
        return dim
    if dim is None:
        return DimensionHandle()
    value = operator.index(dim)
    if not UNKNOWN_DIM <= value <= _MAX_INT64:
        raise InvalidArgumentError(f"Dimension must be >= 0, or -1 for unknown, but is {value}")
    return DimensionHandle(value)


def merge_dims(first: DimensionHandle, second: DimensionHandle) -> DimensionHandle:
    """The dimension that both are; `first` if both say the same."""
    if first is second or second.value == UNKNOWN_DIM or first.value == second.value:
        return first
    if first.value == UNKNOWN_DIM:
        return second
    raise InvalidArgumentError(f"Dimensions must be equal, but are {first} and {second}")


def relax_dims(old: DimensionHandle, new: DimensionHandle) -> DimensionHandle:
    """The dimension that covers both: `old`, `new`, or a new unknown one."""
    if old is new:
        return old
    if new.value == UNKNOWN_DIM:
        return new
    return old if old.value == new.value else DimensionHandle()


def _value(dim: DimensionOrConstant) -> int:
    if isinstance(dim, DimensionHandle):
        return dim.value
    return UNKNOWN_DIM if dim is None else operator.index(dim)


class DimensionAlgebra:
    """Making, inspecting and calculating with dimensions."""

    __slots__ = ()

    make_dim = staticmethod(make_dim)

    @staticmethod
    def unknown_dim() -> DimensionHandle:
        """A new dimension, equal to no other."""
        return DimensionHandle()

    @staticmethod
    def value(dim: DimensionOrConstant) -> int:
        """The size, or `UNKNOWN_DIM`."""
        return _value(dim)

    @staticmethod
    def value_known(dim: DimensionOrConstant) -> bool:
        """Whether the size is known."""
        return _value(dim) != UNKNOWN_DIM

    @staticmethod
    def with_value(dim: DimensionHandle, value: int) -> DimensionHandle:
        """The dimension itself if it has this size; if it is unknown, a new one that has.

        Raises:
            InvalidArgumentError: the dimension has another size.
        """
        if dim.value == value:
            return dim
        if dim.value == UNKNOWN_DIM:
            return make_dim(value)
        raise InvalidArgumentError(f"Dimension must be {value} but is {dim.value}")

    @staticmethod
    def add(first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The sum; adding 0 gives the other dimension itself.

        Raises:
            InvalidArgumentError: the sum does not fit an int64.
        """
        a, b = first.value, _value(second)
        if a == 0:
            return make_dim(second)
        if b == 0:
            return first
        if a == UNKNOWN_DIM or b == UNKNOWN_DIM:
            return DimensionHandle()
        if a + b > _MAX_INT64:
            raise InvalidArgumentError(f"Dimension size overflow from adding {a} and {b}")
        return make_dim(a + b)

    @staticmethod
    def subtract(first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The difference; taking away 0 gives the dimension itself.

        Raises:
            InvalidArgumentError: the difference is negative.
        """
        a, b = first.value, _value(second)
        if b == 0:
            return first
        if a == UNKNOWN_DIM or b == UNKNOWN_DIM:
            return DimensionHandle()
        if a < b:
            raise InvalidArgumentError(
                f"Negative dimension size caused by subtracting {b} from {a}"
            )
        return DimensionHandle(a - b)

    @staticmethod
    def multiply(first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The product; 0 absorbs an unknown, 1 gives the other dimension itself.

        Raises:
            InvalidArgumentError: the product does not fit an int64.
        """
        a, b = first.value, _value(second)
        if a == 0:
            return first
        if b == 0 or a == 1:
            return make_dim(second)
        if b == 1:
            return first
        if a == UNKNOWN_DIM or b == UNKNOWN_DIM:
            return DimensionHandle()
        if a * b > _MAX_INT64:
            raise InvalidArgumentError(
                f"Negative dimension size caused by overflow when multiplying {a} and {b}"
            )
        return make_dim(a * b)

    @staticmethod
    def divide(
        dividend: DimensionHandle, divisor: DimensionOrConstant, evenly_divisible: bool
    ) -> DimensionHandle:
        """The quotient, rounded down; dividing by 1 gives the dimension itself.

        Raises:
            InvalidArgumentError: the divisor is not positive, or there is a remainder where
                `evenly_divisible` allows none.
        """
        a, b = dividend.value, _value(divisor)
        if b == 1:
            return dividend
        unknown_divisor = b == UNKNOWN_DIM and not isinstance(divisor, int)
        if a == UNKNOWN_DIM or unknown_divisor:
            return DimensionHandle()
        if b <= 0:
            raise InvalidArgumentError(f"Divisor must be positive but is {b}")
        if evenly_divisible and a % b:
            raise InvalidArgumentError(f"Dimension size must be evenly divisible by {b} but is {a}")
        return DimensionHandle(a // b)

    @staticmethod
    def min(first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The smaller dimension itself; a 0 is smaller than an unknown one."""
        a, b = first.value, _value(second)
        if a == 0:
            return first
        if b == 0:
            return make_dim(second)
        if a == UNKNOWN_DIM or b == UNKNOWN_DIM:
            return DimensionHandle()
        return first if a <= b else make_dim(second)

    @staticmethod
    def max(first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The larger dimension itself."""
        a, b = first.value, _value(second)
        if a == UNKNOWN_DIM or b == UNKNOWN_DIM:
            return DimensionHandle()
        return first if a >= b else make_dim(second)
