"""Shapes and sizes read from the values of constant tensors.

Source: TensorFlow core/framework/shape_inference.cc.
"""

from typing import Any, TypeAlias

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.opdef.shapes.shape_handles import UNKNOWN_DIM, DimensionHandle, ShapeHandle
from opkernel.types import MAX_DIMENSIONS, as_dtype

Array: TypeAlias = np.ndarray[Any, Any] | np.generic

_MAX_DIMENSIONS = 1 << 25
"""A longer shape is refused even if nothing is known of it."""


def integers(tensor: Array, complaint: str) -> list[int]:
    """The elements of an int32 or int64 tensor, flat."""
    if tensor.dtype.kind != "i" or tensor.dtype.itemsize < 4:
        raise InvalidArgumentError(f"{complaint} {as_dtype(tensor.dtype).string}")
    values: list[int] = tensor.reshape(-1).tolist()
    return values


def shape_from_tensor(tensor: Array | None, tensor_shape: ShapeHandle) -> ShapeHandle:
    """The shape that a vector holds; of unknown dimensions if only its length is known.

    No tensor has more than `MAX_DIMENSIONS`: nothing is known of a longer shape.
    """
    if tensor is None:
        length = ShapeAlgebra.dim(tensor_shape, 0).value
        if length >= _MAX_DIMENSIONS:
            raise InternalError(
                f"Cannot create a tensor with {length} dimensions, as these would be more than "
                f"maximum of {_MAX_DIMENSIONS}"
            )
        return (
            ShapeAlgebra.unknown_shape_of_rank(length)
            if length <= MAX_DIMENSIONS
            else ShapeHandle()
        )
    if tensor.ndim != 1:
        raise InvalidArgumentError(f"Input tensor must be rank 1, but was rank {tensor.ndim}")
    if tensor.size > MAX_DIMENSIONS and tensor.dtype.kind == "i" and tensor.min() >= UNKNOWN_DIM:
        return ShapeHandle()
    sizes = integers(tensor, "Input tensor must be int32 or int64, but was")
    for size in sizes:
        if size < UNKNOWN_DIM:
            raise InvalidArgumentError(f"Invalid value in tensor used for shape: {size}")
    return ShapeHandle(tuple([DimensionHandle(size) for size in sizes]))
