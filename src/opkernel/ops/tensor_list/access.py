"""Single elements of lists: read, set, pushed and popped, and gradients.

Source: TensorFlow core/ops/list_ops.cc, core/kernels/list_kernels.{h,cc}.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, full_type, register_op
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.input_checks import require_rank_at_least, require_scalar, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.ops.tensor_list.element_shape import (
    ELEMENT_TYPES,
    allocated_zeros,
    element_shape,
    merge_element_shapes,
    read_element_shape,
)
from opkernel.ops.tensor_list.list_data import (
    check_list_dtype,
    list_data,
    list_type,
    pass_list_on,
    read_shape,
    set_list_data,
)
from opkernel.ops.tensor_list.rows import rows_of
from opkernel.ops.tensor_list.value import TensorList, as_list, handle_of, list_of
from opkernel.types import DataType, TensorShape


def get_item_shape(c: InferenceContext) -> None:
    """The shape that the list and input 2 agree in."""
    c.set_output(0, read_shape(c, shape_input=2))


TENSOR_LIST_GET_ITEM = register_op(
    "TensorListGetItem",
    inputs=["input_handle: variant", "index: int32", "element_shape: Tshape"],
    outputs=["item: element_dtype"],
    attrs=["element_dtype: type", "Tshape: {int32, int64} = DT_INT32"],
    shape_fn=get_item_shape,
    traits="item_rule=get",
    doc="Element `index` of the list; zeros if it was not set.",
)


@register_kernel(TENSOR_LIST_GET_ITEM, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_get_item(
    input_handle: Any, index: Any, element_shape: Any, *, element_dtype: DataType
) -> Any:
    tensor_list = list_of(input_handle)
    tensor_list.check_dtype(element_dtype)
    elements, i = tensor_list.elements, _index(index)
    if not 0 <= i < len(elements):
        raise InvalidArgumentError(
            f"Trying to access element {i} in a list with {len(elements)} elements."
        )
    element = elements[i]
    if element is not None:
        return element
    shape = read_element_shape(element_shape, tensor_list)
    if not shape.is_fully_defined():
        shape = merge_element_shapes(shape, elements)
    if not shape.is_fully_defined():
        raise InvalidArgumentError(
            "Trying to read an uninitialized tensor but element_shape is not fully defined: "
            f"{shape} and no list element is set."
        )
    return allocated_zeros(shape.as_tensor_shape(), element_dtype)


def _index(tensor: Any) -> int:
    if tensor.size != 1:
        raise InvalidArgumentError(
            f"Expected the index to be a scalar, got shape {TensorShape(tensor.shape)}"
        )
    return int(tensor) if tensor.ndim == 0 else int(tensor.item())


def set_item_shape(c: InferenceContext) -> None:
    """A list like that of input 0, which input 2 may be an element of."""
    data = list_data(c)
    pass_list_on(c)
    if data is None:
        set_list_data(c, c.unknown_shape())
    else:
        c.merge(c.input(2), data.shape)


TENSOR_LIST_SET_ITEM = register_op(
    "TensorListSetItem",
    inputs=["input_handle: variant", "index: int32", "item: element_dtype"],
    outputs=["output_handle: variant"],
    attrs=["element_dtype: type", "resize_if_index_out_of_bounds: bool = false"],
    shape_fn=set_item_shape,
    traits="item_rule=set",
    type_constructor=list_type,
    forward_type_fn=full_type.unary_container_add(FullTypeId.TFT_ARRAY, 0, 2, homogeneous=True),
    doc="The list with `item` for element `index`.",
)


@register_kernel(TENSOR_LIST_SET_ITEM, kind="view")
def tensor_list_set_item(
    input_handle: Any,
    index: Any,
    item: Any,
    *,
    element_dtype: DataType,
    resize_if_index_out_of_bounds: bool,
) -> Any:
    old = list_of(input_handle)
    old.check_dtype(element_dtype)
    require_scalar(index, "Expected argument 1 to be a scalar. Received shape {}")
    elements, i = old.elements, int(index)
    if not 0 <= i < len(elements):
        if i < 0 or not resize_if_index_out_of_bounds:
            raise InvalidArgumentError(
                f"Trying to modify element {i} in a list with {len(elements)} elements."
            )
        check_allocation((i + 1,), DataType.DT_INT64)
        elements = elements.resized(i + 1, None)
    if not old.accepts_shape(item.shape):
        raise InvalidArgumentError(
            "Tried to set a tensor with incompatible shape at a list index. Item element shape: "
            f"{TensorShape(item.shape)} list shape: {old.element_shape}"
        )
    return handle_of(old.with_elements(elements.replaced(i, item)))


def push_back_shape(c: InferenceContext) -> None:
    """A list like input 0."""
    c.set_output(0, c.scalar())
    data = check_list_dtype(c)
    set_list_data(c, c.unknown_shape() if data is None else data.shape)


TENSOR_LIST_PUSH_BACK = register_op(
    "TensorListPushBack",
    inputs=["input_handle: variant", "tensor: element_dtype"],
    outputs=["output_handle: variant"],
    attrs=["element_dtype: type"],
    shape_fn=push_back_shape,
    traits="item_rule=push",
    type_constructor=list_type,
    doc="The list with `tensor` after its last element.",
)


@register_kernel(TENSOR_LIST_PUSH_BACK, kind="view")
def tensor_list_push_back(input_handle: Any, tensor: Any, *, element_dtype: DataType) -> Any:
    old = list_of(input_handle)
    if not old.accepts_shape(tensor.shape):
        raise InvalidArgumentError(
            "Tried to append a tensor with incompatible shape to a list. Op element shape: "
            f"{TensorShape(tensor.shape)} list shape: {old.element_shape}"
        )
    old.check_dtype(element_dtype)
    if -1 < old.max_num_elements <= len(old):
        raise InvalidArgumentError(
            f"Tried to push item into a full list list size: {len(old)} "
            f"max_num_elements: {old.max_num_elements}"
        )
    return handle_of(old.with_elements(old.elements.appended(tensor)))


def push_back_batch_shape(c: InferenceContext) -> None:
    """Lists like those of input 0, a vector as long as input 1 has rows."""
    handles = c.with_rank(c.input(0), 1)
    tensor = c.with_rank_at_least(c.input(1), 1)
    _, handles = c.merge_prefix(tensor, handles)
    c.set_output(0, handles)
    data = check_list_dtype(c)
    set_list_data(c, c.unknown_shape() if data is None else data.shape)


TENSOR_LIST_PUSH_BACK_BATCH = register_op(
    "TensorListPushBackBatch",
    inputs=["input_handles: variant", "tensor: element_dtype"],
    outputs=["output_handles: variant"],
    attrs=["element_dtype: type"],
    shape_fn=push_back_batch_shape,
    type_constructor=list_type,
    doc="Each list of the vector, with its row of `tensor` after its last element.",
)


@register_kernel(TENSOR_LIST_PUSH_BACK_BATCH, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_push_back_batch(input_handles: Any, tensor: Any, *, element_dtype: DataType) -> Any:
    require_rank_at_least(tensor, 1, "Expected tensor to be at least a vector, but saw shape: []")
    require_vector(input_handles, "Expected input_handles to be a vector, but saw shape: {}")
    if len(tensor) != len(input_handles):
        raise InvalidArgumentError(
            "Expected tensor.shape[0] == input_handles.size, but saw "
            f"{len(tensor)} vs. {len(input_handles)}"
        )
    outputs = np.empty(check_allocation((len(tensor),), DataType.DT_VARIANT), object)
    for i, row in enumerate(in_time(rows_of(tensor), SLOW)):
        outputs[i] = _pushed(input_handles[i], row, element_dtype, i)
    return outputs


def _pushed(value: object, row: Any, element_dtype: DataType, at: int) -> TensorList:
    old = as_list(value, f"Input handle at index {at} is not a list.")
    if not old.accepts_shape(row.shape):
        raise InvalidArgumentError(
            f"Tried to append a tensor with incompatible shape to a list at index {at}. "
            f"Op element shape: {TensorShape(row.shape)} list shape: {old.element_shape}"
        )
    old.check_dtype(element_dtype)
    return old.with_elements(old.elements.appended(row))


def pop_back_shape(c: InferenceContext) -> None:
    """A list like that of input 0, and a tensor of the shape of its elements."""
    data = list_data(c)
    if data is not None and (
        data.full_type is None or data.full_type.type_id != FullTypeId.TFT_ARRAY
    ):
        raise InvalidArgumentError("Input argument must be a list.")
    check_list_dtype(c)
    pass_list_on(c)
    c.set_output(1, c.unknown_shape() if data is None else data.shape)


TENSOR_LIST_POP_BACK = register_op(
    "TensorListPopBack",
    inputs=["input_handle: variant", "element_shape: int32"],
    outputs=["output_handle: variant", "tensor: element_dtype"],
    attrs=["element_dtype: type"],
    shape_fn=pop_back_shape,
    traits="item_rule=pop",
    doc="The list without its last element, and that element; zeros if it was not set.",
)


@register_kernel(TENSOR_LIST_POP_BACK, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_pop_back(
    input_handle: Any, element_shape: Any, *, element_dtype: DataType
) -> tuple[Any, Any]:
    old = list_of(input_handle)
    old.check_dtype(element_dtype)
    last = len(old) - 1
    if last < 0:
        raise InvalidArgumentError("Trying to pop from an empty list.")
    element = old.elements[last]
    if element is None:
        shape = read_element_shape(element_shape, old)
        if not shape.is_fully_defined():
            raise InvalidArgumentError(
                "Trying to read an uninitialized tensor but element_shape is not fully defined."
                f"{shape}"
            )
        element = allocated_zeros(shape.as_tensor_shape(), element_dtype)
    return handle_of(old.with_elements(old.elements.resized(last, None))), element


@g.register_gradient("TensorListPushBack")
def push_back_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    shape = g.nodes.Shape(op.inputs[1])
    return tuple(g.nodes.TensorListPopBack(grad, shape, **g.attrs_of(op, "element_dtype")))


@g.register_gradient("TensorListPopBack")
def pop_back_gradient(
    op: g.Operation, list_grad: g.Tensor | None, grad: g.Tensor | None
) -> g.Gradients:
    """Elements of integers have no gradient, though not much may be known of their list."""
    rest, element = op.outputs
    if list_grad is None:
        list_grad = g.nodes.EmptyTensorList(element_shape(rest), -1, element_dtype=element.dtype)
    if grad is None:
        grad = g.zeros_like(element)
    return g.nodes.TensorListPushBack(list_grad, grad), None


@g.register_gradient("TensorListGetItem")
def get_item_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """A list without other elements."""
    handle, index, _ = op.inputs
    empty = g.nodes.TensorListReserve(
        element_shape(handle), g.nodes.TensorListLength(handle), element_dtype=grad.dtype
    )
    return g.nodes.TensorListSetItem(empty, index, grad), None, None


@g.register_gradient("TensorListSetItem")
def set_item_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    handle, index, item = op.inputs
    for_list = g.nodes.TensorListSetItem(grad, index, g.zeros_like(item))
    if op.get_attr("resize_if_index_out_of_bounds"):
        for_list = g.nodes.TensorListResize(for_list, g.nodes.TensorListLength(handle))
    for_item = g.nodes.TensorListGetItem(grad, index, g.nodes.Shape(item), element_dtype=item.dtype)
    return for_list, None, for_item
