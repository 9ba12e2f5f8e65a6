"""The shapes of elements: as inputs of list ops, as the elements have them, and of unset ones.

Source: TensorFlow core/kernels/list_kernels.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import opkernel.gradients as g
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require_rank_at_most
from opkernel.ops.kernel_types import ALL_QUANTIZED, POD_OR_STRING
from opkernel.ops.tensor_list.value import TensorList
from opkernel.types import DataType, PartialTensorShape, TensorShape

__all__ = [
    "ELEMENT_TYPES",
    "allocated_zeros",
    "merge_element_shapes",
    "merge_shapes",
    "partial_shape_of",
    "read_element_shape",
]


ELEMENT_TYPES = (*POD_OR_STRING, *ALL_QUANTIZED, DataType.DT_VARIANT)
"""The types of the elements that kernels can read, stack or cut."""


_ONE_MORE = 1 << 9
"""The work of a look at a shape."""


def partial_shape_of(tensor: Any) -> PartialTensorShape:
    """The shape that a tensor holds: a vector of sizes, or the scalar -1 for any shape.

    Raises:
        InvalidArgumentError: it holds none.
    """
    require_rank_at_most(
        tensor, 1, "The element_shape must be at most rank 1 but has the shape of {}"
    )
    if tensor.ndim:
        return PartialTensorShape(tensor.tolist())
    if tensor.item() != -1:
        raise InvalidArgumentError(
            "The only valid scalar shape tensor is the fully unknown shape specified as -1."
        )
    return PartialTensorShape()


def read_element_shape(element_shape: Any, tensor_list: TensorList) -> PartialTensorShape:
    """The shape that the input `element_shape` and the list agree in.

    Raises:
        InvalidArgumentError: they do not agree.
    """
    return partial_shape_of(element_shape).merge_with(tensor_list.element_shape)


def merge_shapes(
    shape: PartialTensorShape, others: Iterable[tuple[int, ...]]
) -> PartialTensorShape:
    """The shape that all agree in.

    Raises:
        InvalidArgumentError: they do not agree.
    """
    for other in others:
        if other != shape.dims:
            shape = shape.merge_with(TensorShape(other))
    return shape


def merge_element_shapes(shape: PartialTensorShape, elements: Iterable[Any]) -> PartialTensorShape:
    """The shape that `shape` and all elements that are set agree in.

    Raises:
        InvalidArgumentError: they do not agree.
    """
    return merge_shapes(
        shape, (element.shape for element in in_time(elements, _ONE_MORE) if element is not None)
    )


def allocated_zeros(shape: tuple[int, ...], dtype: DataType) -> Any:
    """The zeros that stand for an element that was not set, within the memory limit."""
    return zeros(check_allocation(shape, dtype), dtype)


def element_shape(handle: g.Tensor) -> Any:
    """The shape that a list knows of its elements."""
    return g.nodes.TensorListElementShape(handle, shape_type=DataType.DT_INT32)


def row_shape(tensor: g.Tensor) -> Any:
    """The shape of the rows of a tensor."""
    return g.nodes.StridedSlice(g.nodes.Shape(tensor), [1], [0], [1], end_mask=1)
