"""Lists as a whole: their length, what shape their elements have, one list after another.

Source: TensorFlow core/ops/list_ops.cc, core/kernels/list_kernels.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import scalar_shape
from opkernel.ops.input_checks import require_equal, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.tensor_list.list_data import list_data, list_type, pass_list_on, set_list_data
from opkernel.ops.tensor_list.persistent_list import PersistentList
from opkernel.ops.tensor_list.value import TensorList, as_list, handle_of, list_of
from opkernel.types import DataType

TENSOR_LIST_LENGTH = register_op(
    "TensorListLength",
    inputs=["input_handle: variant"],
    outputs=["length: int32"],
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
    "TensorListElementShape",
    inputs=["input_handle: variant"],
    outputs=["element_shape: shape_type"],
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
    "TensorListResize",
    inputs=["input_handle: variant", "size: int32"],
    outputs=["output_handle: variant"],
    shape_fn=resize_shape,
    doc="The first `size` elements of the list; those beyond its end are not set.",
)


@register_kernel(TENSOR_LIST_RESIZE, kind="view")
def tensor_list_resize(input_handle: Any, size: Any) -> Any:
    old = list_of(input_handle)
    require_scalar(size, "size must be a scalar")
    length = size.item()
    if length < 0:
        raise InvalidArgumentError(
            f"TensorListSlice expects size to be non-negative. Got: {length}"
        )
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
    "TensorListConcatLists",
    inputs=["input_a: variant", "input_b: variant"],
    outputs=["output: variant"],
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
    output = np.empty(input_a.shape, object)
    pairs = zip(input_a.flat, input_b.flat, strict=True)
    output.reshape(-1)[:] = [
        _joined(a, b, element_dtype, i) for i, (a, b) in enumerate(in_time(pairs, SLOW))
    ]
    return output


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
