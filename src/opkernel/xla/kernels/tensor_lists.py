"""TensorLists: buffers with room for all elements (`XlaTensorList`).

How many elements there is room for must be known to the compiler, and the shape of elements when the first one is read.

Resources that hold a list of tensors and live in one program: TensorArrays and stacks.

Source: TensorFlow compiler/tf2xla/kernels/tensor_list_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.types import DataType
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.op_kernel import WholeProgramOp
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource
from opkernel.xla.tensor_list import XlaTensorList

__all__ = ["ListResourceOp"]


class ListResourceOp(WholeProgramOp):
    """A kernel of a TensorArray or a stack."""

    def elements(
        self, ctx: XlaOpKernelContext, dtype: DataType | None = None
    ) -> tuple[XlaResource, XlaTensorList]:
        """The resource of input 0, and its elements, which are to be of a type.

        Raises:
            InvalidArgumentError: it is a variable, or has elements of another type.
        """
        resource = ctx.resource(0)
        found = resource.read(dtype)
        if not isinstance(found, XlaTensorList):
            raise InvalidArgumentError(f"{resource.name} is a variable, and holds no elements")
        return resource, found


def _known_shape(element_shape: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """The shape that a tensor of integers stands for; None if it is not known whole."""
    if element_shape.ndim == 0 or (element_shape < 0).any():
        return None
    return tuple(int(size) for size in element_shape)


@register_xla_kernel(
    "EmptyTensorList", compile_time_constants=["element_shape", "max_num_elements"], variants=True
)
def empty_tensor_list(
    element_shape: Any, max_num_elements: Any, *, element_dtype: DataType
) -> XlaTensorList:
    """A list without elements."""
    size = int(max_num_elements)
    if size < 0:
        raise InvalidArgumentError(
            "XLA compilation requires a fixed tensor list size. Set the max number of elements. "
            "This could also happen if you're using a TensorArray in a while loop that does not have its "
            "maximum_iteration set"
        )
    return XlaTensorList.zeros(size, _known_shape(element_shape), element_dtype, 0)


@register_xla_kernel(
    "TensorListReserve", compile_time_constants=["element_shape", "num_elements"], variants=True
)
def tensor_list_reserve(
    element_shape: Any, num_elements: Any, *, element_dtype: DataType
) -> XlaTensorList:
    """A list of as many elements as it has room for."""
    size = int(num_elements)
    if size < 0:
        raise InvalidArgumentError("XLA compilation requires a fixed tensor list size")
    shape = _known_shape(element_shape)
    return XlaTensorList.zeros(size, shape, element_dtype, size, may_grow=True)


@register_xla_kernel(
    "TensorListFromTensor", compile_time_constants=["element_shape"], variants=True
)
def tensor_list_from_tensor(
    tensor: Any, element_shape: Any, *, element_dtype: DataType
) -> XlaTensorList:
    """The slices of a tensor along its first dimension."""
    size = tensor.shape[0]
    return XlaTensorList(tensor, size, size, element_dtype, may_grow=True)


@register_xla_kernel("TensorListLength", variants=True, metadata=True)
def tensor_list_length(input_handle: XlaTensorList) -> Any:
    """The number of elements."""
    length = input_handle.known_length
    return input_handle.length if length is None else np.asarray(length, np.int32)


@register_xla_kernel("TensorListElementShape", variants=True, metadata=True)
def tensor_list_element_shape(input_handle: XlaTensorList, *, shape_type: DataType) -> Any:
    """The shape of the elements, which the compiler knows."""
    return np.asarray(input_handle.element_shape, shape_type.numpy_dtype)


@register_xla_kernel("TensorListPushBack", variants=True)
def tensor_list_push_back(input_handle: XlaTensorList, tensor: Any) -> XlaTensorList:
    """The list with one more element."""
    return input_handle.pushed(tensor)


@register_xla_kernel("TensorListPopBack", variants=True)
def tensor_list_pop_back(
    input_handle: XlaTensorList, element_shape: Any
) -> tuple[XlaTensorList, Any]:
    """The list without its last element, and that."""
    return input_handle.popped()


@register_xla_kernel("TensorListGetItem", variants=True)
def tensor_list_get_item(input_handle: XlaTensorList, index: Any, element_shape: Any) -> Any:
    """An element."""
    return input_handle.item(index)


@register_xla_kernel("TensorListSetItem", variants=True)
def tensor_list_set_item(
    input_handle: XlaTensorList, index: Any, item: Any, *, resize_if_index_out_of_bounds: bool
) -> XlaTensorList:
    """The list with another element in one place."""
    if resize_if_index_out_of_bounds:
        raise UnimplementedError(
            "XLA does not compile a TensorList that gets longer where it is set"
        )
    return input_handle.with_item(index, item)


@register_xla_kernel("TensorListGather", variants=True)
def tensor_list_gather(input_handle: XlaTensorList, indices: Any, element_shape: Any) -> Any:
    """Some elements, one behind the other."""
    return input_handle.items(indices)


@register_xla_kernel("TensorListStack", variants=True)
def tensor_list_stack(input_handle: XlaTensorList, element_shape: Any) -> Any:
    """All elements, one behind the other."""
    shape = _known_shape(element_shape) if isinstance(element_shape, np.ndarray) else None
    return (input_handle if shape is None else input_handle.like(shape)).elements()


@register_xla_kernel(
    "TensorListSplit", compile_time_constants=["element_shape", "lengths"], variants=True
)
def tensor_list_split(
    tensor: Any, element_shape: Any, lengths: Any, *, element_dtype: DataType
) -> XlaTensorList:
    """Pieces of a tensor along its first dimension, all of one length."""
    sizes = set(lengths.tolist())
    if len(sizes) > 1:
        raise InvalidArgumentError(
            f"XLA needs pieces of one length for a TensorList, they are {lengths.tolist()}"
        )
    size = sizes.pop() if sizes else 0
    return tensor_list_from_tensor(
        tensor.reshape(len(lengths), size, *tensor.shape[1:]), None, element_dtype=element_dtype
    )


@register_xla_kernel("TensorListConcatV2", variants=True)
def tensor_list_concat_v2(
    input_handle: XlaTensorList, element_shape: Any, leading_dims: Any
) -> tuple[Any, Any]:
    """The elements joined along their first dimension, and how long each is."""
    size, *rest = input_handle.element_shape
    parts = input_handle.elements()
    return parts.reshape(len(parts) * size, *rest), np.full(len(parts), size, np.int64)
