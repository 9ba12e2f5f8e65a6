"""TensorLists, TensorArrays and stacks: buffers with room for all elements (`XlaTensorList`).

How many elements there is room for must be known to the compiler, and the shape of elements when the first one is read.
TensorArrays and stacks are resources that hold a buffer. An element of a TensorArray that was not written is zeros; one
may be read and written more than once. The program frees both without being told.

Source: TensorFlow compiler/tf2xla/kernels/tensor_list_ops.cc, tensor_array_ops.cc, stack_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernelConstruction
from opkernel.types import Array, DataType, PartialTensorShape
from opkernel.xla.kernels.scatter_and_stitch import CHANGES
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource, XlaTensorList


def _known_shape(element_shape: Array) -> tuple[int, ...] | None:
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


_NO_FLOW = np.zeros((), np.float32)


def _elements(resource: XlaResource, dtype: DataType | None = None) -> XlaTensorList:
    """The elements of a TensorArray or a stack, which are to be of a type.

    Raises:
        InvalidArgumentError: it is a variable, or has elements of another type.
    """
    found = resource.read(dtype)
    if not isinstance(found, XlaTensorList):
        raise InvalidArgumentError(f"{resource.name} is a variable, and holds no elements")
    return found


def _known(shape: PartialTensorShape) -> tuple[int, ...] | None:
    return tuple(shape.as_tensor_shape()) if shape.is_fully_defined() else None


@register_xla_kernel("TensorArrayV3", compile_time_constants=["size"], resources=True)
def tensor_array(
    size: Any,
    *,
    dtype: DataType,
    element_shape: PartialTensorShape,
    dynamic_size: bool,
    construction: OpKernelConstruction,
) -> tuple[XlaResource, Any]:
    """A new TensorArray, and a flow."""
    if dynamic_size:
        raise UnimplementedError("XLA does not compile a TensorArray of dynamic size")
    count = int(size.item())
    if count < 0:
        raise InvalidArgumentError(f"The size of a TensorArray must be >= 0, not {count}")
    elements = XlaTensorList.zeros(count, _known(element_shape), dtype, count)
    return XlaResource(construction.node_def.name, dtype, elements), _NO_FLOW


@register_xla_kernel("TensorArrayGradV3", resources=True)
def tensor_array_grad(array: XlaResource, flow_in: Any, *, source: str) -> tuple[XlaResource, Any]:
    """The TensorArray for the gradients of the elements, one for each source, and a flow."""
    _elements(array)
    return array.gradient(source), _NO_FLOW


@register_xla_kernel("TensorArraySizeV3", resources=True)
def tensor_array_size(array: XlaResource, flow_in: Any) -> Any:
    """The number of elements, which the compiler knows."""
    return np.asarray(_elements(array).max_size, np.int32)


@register_xla_kernel(["TensorArrayCloseV3", "StackCloseV2"], resources=True)
def close(handle: XlaResource) -> None:
    """Add nothing to the program."""


@register_xla_kernel("TensorArrayReadV3", resources=True)
def tensor_array_read(array: XlaResource, index: Any, flow_in: Any, *, dtype: DataType) -> Any:
    return _elements(array, dtype).item(index)


@register_xla_kernel("TensorArrayGatherV3", resources=True)
def tensor_array_gather(
    array: XlaResource,
    indices: Any,
    flow_in: Any,
    *,
    dtype: DataType,
    element_shape: PartialTensorShape,
) -> Any:
    """Some elements, one behind the other."""
    elements, shape = _elements(array, dtype), _known(element_shape)
    return (elements if shape is None else elements.like(shape)).items(indices)


@register_xla_kernel("TensorArrayConcatV3", resources=True)
def tensor_array_concat(array: XlaResource, flow_in: Any, *, dtype: DataType) -> tuple[Any, Any]:
    """All elements joined along their first dimension, and how long each is, which the compiler knows."""
    elements = _elements(array, dtype)
    if not elements.element_shape:
        raise InvalidArgumentError("Elements without a dimension cannot be joined along one")
    length, *rest = elements.element_shape
    joined = elements.buffer.reshape((elements.max_size * length, *rest))
    return joined, np.full(elements.max_size, length, np.int64)


@register_xla_kernel("TensorArrayWriteV3", resources=True)
def tensor_array_write(
    array: XlaResource, index: Any, value: Any, flow_in: Any, *, T: DataType
) -> Any:
    """One element is written; gradients add up."""
    prepared = _elements(array, T).prepared_for(value.shape)
    if array.is_gradient:
        value = prepared.item(index) + value
    array.assign(T, prepared.with_item(index, value))
    return flow_in


def _write_rows(array: XlaResource, indices: Any, rows: Any, dtype: DataType) -> None:
    """Rows of a tensor are written as elements; gradients add up."""
    prepared = _elements(array, dtype).prepared_for(rows.shape[1:])
    change = CHANGES["Add" if array.is_gradient else "Update"]
    array.assign(dtype, prepared.with_buffer(change(prepared.buffer, indices[..., None], rows)))


@register_xla_kernel("TensorArrayScatterV3", resources=True)
def tensor_array_scatter(
    array: XlaResource, indices: Any, value: Any, flow_in: Any, *, T: DataType
) -> Any:
    """A row is written at each index."""
    if not value.ndim or indices.shape != value.shape[:1]:
        raise InvalidArgumentError(
            f"value must have a row for each of the indices {list(indices.shape)}, its shape is "
            f"{list(value.shape)}"
        )
    _write_rows(array, indices, value, T)
    return flow_in


@register_xla_kernel("TensorArraySplitV3", compile_time_constants=["lengths"], resources=True)
def tensor_array_split(
    array: XlaResource, value: Any, lengths: Any, flow_in: Any, *, T: DataType
) -> Any:
    """Pieces of a tensor, all of one length, are written as the elements."""
    size = _elements(array).max_size
    if lengths.shape != (size,):
        raise InvalidArgumentError(
            f"lengths must have one for each of {size} elements, its shape is {list(lengths.shape)}"
        )
    if not value.ndim or lengths.sum() != len(value):
        raise InvalidArgumentError(
            f"Pieces of the lengths {lengths.tolist()} do not make up {list(value.shape)}"
        )
    if len(set(lengths.tolist())) > 1:
        raise UnimplementedError(
            f"XLA needs pieces of one length for a TensorArray, they are {lengths.tolist()}"
        )
    length = int(lengths[0]) if size else 0
    _write_rows(array, np.arange(size), value.reshape((size, length, *value.shape[1:])), T)
    return flow_in


@register_xla_kernel("StackV2", compile_time_constants=["max_size"], resources=True)
def stack(max_size: Any, *, elem_type: DataType, construction: OpKernelConstruction) -> XlaResource:
    """A new stack."""
    size = int(max_size.item())
    if size < 0:
        raise InvalidArgumentError(
            "XLA needs a bound of the size of a stack; of a while loop, maximum_iterations says it"
        )
    elements = XlaTensorList.zeros(size, None, elem_type, 0)
    return XlaResource(construction.node_def.name, elem_type, elements)


@register_xla_kernel("StackPushV2", resources=True)
def stack_push(handle: XlaResource, elem: Any, *, T: DataType) -> Any:
    """One more element. In a loop, what is pushed onto a full stack takes the place of the last one."""
    handle.assign(T, _elements(handle, T).pushed(elem))
    return elem


@register_xla_kernel("StackPopV2", resources=True)
def stack_pop(handle: XlaResource, *, elem_type: DataType) -> Any:
    """The last element, which is taken away. In a loop, an empty stack gives its first one, whatever that is."""
    rest, last = _elements(handle, elem_type).popped()
    handle.assign(elem_type, rest)
    return last
