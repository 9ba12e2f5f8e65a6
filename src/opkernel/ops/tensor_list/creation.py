"""New lists: EmptyTensorList, TensorListReserve, TensorListFromTensor, TensorListSplit.

Source: TensorFlow core/ops/list_ops.cc, core/kernels/list_kernels.{h,cc}.
"""

from __future__ import annotations

from typing import Any

import opkernel.gradients as g
from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, full_type, register_op
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.input_checks import require_equal, require_scalar, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.ops.tensor_list.element_shape import ELEMENT_TYPES, partial_shape_of, row_shape
from opkernel.ops.tensor_list.list_data import list_type, set_new_list
from opkernel.ops.tensor_list.persistent_list import PersistentList
from opkernel.ops.tensor_list.rows import check_row_shape, check_rows, rows_of
from opkernel.ops.tensor_list.value import TensorList, handle_of
from opkernel.types import DataType, PartialTensorShape, TensorShape

_ATTRS = ["element_dtype: type", "shape_type: {int32, int64}"]


def empty_list_shape(c: InferenceContext) -> None:
    """A list of tensors of the shape in input 0."""
    set_new_list(c, shape_input=0)


EMPTY_TENSOR_LIST = register_op(
    "EmptyTensorList",
    inputs=["element_shape: shape_type", "max_num_elements: int32"],
    outputs=["handle: variant"],
    attrs=_ATTRS,
    shape_fn=empty_list_shape,
    traits="item_rule=empty",
    type_constructor=list_type,
    doc="A list without elements; it may get `max_num_elements`, or any number if that is -1.",
)


@register_kernel(EMPTY_TENSOR_LIST)
def empty_tensor_list(element_shape: Any, max_num_elements: Any, *, element_dtype: DataType) -> Any:
    require_scalar(max_num_elements, "max_num_elements expected to be a scalar but got shape: {}")
    shape, most = partial_shape_of(element_shape), max_num_elements.item()
    return handle_of(TensorList(element_dtype, shape, PersistentList(), most))


TENSOR_LIST_RESERVE = register_op(
    "TensorListReserve",
    inputs=["element_shape: shape_type", "num_elements: int32"],
    outputs=["handle: variant"],
    attrs=_ATTRS,
    shape_fn=empty_list_shape,
    traits="item_rule=reserve",
    type_constructor=list_type,
    doc="A list of `num_elements` elements that are not set; they are read as zeros.",
)


@register_kernel(TENSOR_LIST_RESERVE)
def tensor_list_reserve(element_shape: Any, num_elements: Any, *, element_dtype: DataType) -> Any:
    require_scalar(num_elements, "The num_elements to reserve must be a tensor size 1, but got {}")
    length = num_elements.item()
    if length < 0:
        raise InvalidArgumentError(
            f"The num_elements to reserve must be a non negative number, but got {length}"
        )
    check_allocation((length,), DataType.DT_INT64)
    elements = PersistentList.filled(length, None)
    return handle_of(TensorList(element_dtype, partial_shape_of(element_shape), elements))


def from_tensor_shape(c: InferenceContext) -> None:
    """A list of tensors of the shape in input 1, which the rows of input 0 must have."""
    element_shape = set_new_list(c, shape_input=1)
    c.merge(c.subshape(c.input(0), 1), element_shape)


TENSOR_LIST_FROM_TENSOR = register_op(
    "TensorListFromTensor",
    inputs=["tensor: element_dtype", "element_shape: shape_type"],
    outputs=["output_handle: variant"],
    attrs=_ATTRS,
    shape_fn=from_tensor_shape,
    traits="item_rule=rows",
    type_constructor=list_type,
    forward_type_fn=full_type.unary_container_create(FullTypeId.TFT_ARRAY, 0),
    doc="The list of the rows of `tensor`.",
)


@register_kernel(TENSOR_LIST_FROM_TENSOR, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_from_tensor(tensor: Any, element_shape: Any, *, element_dtype: DataType) -> Any:
    shape = partial_shape_of(element_shape)
    check_row_shape(tensor, shape)
    return handle_of(TensorList(element_dtype, shape, PersistentList(rows_of(tensor))))


_OF_PART = 200
"""The bytes of a tensor that shows a part of another."""


def split_shape(c: InferenceContext) -> None:
    """A list of tensors of the shape in input 1, which agrees with input 0 but in the length."""
    tensor = c.with_rank_at_least(c.input(0), 1)
    c.with_rank(c.input(2), 1)
    element_shape = set_new_list(c, shape_input=1)
    c.merge(c.replace_dim(tensor, 0, c.unknown_dim()), element_shape)


TENSOR_LIST_SPLIT = register_op(
    "TensorListSplit",
    inputs=["tensor: element_dtype", "element_shape: shape_type", "lengths: int64"],
    outputs=["output_handle: variant"],
    attrs=_ATTRS,
    shape_fn=split_shape,
    type_constructor=list_type,
    doc="The list of the parts of `tensor` that have the given `lengths`, in order.",
)


@register_kernel(TENSOR_LIST_SPLIT, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_split(
    tensor: Any, element_shape: Any, lengths: Any, *, element_dtype: DataType
) -> Any:
    shape = partial_shape_of(element_shape)
    check_rows(tensor)
    _check_part_shape(tensor, shape)
    require_vector(lengths, "Expected lengths to be a vector, received shape: {}")
    parts, end = [], 0
    check_bytes(_OF_PART * lengths.size, "elements of a list")
    for length in in_time(lengths.tolist()):
        start, end = end, end + length
        if length < 0:
            raise InvalidArgumentError(f"Invalid value in lengths: {length}")
        if end > len(tensor):
            raise InvalidArgumentError(
                f"Attempting to slice [{start}, {end}] from tensor with length {len(tensor)}"
            )
        parts.append(tensor[start:end])
    require_equal(len(tensor), end, "Unused values in tensor. Length of tensor: {} Values used: {}")
    return handle_of(TensorList(element_dtype, shape, PersistentList(parts)))


def _check_part_shape(tensor: Any, element_shape: PartialTensorShape) -> None:
    """Raise InvalidArgumentError unless the parts of the tensor may have the shape."""
    dims = element_shape.dims
    if dims is None:
        return
    if not dims:
        raise InvalidArgumentError(
            "TensorListSplit requires element_shape to be at least of rank 1, but saw: []"
        )
    if not PartialTensorShape(dims[1:]).is_compatible_with(TensorShape(tensor.shape[1:])):
        raise InvalidArgumentError(
            f"tensor shape {TensorShape(tensor.shape)} is not compatible with element_shape "
            f"{element_shape}"
        )


@g.register_gradient("TensorListFromTensor")
def from_tensor_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    tensor = op.inputs[0]
    dims = tensor.shape.dims
    number = -1 if not dims or dims[0] is None else dims[0]
    rows = g.nodes.TensorListStack(
        grad, row_shape(tensor), element_dtype=tensor.dtype, num_elements=number
    )
    return rows, None


@g.register_gradient("TensorListSplit")
def split_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    tensor, _, lengths = op.inputs
    shape = g.nodes.ConcatV2([[-1], row_shape(tensor)], 0)
    joined = g.nodes.TensorListConcatV2(grad, shape, lengths, element_dtype=tensor.dtype)
    return joined.tensor, None, None
