"""The rows of a tensor, its parts along the first dimension, as elements of a list."""

from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.types import PartialTensorShape, TensorShape

__all__ = ["check_row_shape", "check_rows", "rows_of"]


def rows_of(tensor: Any) -> list[Any]:
    """The rows: views, or scalars of a vector."""
    if tensor.ndim == 1 and tensor.dtype == object:
        return [tensor[i : i + 1].reshape(()) for i in range(len(tensor))]
    return list(tensor)


def check_rows(tensor: Any) -> None:
    """Raise InvalidArgumentError unless the tensor has rows."""
    if tensor.ndim == 0:
        raise InvalidArgumentError("Tensor must be at least a vector, but saw shape: []")


def check_row_shape(tensor: Any, element_shape: PartialTensorShape) -> None:
    """Raise InvalidArgumentError unless the tensor has rows, of this shape."""
    check_rows(tensor)
    row = TensorShape(tensor.shape[1:])
    if not element_shape.is_compatible_with(row):
        raise InvalidArgumentError(
            f"Specified a list with shape {element_shape} from a tensor with shape {row}"
        )
