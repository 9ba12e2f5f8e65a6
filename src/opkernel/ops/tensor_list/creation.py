"""New lists: EmptyTensorList, TensorListReserve, TensorListFromTensor, TensorListSplit, and the TensorListScatter ops.

Source: TensorFlow core/ops/list_ops.cc, core/kernels/list_kernels.{h, cc}.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, full_type, register_op
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.input_checks import require, require_equal, require_scalar, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.ops.tensor_list.items import (
    ELEMENT_TYPES,
    check_row_shape,
    check_rows,
    list_type,
    partial_shape_of,
    push_back_shape,
    row_shape,
    rows_of,
    set_new_list,
)
from opkernel.ops.tensor_list.value import Elements, PersistentList, TensorList, handle_of, list_of
from opkernel.types import DataType, PartialTensorShape, TensorShape

_ATTRS = ["element_dtype: type", "shape_type: {int32, int64}"]


def empty_list_shape(c: InferenceContext) -> None:
    """A list of tensors of the shape in input 0."""
    set_new_list(c, shape_input=0)


EMPTY_TENSOR_LIST = register_op(
    "EmptyTensorList(element_shape: shape_type, max_num_elements: int32) -> handle: variant",
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
    "TensorListReserve(element_shape: shape_type, num_elements: int32) -> handle: variant",
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
    require(
        length >= 0, f"The num_elements to reserve must be a non negative number, but got {length}"
    )
    check_allocation((length,), DataType.DT_INT64)
    elements = PersistentList.filled(length, None)
    return handle_of(TensorList(element_dtype, partial_shape_of(element_shape), elements))


def from_tensor_shape(c: InferenceContext) -> None:
    """A list of tensors of the shape in input 1, which the rows of input 0 must have."""
    element_shape = set_new_list(c, shape_input=1)
    c.merge(c.subshape(c.input(0), 1), element_shape)


TENSOR_LIST_FROM_TENSOR = register_op(
    "TensorListFromTensor(tensor: element_dtype, element_shape: shape_type) "
    "-> output_handle: variant",
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
    "TensorListSplit(tensor: element_dtype, element_shape: shape_type, lengths: int64) "
    "-> output_handle: variant",
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
    require(dims, "TensorListSplit requires element_shape to be at least of rank 1, but saw: []")
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


def scatter_shape(c: InferenceContext) -> None:
    """A list of tensors of the shape in input 2."""
    set_new_list(c, shape_input=2)


TENSOR_LIST_SCATTER = register_op(
    "TensorListScatter(tensor: element_dtype, indices: int32, element_shape: shape_type) "
    "-> output_handle: variant",
    attrs=_ATTRS,
    shape_fn=scatter_shape,
    type_constructor=list_type,
    doc="A list whose element `indices[i]` is row i of `tensor`, just long enough for all.",
)

TENSOR_LIST_SCATTER_V2 = register_op(
    "TensorListScatterV2(tensor: element_dtype, indices: int32, element_shape: shape_type, "
    "num_elements: int32) -> output_handle: variant",
    attrs=_ATTRS,
    shape_fn=scatter_shape,
    type_constructor=list_type,
    doc="A list of `num_elements` (as many as needed if -1), element `indices[i]` row i of `tensor`.",
)


@register_kernel(TENSOR_LIST_SCATTER, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_scatter(
    tensor: Any, indices: Any, element_shape: Any, *, element_dtype: DataType
) -> Any:
    any_number = np.int32(-1)
    return tensor_list_scatter_v2(
        tensor, indices, element_shape, any_number, element_dtype=element_dtype
    )


@register_kernel(TENSOR_LIST_SCATTER_V2, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_scatter_v2(
    tensor: Any, indices: Any, element_shape: Any, num_elements: Any, *, element_dtype: DataType
) -> Any:
    require_scalar(num_elements, "num_elements must be a scalar")
    length = num_elements.item()
    require(length >= -1, f"TensorListScatter expects num_elements >= -1, found: {length}")
    shape = partial_shape_of(element_shape)
    check_row_shape(tensor, shape)
    require_equal(
        indices.size, len(tensor), "Invalid number of rows in input tensor. Expected: {} Actual: {}"
    )
    positions = indices.reshape(-1).tolist()
    if min(positions, default=0) < 0:
        raise InvalidArgumentError("Indices in TensorListScatter must all be non-negative.")
    highest = max(positions, default=-1)
    if -1 < length <= highest:
        raise InvalidArgumentError(
            f"TensorListScatter: Trying to scatter at index {highest} in list with size {length}"
        )
    elements = _scattered(PersistentList(), positions, tensor, max(highest + 1, length))
    return handle_of(TensorList(element_dtype, shape, elements))


def _scattered(elements: Elements, positions: list[int], tensor: Any, length: int) -> Elements:
    """The elements, made as long as that, with the rows of a tensor at the positions."""
    check_allocation((length,), DataType.DT_INT64)
    if length > len(elements):
        elements = elements.resized(length, None)
    changed = list(elements)
    for position, row in zip(in_time(positions), rows_of(tensor), strict=True):
        changed[position] = row
    return PersistentList(changed)


def scatter_into_existing_list_shape(c: InferenceContext) -> None:
    """A list like input 0."""
    c.with_rank_at_least(c.input(1), 1)
    c.with_rank(c.input(2), 1)
    push_back_shape(c)


TENSOR_LIST_SCATTER_INTO_EXISTING_LIST = register_op(
    "TensorListScatterIntoExistingList(input_handle: variant, tensor: element_dtype, "
    "indices: int32) -> output_handle: variant",
    attrs=["element_dtype: type"],
    shape_fn=scatter_into_existing_list_shape,
    type_constructor=list_type,
    doc="The list with row i of `tensor` for element `indices[i]`, longer if needed.",
)


@register_kernel(
    TENSOR_LIST_SCATTER_INTO_EXISTING_LIST, types={"element_dtype": ELEMENT_TYPES}, kind="view"
)
def tensor_list_scatter_into_existing_list(
    input_handle: Any, tensor: Any, indices: Any, *, element_dtype: DataType
) -> Any:
    old = list_of(input_handle, element_dtype)
    check_rows(tensor)
    require_vector(indices, "Expected indices to be a vector, but received shape: {}")
    require_equal(
        len(indices), len(tensor), "Expected len(indices) == tensor.shape[0], but saw: {} vs. {}"
    )
    positions = indices.tolist()
    if min(positions, default=0) < 0:
        raise InvalidArgumentError(f"Trying to modify element {min(positions)} of a list")
    length = max(len(old), max(positions, default=-1) + 1)
    return handle_of(old.with_elements(_scattered(old.elements, positions, tensor, length)))


@g.register_gradient("TensorListScatter", "TensorListScatterV2")
def scatter_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    tensor, indices, *others = op.inputs
    return _rows(grad, tensor, indices), None, *[None for _ in others]


@g.register_gradient("TensorListScatterIntoExistingList")
def scatter_into_existing_list_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, tensor, indices = op.inputs
    rest = g.nodes.TensorListScatterIntoExistingList(grad, g.zeros_like(tensor), indices)
    return rest, _rows(grad, tensor, indices), None


def _rows(grad: g.Tensor, tensor: g.Tensor, indices: g.Tensor) -> Any:
    return g.nodes.TensorListGather(grad, indices, row_shape(tensor), element_dtype=tensor.dtype)
