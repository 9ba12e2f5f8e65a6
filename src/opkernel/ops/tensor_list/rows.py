"""The rows of a tensor, its parts along the first dimension, as elements of a list."""

from typing import Any

from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.ops.input_checks import require_rank_at_least
from opkernel.types import PartialTensorShape, TensorShape

_OF_ROW, _ONE_MORE = 200, 1 << 9
"""The bytes of a tensor that shows a row, and the work of making one."""


def rows_of(tensor: Any) -> list[Any]:
    """The rows: views, or scalars of a vector."""
    check_bytes(_OF_ROW * len(tensor), "elements of a list")
    if tensor.ndim == 1 and tensor.dtype == object:
        return [tensor[i : i + 1].reshape(()) for i in in_time(range(len(tensor)))]
    return list(in_time(tensor, _ONE_MORE))


def check_rows(tensor: Any) -> None:
    """Raise InvalidArgumentError unless the tensor has rows."""
    require_rank_at_least(tensor, 1, "Tensor must be at least a vector, but saw shape: []")


def check_row_shape(tensor: Any, element_shape: PartialTensorShape) -> None:
    """Raise InvalidArgumentError unless the tensor has rows, of this shape."""
    check_rows(tensor)
    row = TensorShape(tensor.shape[1:])
    if not element_shape.is_compatible_with(row):
        raise InvalidArgumentError(
            f"Specified a list with shape {element_shape} from a tensor with shape {row}"
        )
