"""Elements of a list put one after the other: TensorListConcat, TensorListConcatV2.

Source: TensorFlow core/ops/list_ops.cc, core/kernels/list_kernels.h.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, ShapeHandle, register_op
from opkernel.ops.array.concat import concatenated
from opkernel.ops.array.fill import zeros
from opkernel.ops.registration import register_kernel
from opkernel.ops.tensor_list.element_shape import (
    ELEMENT_TYPES,
    element_shape,
    merge_shapes,
    read_element_shape,
)
from opkernel.ops.tensor_list.list_data import check_list_dtype, read_shape
from opkernel.ops.tensor_list.value import TensorList, list_of
from opkernel.types import DataType, PartialTensorShape

_OF_ELEMENT = 300
"""The bytes of what is known of an element: its shape and its length."""


def concat_shape(c: InferenceContext) -> None:
    """Any number of rows of the shape that the list and the attr `element_shape` agree in."""
    data = check_list_dtype(c)
    element_shape = c.make_shape_from_partial_shape(c.get_attr("element_shape"))
    _set_outputs(c, element_shape if data is None else c.merge(element_shape, data.shape))


def concat_v2_shape(c: InferenceContext) -> None:
    """Any number of rows of the shape that the list and input 1 agree in."""
    _set_outputs(c, read_shape(c, shape_input=1))


def _set_outputs(c: InferenceContext, element_shape: ShapeHandle) -> None:
    any_length = c.vector(c.unknown_dim())
    c.set_output(0, c.concatenate(any_length, c.subshape(element_shape, 1)))
    c.set_output(1, c.vector(c.unknown_dim()))


TENSOR_LIST_CONCAT = register_op(
    "TensorListConcat",
    inputs=["input_handle: variant"],
    outputs=["tensor: element_dtype", "lengths: int64"],
    attrs=["element_dtype: type", "element_shape: shape = { unknown_rank: true }"],
    shape_fn=concat_shape,
    doc="The elements of the list one after the other, and the length of each.",
)

TENSOR_LIST_CONCAT_V2 = register_op(
    "TensorListConcatV2",
    inputs=["input_handle: variant", "element_shape: shape_type", "leading_dims: int64"],
    outputs=["tensor: element_dtype", "lengths: int64"],
    attrs=["element_dtype: type", "shape_type: {int32, int64}"],
    shape_fn=concat_v2_shape,
    doc="As TensorListConcat; elements that were not set have the lengths `leading_dims`.",
)


@register_kernel(TENSOR_LIST_CONCAT, types={"element_dtype": ELEMENT_TYPES})
def tensor_list_concat(
    input_handle: Any, *, element_dtype: DataType, element_shape: PartialTensorShape
) -> tuple[Any, Any]:
    if element_shape.rank == 0:
        raise InvalidArgumentError("element_shape must not be empty")
    tensor_list = list_of(input_handle)
    tensor_list.check_dtype(element_dtype)
    return _concatenated(tensor_list, _rest(element_shape), None, [])


@register_kernel(TENSOR_LIST_CONCAT_V2, types={"element_dtype": ELEMENT_TYPES})
def tensor_list_concat_v2(
    input_handle: Any, element_shape: Any, leading_dims: Any, *, element_dtype: DataType
) -> tuple[Any, Any]:
    tensor_list = list_of(input_handle)
    tensor_list.check_dtype(element_dtype)
    shape = read_element_shape(element_shape, tensor_list)
    if shape.rank == 0:
        raise InvalidArgumentError(
            "Concat requires elements to be at least vectors, found scalars instead."
        )
    length = shape.dims[0] if shape.dims else None
    return _concatenated(tensor_list, _rest(shape), length, leading_dims.reshape(-1).tolist())


def _rest(shape: PartialTensorShape) -> PartialTensorShape:
    """A shape without its first dimension."""
    return PartialTensorShape(None if shape.dims is None else shape.dims[1:])


def _concatenated(
    tensor_list: TensorList, rest: PartialTensorShape, length: int | None, unset_lengths: list[int]
) -> tuple[Any, Any]:
    """The elements one after the other, and their lengths.

    Args:
        tensor_list: The list.
        rest: The shape of the elements without the first dimension, as far as it is known.
        length: Their first dimension if it is known.
        unset_lengths: The lengths of elements that were not set, by index.
    """
    if not len(tensor_list) and not rest.is_fully_defined():
        raise InvalidArgumentError(
            "All except the first dimension must be fully defined when concating an empty tensor "
            f"list. element_shape: {rest}"
        )
    elements = tensor_list.as_tensors()
    check_bytes(_OF_ELEMENT * len(elements), "elements of a list")
    if not tensor_list.element_shape.is_fully_defined():
        rest, length = _refined(rest, length, elements)
    if not rest.is_fully_defined():
        raise InvalidArgumentError(
            "Trying to concat list with only uninitialized tensors but "
            f"element_shape_except_first_dim is not fully defined: {rest}"
        )
    lengths = [_length(elements, i, length, unset_lengths) for i in in_time(range(len(elements)))]
    dtype, row = tensor_list.element_dtype, rest.as_tensor_shape()
    shape = check_allocation((sum(lengths), *row), dtype)
    parts = [
        zeros((size, *row), dtype) if element is None else element
        for element, size in zip(in_time(elements), lengths, strict=True)
    ]
    output = concatenated(parts) if parts else zeros(shape, dtype)
    return output, np.array(lengths, np.int64)


def _refined(
    rest: PartialTensorShape, length: int | None, elements: list[Any]
) -> tuple[PartialTensorShape, int | None]:
    """The shape and length, refined by those of the elements that are set."""
    shapes = {i: element.shape for i, element in enumerate(elements) if element is not None}
    for i, shape in in_time(shapes.items()):
        if not shape:
            raise InvalidArgumentError(
                f"Concat saw a scalar shape at index {i} but requires at least vectors."
            )
        if length not in (None, shape[0]):
            raise InvalidArgumentError(
                "First entry of element_shape input does not match the first dim of list element "
                f"at index: {i} Expected: {length} Actual: {shape[0]}"
            )
    lengths = {shape[0] for shape in shapes.values()}
    shared = lengths.pop() if len(lengths) == 1 else length
    return merge_shapes(rest, (shape[1:] for shape in in_time(shapes.values()))), shared


def _length(elements: list[Any], index: int, length: int | None, unset_lengths: list[int]) -> int:
    """The first dimension of an element: its own, the given one, or else the one that all others have."""
    element = elements[index]
    if element is not None and element.ndim:
        return len(element)
    if element is None and index < len(unset_lengths) and unset_lengths[index] >= 0:
        return unset_lengths[index]
    if element is None and index >= len(unset_lengths) and length is not None:
        return length
    raise InvalidArgumentError(
        f"The length of the tensor at index {index} of the list is not known: it was not set, and "
        f"leading_dims has {len(unset_lengths)} elements"
    )


@g.register_gradient("TensorListConcat")
def concat_gradient(op: g.Operation, grad: g.Tensor, _: Any) -> g.Gradients:
    return g.nodes.TensorListSplit(grad, element_shape(op.inputs[0]), op.outputs[1])


@g.register_gradient("TensorListConcatV2")
def concat_v2_gradient(op: g.Operation, grad: g.Tensor, _: Any) -> g.Gradients:
    return concat_gradient(op, grad, _), None, None
