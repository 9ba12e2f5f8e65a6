"""TensorLists, TensorArrays and Stacks as Python lists; and conditionals and loops of programs of NumPy alone.

Items that were never set are None, and so are dead tensors.
"""

from typing import Any

import numpy as np

__all__ = ["FUNCTIONS"]


def truth(tensor: Any) -> bool:
    """Whether a condition holds: a scalar that is not zero, or any other tensor with elements."""
    return bool(tensor) if np.ndim(tensor) == 0 else tensor.size > 0


def switch_index(index: Any, outputs: int) -> int:
    """The output that is chosen: the last one stands for all indices out of range."""
    return int(index) if 0 <= index < outputs else outputs - 1


def first_alive(*tensors: Any) -> Any:
    """The first tensor that has a value, and its index."""
    for index, tensor in enumerate(tensors):
        if tensor is not None:
            return tensor, np.int32(index)
    return None, None


def check_alive(tensor: Any, name: str) -> None:
    """Raise ValueError where a tensor that is wanted has no value."""
    if tensor is None:
        raise ValueError(f"{name} has no value: it is on a branch that was not taken")


def empty_tensor_list(element_shape: Any, max_num_elements: Any) -> Any:
    return []


def tensor_list_reserve(element_shape: Any, num_elements: Any) -> Any:
    return [None] * int(num_elements)


def tensor_list_from_tensor(tensor: Any, element_shape: Any) -> Any:
    return list(tensor)


def items_of(items: Any, element_shape: Any, dtype: str) -> Any:
    """The items of a list, with zeros for items that were never set."""
    known = next((item for item in items if item is not None), None)
    shape = tuple(np.ravel(element_shape).tolist()) if known is None else known.shape
    return [np.zeros(shape, dtype) if item is None else item for item in items]


def stacked(items: Any, element_shape: Any, dtype: str) -> Any:
    if not items:
        return np.zeros((0, *np.ravel(element_shape).tolist()), dtype)
    return np.stack(items_of(items, element_shape, dtype))


def tensor_list_get_item(items: Any, index: Any, element_shape: Any, *, element_dtype: str) -> Any:
    item = items[int(index)]
    return items_of(items, element_shape, element_dtype)[int(index)] if item is None else item


def tensor_list_set_item(
    items: Any, index: Any, item: Any, *, resize_if_index_out_of_bounds: bool = False
) -> Any:
    changed = list(items)
    if resize_if_index_out_of_bounds:
        changed += [None] * (int(index) + 1 - len(items))
    changed[int(index)] = item
    return changed


def tensor_list_push_back(items: Any, item: Any) -> Any:
    return [*items, item]


def tensor_list_pop_back(items: Any, element_shape: Any, *, element_dtype: str) -> Any:
    return items[:-1], items_of(items, element_shape, element_dtype)[-1]


def tensor_list_stack(items: Any, element_shape: Any, *, element_dtype: str) -> Any:
    return stacked(items, element_shape, element_dtype)


def tensor_list_gather(items: Any, indices: Any, element_shape: Any, *, element_dtype: str) -> Any:
    items = items_of(items, element_shape, element_dtype)
    return stacked([items[i] for i in indices.tolist()], element_shape, element_dtype)


def tensor_list_scatter(tensor: Any, indices: Any, element_shape: Any, count: Any) -> Any:
    items = [None] * max(int(count), int(indices.max(initial=-1)) + 1)
    return tensor_list_scatter_into(items, tensor, indices)


def tensor_list_scatter_into(items: Any, tensor: Any, indices: Any) -> Any:
    changed = list(items)
    for index, item in zip(indices.tolist(), tensor, strict=True):
        changed[index] = item
    return changed


def tensor_list_concat(
    items: Any, element_shape: Any, leading_dims: Any, *, element_dtype: str
) -> Any:
    """The items one behind the other, and how many rows each of them has."""
    items = items_of(items, np.ravel(element_shape)[1:], element_dtype)
    return np.concatenate(items), np.array([len(item) for item in items], np.int64)


def tensor_list_split(tensor: Any, element_shape: Any, lengths: Any) -> Any:
    return np.split(tensor, np.cumsum(lengths)[:-1])


def tensor_list_length(items: Any) -> Any:
    return np.int32(len(items))


def tensor_list_resize(items: Any, size: Any) -> Any:
    return [*items[: int(size)], *[None] * (int(size) - len(items))]


def tensor_array(size: Any) -> Any:
    """An array, and the flow that puts its uses in order."""
    return [None] * int(size), np.float32(0)


def tensor_array_write(items: Any, index: Any, value: Any, flow: Any) -> Any:
    items += [None] * (int(index) + 1 - len(items))
    items[int(index)] = value
    return flow


def tensor_array_read(items: Any, index: Any, flow: Any) -> Any:
    return items[int(index)]


def tensor_array_gather(items: Any, indices: Any, flow: Any, *, dtype: str) -> Any:
    return stacked([items[i] for i in indices.tolist()], [], dtype)


def tensor_array_scatter(items: Any, indices: Any, value: Any, flow: Any) -> Any:
    for index, item in zip(indices.tolist(), value, strict=True):
        tensor_array_write(items, index, item, flow)
    return flow


def tensor_array_concat(items: Any, flow: Any) -> Any:
    return np.concatenate(items), np.array([len(item) for item in items], np.int64)


def tensor_array_split(items: Any, value: Any, lengths: Any, flow: Any) -> Any:
    items[:] = np.split(value, np.cumsum(lengths)[:-1])
    return flow


def tensor_array_size(items: Any, flow: Any) -> Any:
    return np.int32(len(items))


def tensor_array_close(items: Any) -> None:
    items.clear()


def stack(max_size: Any) -> Any:
    return []


def stack_push(items: Any, item: Any) -> Any:
    items.append(item)
    return item


def stack_pop(items: Any) -> Any:
    return items.pop()


FUNCTIONS = {
    "EmptyTensorList": empty_tensor_list,
    "StackPopV2": stack_pop,
    "StackPushV2": stack_push,
    "StackV2": stack,
    "TensorArrayCloseV3": tensor_array_close,
    "TensorArrayConcatV3": tensor_array_concat,
    "TensorArrayGatherV3": tensor_array_gather,
    "TensorArrayReadV3": tensor_array_read,
    "TensorArrayScatterV3": tensor_array_scatter,
    "TensorArraySizeV3": tensor_array_size,
    "TensorArraySplitV3": tensor_array_split,
    "TensorArrayV3": tensor_array,
    "TensorArrayWriteV3": tensor_array_write,
    "TensorListConcatV2": tensor_list_concat,
    "TensorListFromTensor": tensor_list_from_tensor,
    "TensorListGather": tensor_list_gather,
    "TensorListGetItem": tensor_list_get_item,
    "TensorListLength": tensor_list_length,
    "TensorListPopBack": tensor_list_pop_back,
    "TensorListPushBack": tensor_list_push_back,
    "TensorListReserve": tensor_list_reserve,
    "TensorListResize": tensor_list_resize,
    "TensorListScatterIntoExistingList": tensor_list_scatter_into,
    "TensorListScatterV2": tensor_list_scatter,
    "TensorListSetItem": tensor_list_set_item,
    "TensorListSplit": tensor_list_split,
    "TensorListStack": tensor_list_stack,
}
