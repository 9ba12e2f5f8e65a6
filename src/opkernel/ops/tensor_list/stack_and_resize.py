"""Lists as tensors: TensorListStack, TensorListGather, TensorListConcat; and as wholes: TensorListResize and others.

Source: TensorFlow core/ops/list_ops.cc, core/kernels/list_kernels.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes import scalar_shape
from opkernel.ops.array.concat import concatenated, stacked
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require, require_equal, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.tensor_list.items import (
    ELEMENT_TYPES,
    check_list_dtype,
    element_shape,
    list_data,
    list_type,
    merge_element_shapes,
    merge_shapes,
    pass_list_on,
    read_element_shape,
    read_shape,
    row_shape,
    set_list_data,
    unset_list,
)
from opkernel.ops.tensor_list.value import (
    PersistentList,
    TensorList,
    as_list,
    handle_of,
    list_of,
    objects,
)
from opkernel.types import DataType, PartialTensorShape

_OF_INDEX, _ONE_MORE = 50, 1 << 9
"""The bytes of an index and of the place of its element, and the work of a turn of a short loop."""


def stack_shape(c: InferenceContext) -> None:
    """`num_elements` tensors of the shape that the list and input 1 agree in."""
    element_shape = read_shape(c, shape_input=1)
    c.set_output(0, c.concatenate(c.vector(c.get_attr("num_elements")), element_shape))


TENSOR_LIST_STACK = register_op(
    "TensorListStack(input_handle: variant, element_shape: int32) -> tensor: element_dtype",
    attrs=["element_dtype: type", "num_elements: int = -1"],
    shape_fn=stack_shape,
    traits="item_rule=stack",
    doc="The elements of the list, stacked; it must have `num_elements` unless that is -1.",
)


@register_kernel(TENSOR_LIST_STACK, types={"element_dtype": ELEMENT_TYPES})
def tensor_list_stack(
    input_handle: Any, element_shape: Any, *, element_dtype: DataType, num_elements: int
) -> Any:
    tensor_list = list_of(input_handle, element_dtype)
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
    tried = "stack list which only contains uninitialized tensors and has a"
    return _stacked(elements, shape, element_dtype, tried)


def gather_shape(c: InferenceContext) -> None:
    """The shape of input 1, and then that which the list and input 2 agree in."""
    c.set_output(0, c.concatenate(c.input(1), read_shape(c, shape_input=2)))


TENSOR_LIST_GATHER = register_op(
    "TensorListGather(input_handle: variant, indices: int32, element_shape: int32) "
    "-> values: element_dtype",
    attrs=["element_dtype: type"],
    shape_fn=gather_shape,
    doc="The elements of the list at `indices`, stacked.",
)


@register_kernel(TENSOR_LIST_GATHER, types={"element_dtype": ELEMENT_TYPES})
def tensor_list_gather(
    input_handle: Any, indices: Any, element_shape: Any, *, element_dtype: DataType
) -> Any:
    tensor_list = list_of(input_handle, element_dtype)
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
    return _stacked(elements, shape, element_dtype, "gather uninitialized tensors from a list with")


def _stacked(
    elements: Sequence[Any], known: PartialTensorShape, dtype: DataType, tried: str
) -> Any:
    """Tensors of one shape, which they say, as one tensor; zeros for those that are None."""
    merged = merge_element_shapes(known, elements)
    if not merged.is_fully_defined():
        raise InvalidArgumentError(f"Tried to {tried} non-fully-defined element_shape: {merged}")
    shape = merged.as_tensor_shape()
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
    empty = unset_list(handle, grad)
    return g.nodes.TensorListScatterIntoExistingList(empty, grad, indices), None, None


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
    "TensorListConcat(input_handle: variant) -> tensor: element_dtype, lengths: int64",
    attrs=["element_dtype: type", "element_shape: shape = { unknown_rank: true }"],
    shape_fn=concat_shape,
    doc="The elements of the list one after the other, and the length of each.",
)

TENSOR_LIST_CONCAT_V2 = register_op(
    "TensorListConcatV2(input_handle: variant, element_shape: shape_type, leading_dims: int64) "
    "-> tensor: element_dtype, lengths: int64",
    attrs=["element_dtype: type", "shape_type: {int32, int64}"],
    shape_fn=concat_v2_shape,
    doc="As TensorListConcat; elements that were not set have the lengths `leading_dims`.",
)


@register_kernel(TENSOR_LIST_CONCAT, types={"element_dtype": ELEMENT_TYPES})
def tensor_list_concat(
    input_handle: Any, *, element_dtype: DataType, element_shape: PartialTensorShape
) -> tuple[Any, Any]:
    require(element_shape.rank != 0, "element_shape must not be empty")
    tensor_list = list_of(input_handle, element_dtype)
    return _concatenated(tensor_list, _rest(element_shape), None, [])


@register_kernel(TENSOR_LIST_CONCAT_V2, types={"element_dtype": ELEMENT_TYPES})
def tensor_list_concat_v2(
    input_handle: Any, element_shape: Any, leading_dims: Any, *, element_dtype: DataType
) -> tuple[Any, Any]:
    tensor_list = list_of(input_handle, element_dtype)
    shape = read_element_shape(element_shape, tensor_list)
    require(
        shape.rank != 0, "Concat requires elements to be at least vectors, found scalars instead."
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


TENSOR_LIST_LENGTH = register_op(
    "TensorListLength(input_handle: variant) -> length: int32",
    shape_fn=scalar_shape,
    doc="The number of elements of the list.",
)


@register_kernel(TENSOR_LIST_LENGTH)
def tensor_list_length(input_handle: Any) -> Any:
    return np.int32(len(list_of(input_handle)))


def element_shape_shape(c: InferenceContext) -> None:
    """A vector as long as the rank of the elements, if that is known."""
    data = list_data(c)
    known = data is not None and c.rank_known(data.shape)
    c.set_output(0, c.vector(c.rank(data.shape)) if data and known else c.unknown_shape())


TENSOR_LIST_ELEMENT_SHAPE = register_op(
    "TensorListElementShape(input_handle: variant) -> element_shape: shape_type",
    attrs=["shape_type: {int32, int64}"],
    shape_fn=element_shape_shape,
    doc="What the shapes of the elements share, -1 for an unknown size; -1 alone for any shape.",
)


@register_kernel(TENSOR_LIST_ELEMENT_SHAPE)
def tensor_list_element_shape(input_handle: Any, *, shape_type: DataType) -> Any:
    dims = list_of(input_handle).element_shape.dims
    sizes = -1 if dims is None else [-1 if size is None else size for size in dims]
    return np.array(sizes, shape_type.numpy_dtype)


def resize_shape(c: InferenceContext) -> None:
    """A list like input 0."""
    c.with_rank(c.input(1), 0)
    pass_list_on(c)


TENSOR_LIST_RESIZE = register_op(
    "TensorListResize(input_handle: variant, size: int32) -> output_handle: variant",
    shape_fn=resize_shape,
    doc="The first `size` elements of the list; those beyond its end are not set.",
)


@register_kernel(TENSOR_LIST_RESIZE, kind="view")
def tensor_list_resize(input_handle: Any, size: Any) -> Any:
    old = list_of(input_handle)
    require_scalar(size, "size must be a scalar")
    length = size.item()
    require(length >= 0, f"TensorListSlice expects size to be non-negative. Got: {length}")
    check_allocation((length,), DataType.DT_INT64)
    return handle_of(old.with_elements(old.elements.resized(length, None)))


def concat_lists_shape(c: InferenceContext) -> None:
    """Lists of the elements of both lists, in the shape of both inputs."""
    c.set_output(0, c.merge(c.input(0), c.input(1)))
    element_dtype, element_shape = c.get_attr("element_dtype"), c.unknown_shape()
    for index, name in enumerate(("input_a", "input_b")):
        data = list_data(c, index)
        if data is None:
            continue
        if data.dtype != element_dtype:
            raise InvalidArgumentError(
                f"{name}.type != element_dtype: {data.dtype.string} vs. {element_dtype.string}"
            )
        element_shape = c.merge(element_shape, data.shape)
    set_list_data(c, element_shape)


TENSOR_LIST_CONCAT_LISTS = register_op(
    "TensorListConcatLists(input_a: variant, input_b: variant) -> output: variant",
    attrs=["element_dtype: type"],
    shape_fn=concat_lists_shape,
    type_constructor=list_type,
    doc="The elements of the lists of `input_a`, and after them those of `input_b`.",
)


@register_kernel(TENSOR_LIST_CONCAT_LISTS, kind="view")
def tensor_list_concat_lists(input_a: Any, input_b: Any, *, element_dtype: DataType) -> Any:
    require_equal(
        input_a.shape, input_b.shape, "Incompatible input TensorList tensor shapes: {} vs. {}"
    )
    pairs = enumerate(in_time(zip(input_a.flat, input_b.flat, strict=True), SLOW))
    return objects([_joined(a, b, element_dtype, i) for i, (a, b) in pairs], input_a.shape)


def _joined(a: object, b: object, element_dtype: DataType, at: int) -> TensorList:
    first, second = (
        as_list(value, f"input_{name} is not a TensorList at index {at}.")
        for name, value in (("a", a), ("b", b))
    )
    for name, tensor_list in (("a", first), ("b", second)):
        if tensor_list.element_dtype != element_dtype:
            raise InvalidArgumentError(
                f"input_{name}[{at}].dtype != element_dtype.  Saw: "
                f"{tensor_list.element_dtype.string} vs. {element_dtype.string}"
            )
    if first.element_shape != second.element_shape:
        raise InvalidArgumentError(
            "input_a and input_b TensorList element shapes are not identical at index "
            f"{at}.  Saw {first.element_shape} vs. {second.element_shape}"
        )
    return first.with_elements(PersistentList([*first.as_tensors(), *second.as_tensors()]))


@g.register_gradient("TensorListResize")
def resize_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.TensorListResize(grad, g.nodes.TensorListLength(op.inputs[0])), None
