"""Handles of shapes and dimensions in shape inference.

A handle stands for one shape or one dimension; more of it may be learned later. Two unknown
dimensions are known to be equal only if they are the very same handle, so handles compare by
identity and are never changed. What can be worked out from handles alone stands in
`opkernel.opdef.shapes.shape_algebra`.

Source: TensorFlow core/framework/shape_inference.h.
"""

from typing import NamedTuple, TypeAlias

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

    def same_handle(self, other: "DimensionHandle") -> bool:
        """Whether both are the same dimension, known or not."""
        return self is other

    def __repr__(self) -> str:
        return "?" if self.value == UNKNOWN_DIM else str(self.value)


class ShapeHandle:
    """One shape: its dimensions, or None where the rank is unknown. Equal only to itself."""

    __slots__ = ("dims",)

    def __init__(self, dims: tuple[DimensionHandle, ...] | None = None) -> None:
        self.dims = dims

    def same_handle(self, other: "ShapeHandle") -> bool:
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
