"""Rows of a tensor put into lists by index: the TensorListScatter ops.

Source: TensorFlow core/ops/list_ops.cc, core/kernels/list_kernels.{h,cc}.
"""

from __future__ import annotations

from typing import Any

import opkernel.gradients as g
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.input_checks import require_equal, require_scalar, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.ops.tensor_list.element_shape import ELEMENT_TYPES, partial_shape_of, row_shape
from opkernel.ops.tensor_list.list_data import (
    check_list_dtype,
    list_type,
    set_list_data,
    set_new_list,
)
from opkernel.ops.tensor_list.persistent_list import PersistentList
from opkernel.ops.tensor_list.rows import check_row_shape, check_rows, rows_of
from opkernel.ops.tensor_list.value import Elements, TensorList, handle_of, list_of
from opkernel.types import DataType


def scatter_shape(c: InferenceContext) -> None:
    """A list of tensors of the shape in input 2."""
    set_new_list(c, shape_input=2)


TENSOR_LIST_SCATTER = register_op(
    "TensorListScatter",
    inputs=["tensor: element_dtype", "indices: int32", "element_shape: shape_type"],
    outputs=["output_handle: variant"],
    attrs=["element_dtype: type", "shape_type: {int32, int64}"],
    shape_fn=scatter_shape,
    type_constructor=list_type,
    doc="A list whose element `indices[i]` is row i of `tensor`, just long enough for all.",
)

TENSOR_LIST_SCATTER_V2 = register_op(
    "TensorListScatterV2",
    inputs=[
        "tensor: element_dtype",
        "indices: int32",
        "element_shape: shape_type",
        "num_elements: int32",
    ],
    outputs=["output_handle: variant"],
    attrs=["element_dtype: type", "shape_type: {int32, int64}"],
    shape_fn=scatter_shape,
    type_constructor=list_type,
    doc="A list of `num_elements` (as many as needed if -1), element `indices[i]` row i of `tensor`.",
)


@register_kernel(TENSOR_LIST_SCATTER, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_scatter(
    tensor: Any, indices: Any, element_shape: Any, *, element_dtype: DataType
) -> Any:
    return _new_list(tensor, indices, element_shape, -1, element_dtype)


@register_kernel(TENSOR_LIST_SCATTER_V2, types={"element_dtype": ELEMENT_TYPES}, kind="view")
def tensor_list_scatter_v2(
    tensor: Any, indices: Any, element_shape: Any, num_elements: Any, *, element_dtype: DataType
) -> Any:
    require_scalar(num_elements, "num_elements must be a scalar")
    length = num_elements.item()
    if length < -1:
        raise InvalidArgumentError(f"TensorListScatter expects num_elements >= -1, found: {length}")
    return _new_list(tensor, indices, element_shape, length, element_dtype)


def _new_list(
    tensor: Any, indices: Any, element_shape: Any, num_elements: int, element_dtype: DataType
) -> Any:
    shape = partial_shape_of(element_shape)
    check_row_shape(tensor, shape)
    require_equal(
        indices.size, len(tensor), "Invalid number of rows in input tensor. Expected: {} Actual: {}"
    )
    positions = indices.reshape(-1).tolist()
    if min(positions, default=0) < 0:
        raise InvalidArgumentError("Indices in TensorListScatter must all be non-negative.")
    highest = max(positions, default=-1)
    if -1 < num_elements <= highest:
        raise InvalidArgumentError(
            f"TensorListScatter: Trying to scatter at index {highest} in list with size "
            f"{num_elements}"
        )
    elements = _scattered(PersistentList(), positions, tensor, max(highest + 1, num_elements))
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
    data = check_list_dtype(c)
    c.set_output(0, c.scalar())
    set_list_data(c, c.unknown_shape() if data is None else data.shape)


TENSOR_LIST_SCATTER_INTO_EXISTING_LIST = register_op(
    "TensorListScatterIntoExistingList",
    inputs=["input_handle: variant", "tensor: element_dtype", "indices: int32"],
    outputs=["output_handle: variant"],
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
    old = list_of(input_handle)
    old.check_dtype(element_dtype)
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


@g.register_gradient("TensorListScatter")
def scatter_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    tensor, indices, _ = op.inputs
    return _rows(grad, tensor, indices), None, None


@g.register_gradient("TensorListScatterV2")
def scatter_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    tensor, indices, _, _ = op.inputs
    return _rows(grad, tensor, indices), None, None, None


@g.register_gradient("TensorListScatterIntoExistingList")
def scatter_into_existing_list_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, tensor, indices = op.inputs
    rest = g.nodes.TensorListScatterIntoExistingList(grad, g.zeros_like(tensor), indices)
    return rest, _rows(grad, tensor, indices), None


def _rows(grad: g.Tensor, tensor: g.Tensor, indices: g.Tensor) -> Any:
    return g.nodes.TensorListGather(grad, indices, row_shape(tensor), element_dtype=tensor.dtype)
