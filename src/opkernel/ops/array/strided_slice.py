"""Slices: Slice, StridedSlice, StridedSliceGrad, and their gradients.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/strided_slice_op.cc, core/kernels/slice_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction, check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import random_shape, slice_shape, unchanged_shape
from opkernel.opdef.common_shapes.elementwise import keep_contents
from opkernel.ops.array.fill import zeros
from opkernel.ops.array.strided_slice_spec import (
    Masks,
    SparseSpec,
    StridedSlice,
    check_vectors,
    strided_slice,
)
from opkernel.ops.input_checks import require_vector
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.kernel_types import ALL, FLOAT8, POD_OR_STRING, QUANTIZED
from opkernel.ops.registration import register_kernel
from opkernel.state.lasting_values import CONSTANT, lasting_value
from opkernel.types import DataType, PartialTensorShape, TensorShape

SLICE = register_op(
    "Slice",
    inputs=["input: T", "begin: Index", "size: Index"],
    outputs=["output: T"],
    attrs=["T: type", "Index: {int32, int64}"],
    shape_fn=slice_shape,
    traits="value_rule=slice cost=linear int32_on_host function_gradient=yes",
    doc="The block of `input` that starts at `begin` and has shape `size`; -1 is all that is left.",
)


@register_kernel(
    SLICE,
    types={"T": (*POD_OR_STRING, *FLOAT8, *QUANTIZED)},
    host_memory=["begin", "size"],
    kind="view",
)
def slice_of(tensor: Any, begin: Any, size: Any) -> Any:
    rank = tensor.ndim
    if not begin.shape == size.shape == (rank,):
        raise InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {rank}, but got shapes "
            f"{TensorShape(begin.shape)} and {TensorShape(size.shape)} instead."
        )
    index: list[Any] = [...]  # keeps a view of rank 0 an array
    block = zip(begin.tolist(), size.tolist(), tensor.shape, strict=True)
    for i, (start, length, limit) in enumerate(block):
        stop = limit if length == -1 else start + length
        if not 0 <= start <= stop <= limit:
            raise _out_of_bounds(i, (start, stop - start), limit)
        index.append(slice(start, stop))
    return tensor[tuple(index)]


def _out_of_bounds(axis: int, block: Sequence[int], limit: int) -> InvalidArgumentError:
    start, length = block
    if limit == 0:
        return InvalidArgumentError(
            f"Expected begin[{axis}] == 0 (got {start}) and size[{axis}] == 0 (got {length}) when "
            f"input.dim_size({axis}) == 0"
        )
    if not 0 <= start <= limit:
        return InvalidArgumentError(f"Expected begin[{axis}] in [0, {limit}], but got {start}")
    return InvalidArgumentError(f"Expected size[{axis}] in [0, {limit - start}], but got {length}")


@g.register_gradient("Slice")
def slice_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The gradient with zeros around it."""
    x, begin, _ = op.inputs
    size = g.nodes.Shape(op.outputs[0], out_type=begin.dtype)
    behind = g.nodes.Sub(g.nodes.Sub(g.nodes.Shape(x, out_type=begin.dtype), size), begin)
    return g.nodes.Pad(grad, g.nodes.Pack([begin, behind], axis=1)), None, None


MASK_ATTRS = [
    "begin_mask: int = 0",
    "end_mask: int = 0",
    "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0",
    "shrink_axis_mask: int = 0",
]
SLICE_TYPES = (*ALL, *FLOAT8, *QUANTIZED)
_CACHED_SPECS = 64

_Vector = tuple[int, ...]
_Apply = Callable[[bytes, bytes, bytes, _Vector], StridedSlice]


def strided_slice_shape(c: InferenceContext) -> None:
    """The slice of the known part of the shape; needs the values of `strides`."""
    count = c.with_rank(c.input(1), 1)
    for i in (2, 3):
        count = c.merge(count, c.with_rank(c.input(i), 1))
    strides = c.input_tensor(3)
    dims = c.input(0).dims
    if dims is None or not c.value_known(c.dim(count, 0)) or strides is None:
        c.set_output(0, c.unknown_shape())
        return
    begin, end = c.input_tensor(1), c.input_tensor(2)
    check_vectors(
        None if begin is None else begin.shape, None if end is None else end.shape, strides.shape
    )
    spec = SparseSpec(_values(begin), _values(end), strides.tolist(), masks_of(c))
    sliced = strided_slice(spec, [dim.value for dim in dims])
    c.set_output(0, c.make_shape_from_partial_shape(PartialTensorShape(sliced.final_shape)))
    keep_contents(c)


def _values(vector: Any) -> list[int] | None:
    return None if vector is None else [int(value) for value in vector]


def masks_of(node: InferenceContext | OpKernelConstruction) -> Masks:
    """The masks of a node."""
    names = (f"{field}_mask" for field in Masks._fields)
    return Masks(*(int32_attr(name, node.get_attr(name)) for name in names))


STRIDED_SLICE = register_op(
    "StridedSlice",
    inputs=["input: T", "begin: Index", "end: Index", "strides: Index"],
    outputs=["output: T"],
    attrs=["T: type", "Index: {int16, int32, int64}", *MASK_ATTRS],
    shape_fn=strided_slice_shape,
    traits="value_rule=strided_slice cost=linear int32_on_host function_gradient=yes",
    doc="`input[begin:end:strides]`, one entry an index; the masks have one bit an entry.",
)


def _cached_spec(construction: OpKernelConstruction) -> _Apply:
    """Applies specs of a node to shapes, and remembers the last ones."""
    masks, dtype = masks_of(construction), construction.get_attr("Index").numpy_dtype

    @lru_cache(maxsize=_CACHED_SPECS)
    def apply(begin: bytes, end: bytes, strides: bytes, shape: _Vector) -> StridedSlice:
        vectors = [np.frombuffer(vector, dtype) for vector in (begin, end, strides)]
        check_vectors(*(vector.shape for vector in vectors))
        first, last, step = (vector.tolist() for vector in vectors)
        return strided_slice(SparseSpec(first, last, step, masks), shape)

    return apply


def _applied(apply: _Apply, begin: Any, end: Any, strides: Any, shape: _Vector) -> StridedSlice:
    if not begin.ndim == end.ndim == strides.ndim == 1:
        check_vectors(begin.shape, end.shape, strides.shape)
    return apply(begin.tobytes(), end.tobytes(), strides.tobytes(), shape)


def _is_constant(vector: Any) -> bool:
    known = lasting_value(vector)
    return known is not None and known.version == CONSTANT


@register_kernel(
    STRIDED_SLICE,
    types={"T": SLICE_TYPES},
    host_memory=["begin", "end", "strides"],
    kind="view",
    factory=True,
)
def strided_slice_kernel(
    *, construction: OpKernelConstruction
) -> Callable[[Any, Any, Any, Any], Any]:
    """The index of the last call stays: mostly the next one has the same constants and shape."""
    apply = _cached_spec(construction)
    last: tuple[Any, ...] = (None,) * 5

    def slice_of(tensor: Any, begin: Any, end: Any, strides: Any) -> Any:
        nonlocal last
        known_begin, known_end, known_strides, shape, index = last
        if (
            begin is not known_begin
            or end is not known_end
            or strides is not known_strides
            or tensor.shape != shape
        ):
            index = _applied(apply, begin, end, strides, tensor.shape).array_index
            if all(map(_is_constant, (begin, end, strides))):
                last = begin, end, strides, tensor.shape, index
        return tensor[index]

    return slice_of


STRIDED_SLICE_GRAD = register_op(
    "StridedSliceGrad",
    inputs=["shape: Index", "begin: Index", "end: Index", "strides: Index", "dy: T"],
    outputs=["output: T"],
    attrs=["T: type", "Index: {int32, int64}", *MASK_ATTRS],
    shape_fn=random_shape,
    doc="Zeros of `shape` with `dy` where StridedSlice takes its result from.",
    traits="function_gradient=yes",
)


@register_kernel(
    STRIDED_SLICE_GRAD,
    types={"T": SLICE_TYPES},
    host_memory=["shape", "begin", "end", "strides"],
    factory=True,
)
def strided_slice_grad(
    *, T: DataType, construction: OpKernelConstruction
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    apply = _cached_spec(construction)

    def grad(shape: Any, begin: Any, end: Any, strides: Any, dy: Any) -> Any:
        require_vector(shape, "shape must be 1-D, got shape.shape = {}")
        sizes = check_allocation(shape.tolist(), T)
        index, expected = _applied(apply, begin, end, strides, sizes)
        if list(dy.shape) != expected:
            raise InvalidArgumentError(
                f"shape of dy was {TensorShape(dy.shape)} instead of {TensorShape(expected)}"
            )
        output = zeros(sizes, T)
        output[index] = dy
        return output

    return grad


TENSOR_STRIDED_SLICE_UPDATE = register_op(
    "TensorStridedSliceUpdate",
    inputs=["input: T", "begin: Index", "end: Index", "strides: Index", "value: T"],
    outputs=["output: T"],
    attrs=["T: type", "Index: {int32, int64}", *MASK_ATTRS],
    shape_fn=unchanged_shape,
    doc="`input` with `value`, broadcast, where StridedSlice takes its result from.",
)


def slice_assigner(
    T: DataType, construction: OpKernelConstruction
) -> Callable[[Any, Any, Any, Any, Any], None]:
    """For the masks of a node, what writes a value to where StridedSlice takes its result from.

    The function takes the array to write to, begin, end, strides and the value. It raises
    InvalidArgumentError where the value cannot be broadcast, or the type is not supported.
    """
    apply = _cached_spec(construction)

    def assign(output: Any, begin: Any, end: Any, strides: Any, value: Any) -> None:
        index, expected = _applied(apply, begin, end, strides, output.shape)
        if T in FLOAT8 or T in QUANTIZED:
            raise InvalidArgumentError(f"Unsupported data type: {T.string}")
        if 0 in expected:
            return
        try:
            output[index] = value
        except ValueError:
            raise InvalidArgumentError(
                f"Cannot broadcast input shape {TensorShape(value.shape)} into final shape "
                f"{TensorShape(expected)}"
            ) from None

    return assign


@register_kernel(
    TENSOR_STRIDED_SLICE_UPDATE,
    types={"T": SLICE_TYPES},
    host_memory=["begin", "end", "strides"],
    factory=True,
)
def tensor_strided_slice_update(
    *, T: DataType, construction: OpKernelConstruction
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    assign = slice_assigner(T, construction)

    def update(tensor: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
        output = np.array(tensor)
        assign(output, begin, end, strides, value)
        return output

    return update


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@g.register_gradient("StridedSlice")
def strided_slice_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, *place = op.inputs
    shape = g.nodes.Shape(x, out_type=place[0].dtype)
    return (
        g.nodes.StridedSliceGrad(shape, *place, grad, **g.attrs_of(op, *_MASKS)),
        None,
        None,
        None,
    )


@g.register_gradient("StridedSliceGrad")
def strided_slice_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, *place, _ = op.inputs
    return None, None, None, None, g.nodes.StridedSlice(grad, *place, **g.attrs_of(op, *_MASKS))


@g.register_gradient("TensorStridedSliceUpdate")
def tensor_strided_slice_update_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, *place, value = op.inputs
    of_part = g.nodes.StridedSlice(grad, *place, **g.attrs_of(op, *_MASKS))
    of_rest = g.nodes.TensorStridedSliceUpdate(
        grad, *place, g.zeros_like(of_part), **g.attrs_of(op, *_MASKS)
    )
    _, of_value = g.sum_to_operands(of_part, value, None, of_part)
    return of_rest, None, None, None, of_value
