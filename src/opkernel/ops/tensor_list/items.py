"""Elements of lists: TensorListGetItem, TensorListSetItem, TensorListPushBack, its Batch form, TensorListPopBack.

What all ops on lists ask is here, too: the shapes of elements that ops are given, those that lists have, and those that
inference knows. There the type of the elements and the facts that their shapes share travel as the one ShapeAndType
that a handle holds.

Source: TensorFlow core/ops/list_ops.cc, core/kernels/list_kernels.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, ShapeAndType, ShapeHandle, full_type, register_op
from opkernel.opdef.common_shapes.elementwise import keep_contents
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import (
    require,
    require_rank_at_least,
    require_rank_at_most,
    require_scalar,
    require_vector,
)
from opkernel.ops.registration import ALL_QUANTIZED, POD_OR_STRING, register_kernel
from opkernel.ops.tensor_list.value import TensorList, as_list, handle_of, list_of
from opkernel.types import DataType, PartialTensorShape, TensorShape

ELEMENT_TYPES = (*POD_OR_STRING, *ALL_QUANTIZED, DataType.DT_VARIANT)
"""The types of the elements that kernels can read, stack or cut."""


_OF_ROW, _ONE_MORE = 200, 1 << 9
"""The bytes of a tensor that shows a row, and the work of making one or of a look at a shape."""


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


def element_shape(handle: g.Tensor) -> Any:
    """The shape that a list knows of its elements."""
    return g.nodes.TensorListElementShape(handle, shape_type=DataType.DT_INT32)


def row_shape(tensor: g.Tensor) -> Any:
    """The shape of the rows of a tensor."""
    return g.nodes.StridedSlice(g.nodes.Shape(tensor), [1], [0], [1], end_mask=1)


def unset_list(handle: g.Tensor, grad: g.Tensor) -> Any:
    """A list like that of a handle of which no element is set, for gradients of one."""
    length = g.nodes.TensorListLength(handle)
    return g.nodes.TensorListReserve(element_shape(handle), length, element_dtype=grad.dtype)


list_type = full_type.unary_tensor_container(FullTypeId.TFT_ARRAY, "element_dtype")
"""Declares the op's first output to be a list of tensors of `element_dtype`."""


def list_data(c: InferenceContext, index: int = 0) -> ShapeAndType | None:
    """The known facts of the list at an input; None if there are none."""
    held = c.input_handle_shapes_and_types(index)
    return held[0] if held is not None and len(held) == 1 else None


def check_list_dtype(c: InferenceContext) -> ShapeAndType | None:
    """The known facts about the list at input 0.

    Raises:
        InvalidArgumentError: its elements are not of the type that the op works on.
    """
    data, element_dtype = list_data(c), c.get_attr("element_dtype")
    if data is not None and data.dtype != element_dtype:
        raise InvalidArgumentError(
            f"Expected list with element dtype {element_dtype.string} but got list with element "
            f"dtype {data.dtype.string}"
        )
    return data


def read_shape(c: InferenceContext, shape_input: int) -> ShapeHandle:
    """The shape of elements that are read from the list at input 0.

    Raises:
        InvalidArgumentError: the list has elements of another type or shape.
    """
    data = check_list_dtype(c)
    element_shape = c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(shape_input)
    return element_shape if data is None else c.merge(data.shape, element_shape)


def set_list_data(c: InferenceContext, element_shape: ShapeHandle) -> None:
    """Say that output 0, of `list_type`, holds lists of tensors of this shape."""
    data = ShapeAndType(element_shape, c.get_attr("element_dtype"), c.ret_types().args[0])
    c.set_output_handle_shapes_and_types(0, [data])


def set_new_list(c: InferenceContext, shape_input: int) -> ShapeHandle:
    """Set output 0 to a list of tensors of the shape that an input holds; that shape."""
    c.set_output(0, c.scalar())
    element_shape = c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(shape_input)
    set_list_data(c, element_shape)
    return element_shape


def pass_list_on(c: InferenceContext) -> None:
    """Set output 0 to a list like that of input 0."""
    c.set_output(0, c.scalar())
    keep_contents(c)


def set_changed_list(c: InferenceContext) -> None:
    """Say that output 0, of `list_type`, holds lists of tensors like those of input 0."""
    data = check_list_dtype(c)
    set_list_data(c, c.unknown_shape() if data is None else data.shape)


def get_item_shape(c: InferenceContext) -> None:
    """The shape that the list and input 2 agree in."""
    c.set_output(0, read_shape(c, shape_input=2))


TENSOR_LIST_GET_ITEM = register_op(
    "TensorListGetItem(input_handle: variant, index: int32, element_shape: Tshape) "
    "-> item: element_dtype",
    attrs=["element_dtype: type", "Tshape: {int32, int64} = DT_INT32"],
    shape_fn=get_item_shape,
    traits="item_rule=get",
    doc="Element `index` of the list; zeros if it was not set.",
)


@register_kernel(TENSOR_LIST_GET_ITEM, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_get_item(
    input_handle: Any, index: Any, element_shape: Any, *, element_dtype: DataType
) -> Any:
    tensor_list = list_of(input_handle, element_dtype)
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
    "TensorListSetItem(input_handle: variant, index: int32, item: element_dtype) "
    "-> output_handle: variant",
    attrs=["element_dtype: type", "resize_if_index_out_of_bounds: bool = false"],
    shape_fn=set_item_shape,
    traits="item_rule=set",
    type_constructor=list_type,
    forward_type_fn=full_type.unary_container_add(FullTypeId.TFT_ARRAY, 0, 2, homogeneous=True),
    doc="The list with `item` for element `index`.",
)


@register_kernel(TENSOR_LIST_SET_ITEM, kind="view")
def tensor_list_set_item(
    handle: Any, at: Any, item: Any, *, element_dtype: DataType, resize_if_index_out_of_bounds: bool
) -> Any:
    old = list_of(handle, element_dtype)
    require_scalar(at, "Expected argument 1 to be a scalar. Received shape {}")
    elements, i = old.elements, int(at)
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
    set_changed_list(c)


TENSOR_LIST_PUSH_BACK = register_op(
    "TensorListPushBack(input_handle: variant, tensor: element_dtype) -> output_handle: variant",
    attrs=["element_dtype: type"],
    shape_fn=push_back_shape,
    traits="item_rule=push",
    type_constructor=list_type,
    doc="The list with `tensor` after its last element.",
)


@register_kernel(TENSOR_LIST_PUSH_BACK, kind="view")
def tensor_list_push_back(input_handle: Any, tensor: Any, *, element_dtype: DataType) -> Any:
    old = list_of(input_handle)
    _check_pushed(old, tensor, element_dtype)
    if -1 < old.max_num_elements <= len(old):
        raise InvalidArgumentError(
            f"Tried to push item into a full list list size: {len(old)} "
            f"max_num_elements: {old.max_num_elements}"
        )
    return handle_of(old.with_elements(old.elements.appended(tensor)))


def _check_pushed(old: TensorList, tensor: Any, element_dtype: DataType, where: str = "") -> None:
    if not old.accepts_shape(tensor.shape):
        raise InvalidArgumentError(
            f"Tried to append a tensor with incompatible shape to a list{where}. Op element shape: "
            f"{TensorShape(tensor.shape)} list shape: {old.element_shape}"
        )
    old.check_dtype(element_dtype)


def push_back_batch_shape(c: InferenceContext) -> None:
    """Lists like those of input 0, a vector as long as input 1 has rows."""
    handles = c.with_rank(c.input(0), 1)
    tensor = c.with_rank_at_least(c.input(1), 1)
    _, handles = c.merge_prefix(tensor, handles)
    c.set_output(0, handles)
    set_changed_list(c)


TENSOR_LIST_PUSH_BACK_BATCH = register_op(
    "TensorListPushBackBatch(input_handles: variant, tensor: element_dtype) "
    "-> output_handles: variant",
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
        old = as_list(input_handles[i], f"Input handle at index {i} is not a list.")
        _check_pushed(old, row, element_dtype, f" at index {i}")
        outputs[i] = old.with_elements(old.elements.appended(row))
    return outputs


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
    "TensorListPopBack(input_handle: variant, element_shape: int32) "
    "-> output_handle: variant, tensor: element_dtype",
    attrs=["element_dtype: type"],
    shape_fn=pop_back_shape,
    traits="item_rule=pop",
    doc="The list without its last element, and that element; zeros if it was not set.",
)


@register_kernel(TENSOR_LIST_POP_BACK, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_pop_back(
    input_handle: Any, element_shape: Any, *, element_dtype: DataType
) -> tuple[Any, Any]:
    old = list_of(input_handle, element_dtype)
    last = len(old) - 1
    require(last >= 0, "Trying to pop from an empty list.")
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
    return g.nodes.TensorListSetItem(unset_list(handle, grad), index, grad), None, None


@g.register_gradient("TensorListSetItem")
def set_item_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    handle, index, item = op.inputs
    for_list = g.nodes.TensorListSetItem(grad, index, g.zeros_like(item))
    if op.get_attr("resize_if_index_out_of_bounds"):
        for_list = g.nodes.TensorListResize(for_list, g.nodes.TensorListLength(handle))
    for_item = g.nodes.TensorListGetItem(grad, index, g.nodes.Shape(item), element_dtype=item.dtype)
    return for_list, None, for_item
