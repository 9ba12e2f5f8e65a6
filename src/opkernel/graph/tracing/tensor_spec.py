"""TensorSpec: what may be known of a tensor before there is one.

Source: TensorFlow python/framework/tensor.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opkernel.graph.core.tensor import Tensor
from opkernel.messages import short_repr
from opkernel.tracebacks import entrances
from opkernel.types import DataType, PartialTensorShape, as_dtype, dtype_of_array


@entrances
@dataclass(frozen=True, slots=True, init=False)
class TensorSpec:
    """A type and a shape, of which any part may be unknown.

    Attributes:
        shape: the shape.
        dtype: the type of the elements.
        name: what to call the tensor; two specs that differ in nothing else are equal.
    """

    shape: PartialTensorShape
    dtype: DataType
    name: str | None = field(compare=False)

    def __init__(self, shape: Any, dtype: Any = DataType.DT_FLOAT, name: str | None = None) -> None:
        """A spec.

        Args:
            shape: a shape, a list of sizes with None or -1 for unknown ones, or None.
            dtype: a DataType, or what NumPy or TensorFlow call one.
            name: what to call the tensor.

        Raises:
            TypeError: `shape` or `dtype` is none.
        """
        if isinstance(shape, DataType):
            raise TypeError(
                f"TensorSpec takes the shape first, then the type: {short_repr(shape)} is no shape"
            )
        object.__setattr__(self, "shape", PartialTensorShape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "name", name)

    def includes(self, other: TensorSpec) -> bool:
        """Whether all that `other` stands for, this one stands for too."""
        mine, theirs = self.shape.dims, other.shape.dims
        if self.dtype != other.dtype or mine is None:
            return self.dtype == other.dtype
        return (
            theirs is not None
            and len(mine) == len(theirs)
            and all(a in (None, b) for a, b in zip(mine, theirs, strict=True))
        )

    def is_compatible_with(self, value: Any) -> bool:
        """Whether a tensor, an array or what another spec stands for may be one of these."""
        other = spec_of(value)
        if other is None:
            return False
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    @property
    def unknowns(self) -> float:
        """How much of the shape is unknown, to compare specs of one tensor."""
        dims = self.shape.dims
        return float("inf") if dims is None else sum(dim is None for dim in dims)

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        return f"TensorSpec({self.shape.dims and self.shape.as_list()}, {self.dtype.tf_name}{name})"

    def __str__(self) -> str:
        return f"{self.dtype.tf_name}{self.shape if self.shape.dims is not None else '[...]'}"


def spec_of(value: Any) -> TensorSpec | None:
    """The spec of a tensor, an array, a handle, or a spec; None of all other values."""
    if isinstance(value, TensorSpec):
        return value
    if isinstance(value, Tensor):
        return TensorSpec(value.shape, value.dtype.base)
    if isinstance(value, np.str_):  # text, as Python's own
        return None
    dtype = dtype_of_array(value)
    return None if dtype is None else TensorSpec(np.shape(value), dtype)
