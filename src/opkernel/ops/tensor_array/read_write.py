"""Reading and writing of tensor arrays: one element, some, or all.

The gradient of a read is a write of the gradient, which adds up; that of a write is a read.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/tensor_array_ops.cc, python/ops/tensor_array_grad.py.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import InferenceContext, scalar_shape, unknown_shape
from opkernel.opdef.common_shapes.rules import check_inputs, checked_scalar, checked_unknown
from opkernel.ops.array.concat import concatenated, stacked
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require, require_rank_at_least, require_scalar, require_vector
from opkernel.ops.registration import ALL, POD_OR_STRING, QUANTIZED, register_kernel
from opkernel.ops.resource_op_kernel import kept
from opkernel.ops.tensor_array.creation import (
    ElementKernel,
    after_forward,
    array_of,
    check_handle_and_indices,
    declare,
    element_shape_of,
    on_gradients,
)
from opkernel.ops.tensor_array.tensor_array import TensorArray
from opkernel.ops.tensor_list.items import rows_of
from opkernel.types import DataType, PartialTensorShape, TensorShape


def read_shape(c: InferenceContext) -> None:
    """The shape that the elements are known to have."""
    check_inputs(c, "h00")
    element = element_shape_of(c)
    c.set_output(0, c.unknown_shape() if element is None else element)


def gather_v2_shape(c: InferenceContext) -> None:
    """Nothing is known."""
    check_handle_and_indices(c, flow=2)
    unknown_shape(c)


def gather_shape(c: InferenceContext) -> None:
    """[indices, element...]; the elements are as the handle or else the attr says."""
    indices = check_handle_and_indices(c, flow=2)
    element = element_shape_of(c)
    if element is None:
        element = c.make_shape_from_partial_shape(c.get_attr("element_shape"))
    c.set_output(0, c.concatenate(indices, element))


def concat_shape(c: InferenceContext) -> None:
    """Any number of rows, and a vector of lengths."""
    check_inputs(c, "h0")
    c.set_output(0, c.unknown_shape())
    c.set_output(1, c.vector(None))


_ELEMENT = "element_shape: shape = { unknown_rank: true }"

_READS = declare(
    "TensorArrayRead(handle: {}, index: int32, flow_in: float) -> value: dtype",
    attrs=["dtype: type"],
    shape_fn=read_shape,
    shape_fn_v2=checked_unknown("h00"),
    doc="The element `index`.",
)
_GATHERS = declare(
    "TensorArrayGather(handle: {}, indices: int32, flow_in: float) -> value: dtype",
    attrs=["dtype: type", _ELEMENT],
    shape_fn=gather_shape,
    shape_fn_v2=gather_v2_shape,
    doc="The elements at `indices` as the rows of one tensor.",
)
(_PACK,) = declare(
    "TensorArrayPack(handle: {}, flow_in: float) -> value: dtype",
    attrs=["dtype: type", _ELEMENT],
    shape_fn=unknown_shape,
    doc="All elements as the rows of one tensor.",
    gone_from=[16],
)
_CONCATS = declare(
    "TensorArrayConcat(handle: {}, flow_in: float) -> value: dtype, lengths: int64",
    attrs=["dtype: type", "element_shape_except0: shape = { unknown_rank: true }"],
    shape_fn=concat_shape,
    doc="All elements one after the other, and the length of each.",
    gone_from=(16, None, None),
)


_STACKED = (*POD_OR_STRING, *QUANTIZED)
"""The types of elements that are put together."""


@register_kernel(*_READS, types={"dtype": ALL})
class Read(ElementKernel):
    """Reads one element."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")

    def access(self, array: TensorArray, inputs: Sequence[Any]) -> Any:
        index = inputs[1]
        require_scalar(index, "TensorArray index must be scalar, but had shape: {}")
        array.check_dtype(self.dtype, "requested")
        return array.read_element(int(index))


@register_kernel(*_GATHERS, _PACK, types={"dtype": (*_STACKED, DataType.DT_VARIANT)})
class Gather(OpKernel):
    """Reads elements of one shape into one tensor: those at the indices, or all."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")
        self.element_shape: PartialTensorShape = construction.get_attr("element_shape")

    def compute(self, ctx: OpKernelContext) -> None:
        with array_of(ctx) as array:
            array.check_dtype(self.dtype, "requested")
            array.merge_element_shape(self.element_shape)
            indices = self._indices(ctx, array)
            if not indices:
                ctx.set_output(0, _empty(self.dtype, self.element_shape, "element_shape"))
                return
            elements = array.read(indices)
        _check_first(elements[0].shape, self.element_shape, "element_shape")
        _check_alike([element.shape for element in elements])
        check_allocation((len(elements), *elements[0].shape), self.dtype)
        ctx.set_output(0, stacked(elements))

    def _indices(self, ctx: OpKernelContext, array: TensorArray) -> list[int]:
        if self.type_string == _PACK:
            return list(range(array.pack_or_concat_size()))
        indices = ctx.input(1)
        require_vector(indices, "Expected indices to be a vector, but received shape: {}")
        values: list[int] = indices.tolist()
        return values


@register_kernel(*_CONCATS, types={"dtype": _STACKED}, host_memory=["lengths", "handle"])
class Concat(OpKernel):
    """Reads all elements, one after the other, into one tensor."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")
        self.row_shape: PartialTensorShape = construction.get_attr("element_shape_except0")

    def compute(self, ctx: OpKernelContext) -> None:
        with array_of(ctx) as array:
            array.check_dtype(self.dtype, "requested")
            count = array.pack_or_concat_size()
            if count == 0:
                ctx.set_output(0, _empty(self.dtype, self.row_shape, "element_shape_except0"))
                ctx.set_output(1, np.zeros(0, np.int64))
                return
            elements = array.read(range(count))
        for index, element in enumerate(in_time(elements)):
            if element.ndim == 0:
                raise InvalidArgumentError(
                    f"Concat saw a scalar shape at index {index} but requires at least vectors.  "
                    "Did you mean to call pack?"
                )
        _check_first(elements[0].shape[1:], self.row_shape, "element_shape_except0")
        _check_alike([element.shape[1:] for element in elements], " (excepting dimension 0)")
        lengths = [len(element) for element in elements]
        check_allocation((sum(lengths), *elements[0].shape[1:]), self.dtype)
        ctx.set_output(0, concatenated(elements))
        ctx.set_output(1, np.array(lengths, np.int64))


def _empty(dtype: DataType, shape: PartialTensorShape, attr: str) -> Any:
    """The tensor of no elements, by the attr.

    Raises:
        UnimplementedError: it does not say all.
    """
    if not shape.is_fully_defined():
        raise UnimplementedError(
            f"TensorArray has size zero, but {attr} {shape} is not fully defined. Currently only "
            "static shapes are supported when packing or concatenating zero-size TensorArrays."
        )
    return zeros((0, *shape.as_tensor_shape()), dtype)


def _check_first(shape: tuple[int, ...], expected: PartialTensorShape, attr: str) -> None:
    if not expected.is_compatible_with(TensorShape(shape)):
        raise InvalidArgumentError(
            f"TensorArray was passed {attr} {expected} which does not match the Tensor at index "
            f"0: {TensorShape(shape)}"
        )


def _check_alike(shapes: Sequence[tuple[int, ...]], what: str = "") -> None:
    for index, shape in enumerate(in_time(shapes)):
        if shape != shapes[0]:
            raise InvalidArgumentError(
                f"TensorArray has inconsistent shapes.  Index 0 has{what} shape: "
                f"{TensorShape(shapes[0])} but index {index} has{what} shape: {TensorShape(shape)}"
            )


def _read_gradient(op: g.Operation, grad: g.Tensor, method: str) -> g.Gradients:
    _, places, flow = op.inputs
    return None, None, on_gradients(op, flow, method, places, grad)


g.register_gradient(*_READS)(lambda op, grad: _read_gradient(op, grad, "Write"))
g.register_gradient(*_GATHERS)(lambda op, grad: _read_gradient(op, grad, "Scatter"))


@g.register_gradient(*_CONCATS)
def concat_gradient(op: g.Operation, grad: g.Tensor, _: Any) -> g.Gradients:
    _, flow = op.inputs
    return None, on_gradients(op, flow, "Split", grad, op.outputs[1])


def write_shape(c: InferenceContext) -> None:
    """The flow; the value must be of the shape that the elements are known to have."""
    check_inputs(c, "h0.0")
    element = element_shape_of(c)
    if element is not None:
        c.merge(element, c.input(2))
    scalar_shape(c)


def scatter_v2_shape(c: InferenceContext) -> None:
    """The flow."""
    check_handle_and_indices(c, flow=3)
    scalar_shape(c)


def scatter_shape(c: InferenceContext) -> None:
    """The flow; the rows of the value must be of the shape that elements are known to have."""
    indices = check_handle_and_indices(c, flow=3)
    value, _ = c.merge_prefix(c.input(2), indices)
    element = element_shape_of(c)
    if element is not None:
        c.merge(element, c.subshape(value, 1))
    scalar_shape(c)


_WRITES = declare(
    "TensorArrayWrite(handle: {}, index: int32, value: T, flow_in: float) -> flow_out: float",
    attrs=["T: type"],
    shape_fn=write_shape,
    shape_fn_v2=checked_scalar("h0.0"),
    doc="Writes the element `index`.",
)
_SCATTERS = declare(
    "TensorArrayScatter(handle: {}, indices: int32, value: T, flow_in: float) -> flow_out: float",
    attrs=["T: type"],
    shape_fn=scatter_shape,
    shape_fn_v2=scatter_v2_shape,
    doc="Writes the rows of `value`.",
    gone_from=(19, 26, None),
)
_SPLITS = declare(
    "TensorArraySplit(handle: {}, value: T, lengths: int64, flow_in: float) -> flow_out: float",
    attrs=["T: type"],
    shape_fn=checked_scalar("h.10"),
    doc="Writes `value` cut into lengths.",
)
_UNPACK = declare(
    "TensorArrayUnpack(handle: {}, value: T, flow_in: float) -> flow_out: float",
    attrs=["T: type"],
    shape_fn=scalar_shape,
    doc="Writes all rows of `value`.",
    gone_from=[20],
)

_OF_PART = 300
"""The bytes of a tensor that shows a part of another, and of where it ends."""


@register_kernel(*_WRITES, types={"T": ALL})
class Write(ElementKernel):
    """Writes one element."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype = self.input_types[2]

    def access(self, array: TensorArray, inputs: Sequence[Any]) -> Any:
        _, index, value, flow = inputs
        require_scalar(index, "TensorArray index must be scalar, but had shape: {}")
        array.check_dtype(self.dtype, "is trying to write")
        array.write_element(int(index), value)
        return flow


@register_kernel(*_SCATTERS, types={"T": ALL})
class Scatter(OpKernel):
    """Writes rows of a tensor as elements."""

    def compute(self, ctx: OpKernelContext) -> None:
        indices, value = ctx.input(1), ctx.input(2)
        ctx.set_output(0, ctx.input(3))
        with array_of(ctx) as array:
            _check_rows(array, ctx, value)
            require_vector(indices, "Expected indices to be a vector, but received shape: {}")
            if len(value) != indices.size:
                raise InvalidArgumentError(
                    "Expected len(indices) == values.shape[0], but saw: "
                    f"{indices.size} vs. {len(value)}"
                )
            last = int(indices.max()) if indices.size else -1
            size = array.size()
            if last >= size and not array.has_dynamic_size:
                raise InvalidArgumentError(
                    f"Max scatter index must be < array size ({last} vs. {size})"
                )
            array.write(indices.tolist(), rows_of(kept(value)))


@register_kernel(*_UNPACK, types={"T": ALL})
class Unpack(OpKernel):
    """Writes all rows of a tensor as the elements."""

    def compute(self, ctx: OpKernelContext) -> None:
        value = ctx.input(1)
        ctx.set_output(0, ctx.input(2))
        with array_of(ctx) as array:
            _check_rows(array, ctx, value)
            size = array.size()
            if array.has_dynamic_size:
                size = max(size, len(value))
            if len(value) != size:
                raise InvalidArgumentError(
                    "Input value must have first dimension equal to the array size "
                    f"({len(value)} vs. {size})"
                )
            array.mark_size(size)
            array.write(range(size), rows_of(kept(value)))


@register_kernel(*_SPLITS, types={"T": ALL})
class Split(OpKernel):
    """Writes parts of a tensor, one after the other, as the elements."""

    def compute(self, ctx: OpKernelContext) -> None:
        value, lengths = ctx.input(1), ctx.input(2)
        ctx.set_output(0, ctx.input(3))
        with array_of(ctx) as array:
            _check_lengths(value, lengths)
            count, size = lengths.size, array.size()
            if array.has_dynamic_size:
                size = max(size, count)
            if size != count:
                raise InvalidArgumentError(
                    f"TensorArray's size is not equal to the size of lengths ({size} vs. {count}), "
                    "and the TensorArray is not marked as dynamically resizeable"
                )
            array.check_dtype(ctx.input_dtype("value"), "is trying to write")
            array.mark_size(size)
            ends = np.cumsum(lengths).tolist()
            cuts = in_time(pairwise([0, *ends]))
            array.write(range(count), [value[start:end] for start, end in cuts])


def _check_rows(array: TensorArray, ctx: OpKernelContext, value: Any) -> None:
    array.check_dtype(ctx.input_dtype("value"), "is trying to write")
    require_rank_at_least(
        value, 1, "Input value for unpack must be at least a vector but received shape: []"
    )


def _check_lengths(value: Any, lengths: Any) -> None:
    """Raise InvalidArgumentError unless the lengths add up to that of the value."""
    require_vector(lengths, "Expected lengths to be a vector, received shape: {}")
    require(value.ndim, "Expected value to be at least a vector, but received shape: []")
    if lengths.size and lengths.min() < 0:
        raise InvalidArgumentError(f"Expected lengths to be >= 0, got {lengths.tolist()}")
    check_bytes(_OF_PART * lengths.size, "parts of a tensor")
    total = sum(lengths.tolist())
    if total != len(value):
        raise InvalidArgumentError(
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
            f"{total} and value's shape is: {TensorShape(value.shape)}"
        )


def _write_gradient(op: g.Operation, grad: g.Tensor, method: str) -> g.Gradients:
    _, places, value, _ = op.inputs
    flow = after_forward(op, grad)
    return None, None, on_gradients(op, flow, method, places, dtype=value.dtype), flow


g.register_gradient(*_WRITES)(lambda op, grad: _write_gradient(op, grad, "Read"))
g.register_gradient(*_SCATTERS)(lambda op, grad: _write_gradient(op, grad, "Gather"))


@g.register_gradient(*_SPLITS)
def split_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, value, _, _ = op.inputs
    flow = after_forward(op, grad)
    of_value = on_gradients(op, flow, "Concat", dtype=value.dtype).value
    return None, of_value, None, flow
