"""Elements of a list stacked to one tensor: TensorListStack, TensorListGather.

Source: TensorFlow core/ops/list_ops.cc, core/kernels/list_kernels.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import opkernel.gradients as g
from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.array.concat import stacked
from opkernel.ops.array.fill import zeros
from opkernel.ops.registration import register_kernel
from opkernel.ops.tensor_list.element_shape import (
    ELEMENT_TYPES,
    element_shape,
    merge_element_shapes,
    read_element_shape,
    row_shape,
)
from opkernel.ops.tensor_list.list_data import read_shape
from opkernel.ops.tensor_list.value import list_of
from opkernel.types import DataType, TensorShape

_OF_INDEX, _ONE_MORE = 50, 1 << 9
"""The bytes of an index and of the place of its element, and the work of a turn of a short loop."""


def stack_shape(c: InferenceContext) -> None:
    """`num_elements` tensors of the shape that the list and input 1 agree in."""
    element_shape = read_shape(c, shape_input=1)
    c.set_output(0, c.concatenate(c.vector(c.get_attr("num_elements")), element_shape))


TENSOR_LIST_STACK = register_op(
    "TensorListStack",
    inputs=["input_handle: variant", "element_shape: int32"],
    outputs=["tensor: element_dtype"],
    attrs=["element_dtype: type", "num_elements: int = -1"],
    shape_fn=stack_shape,
    traits="item_rule=stack",
    doc="The elements of the list, stacked; it must have `num_elements` unless that is -1.",
)


@register_kernel(TENSOR_LIST_STACK, types={"element_dtype": ELEMENT_TYPES})
def tensor_list_stack(
    input_handle: Any, element_shape: Any, *, element_dtype: DataType, num_elements: int
) -> Any:
    tensor_list = list_of(input_handle)
    tensor_list.check_dtype(element_dtype)
    if num_elements not in (-1, len(tensor_list)):
        raise InvalidArgumentError(
            f"Operation expected a list with {num_elements} elements but got a list with "
            f"{len(tensor_list)} elements."
        )
    shape = read_element_shape(element_shape, tensor_list)
    elements = tensor_list.as_tensors()
    if not elements and not shape.is_fully_defined():
        raise InvalidArgumentError(
            "Tried to stack elements of an empty list with non-fully-defined element_shape: "
            f"{shape}"
        )
    shape = merge_element_shapes(shape, elements)
    if not shape.is_fully_defined():
        raise InvalidArgumentError(
            "Tried to stack list which only contains uninitialized tensors and has a "
            f"non-fully-defined element_shape: {shape}"
        )
    return _stacked(elements, shape.as_tensor_shape(), element_dtype)


def gather_shape(c: InferenceContext) -> None:
    """The shape of input 1, and then that which the list and input 2 agree in."""
    element_shape = read_shape(c, shape_input=2)
    c.set_output(0, c.concatenate(c.input(1), element_shape))


TENSOR_LIST_GATHER = register_op(
    "TensorListGather",
    inputs=["input_handle: variant", "indices: int32", "element_shape: int32"],
    outputs=["values: element_dtype"],
    attrs=["element_dtype: type"],
    shape_fn=gather_shape,
    doc="The elements of the list at `indices`, stacked.",
)


@register_kernel(TENSOR_LIST_GATHER, types={"element_dtype": ELEMENT_TYPES})
def tensor_list_gather(
    input_handle: Any, indices: Any, element_shape: Any, *, element_dtype: DataType
) -> Any:
    tensor_list = list_of(input_handle)
    tensor_list.check_dtype(element_dtype)
    shape = read_element_shape(element_shape, tensor_list)
    if indices.size == 0 and not shape.is_fully_defined():
        raise InvalidArgumentError(
            f"Tried to gather 0-elements from a list with non-fully-defined shape: {shape}"
        )
    elements = []
    check_bytes(_OF_INDEX * indices.size, "elements of a list")
    for i in in_time(indices.reshape(-1).tolist()):
        if not 0 <= i < len(tensor_list):
            raise InvalidArgumentError(
                f"Index {i} out of range; list only has {len(tensor_list)} elements."
            )
        elements.append(tensor_list.elements[i])
    shape = merge_element_shapes(shape, elements)
    if not shape.is_fully_defined():
        raise InvalidArgumentError(
            "Tried to gather uninitialized tensors from a list with non-fully-defined "
            f"element_shape: {shape}"
        )
    return _stacked(elements, shape.as_tensor_shape(), element_dtype)


def _stacked(elements: Sequence[Any], shape: TensorShape, dtype: DataType) -> Any:
    """Tensors of one shape as one tensor; zeros for those that are None."""
    output_shape = check_allocation((len(elements), *shape), dtype)
    if not elements:
        return zeros(output_shape, dtype)
    if any(element is None for element in in_time(elements, _ONE_MORE)):
        unset = zeros(shape, dtype)
        elements = [unset if element is None else element for element in in_time(elements)]
    return stacked(elements)


@g.register_gradient("TensorListStack")
def stack_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.TensorListFromTensor(grad, row_shape(grad)), None


@g.register_gradient("TensorListGather")
def gather_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    handle, indices, _ = op.inputs
    empty = g.nodes.TensorListReserve(
        element_shape(handle), g.nodes.TensorListLength(handle), element_dtype=grad.dtype
    )
    return g.nodes.TensorListScatterIntoExistingList(empty, grad, indices), None, None
