"""Writing to tensor arrays: one element, some, or all.

Gradients of writes: reads of gradients.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/tensor_array_ops.cc.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, scalar_shape
from opkernel.opdef.common_shapes.rules import check_inputs, checked_scalar
from opkernel.ops.input_checks import require_rank_at_least, require_scalar, require_vector
from opkernel.ops.kernel_types import ALL
from opkernel.ops.registration import register_kernel
from opkernel.ops.step_resources import kept
from opkernel.ops.tensor_array.gradients.gradient_array import (
    GradientArray,
    after_forward,
    gradient_of,
)
from opkernel.ops.tensor_array.tensor_array import TensorArray
from opkernel.ops.tensor_array.versions import (
    ElementKernel,
    array_of,
    check_handle_and_indices,
    declare,
    element_shape_of,
)
from opkernel.ops.tensor_list.rows import rows_of
from opkernel.types import DataType, TensorShape


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


_split_shape = checked_scalar("h.10")
_WRITE = ["index: int32", "value: T", "flow_in: float"]
_SCATTER = ["indices: int32", "value: T", "flow_in: float"]
_SPLIT = ["value: T", "lengths: int64", "flow_in: float"]


def _declare(
    method: str,
    version: str,
    inputs: list[str],
    shape_fn: OpShapeInferenceFn,
    doc: str,
    gone_from: int | None = None,
) -> str:
    return declare(
        method,
        version,
        inputs=inputs,
        outputs=["flow_out: float"],
        attrs=["T: type"],
        shape_fn=shape_fn,
        doc=doc,
        gone_from=gone_from,
    )


_WRITES = [
    _declare("Write", version, _WRITE, shape_fn, "Writes the element `index`.", gone)
    for version, shape_fn, gone in (
        ("", write_shape, 16),
        ("V2", checked_scalar("h0.0"), 26),
        ("V3", write_shape, None),
    )
]
_SCATTERS = [
    _declare("Scatter", version, _SCATTER, shape_fn, "Writes the rows of `value`.", gone)
    for version, shape_fn, gone in (
        ("", scatter_shape, 19),
        ("V2", scatter_v2_shape, 26),
        ("V3", scatter_shape, None),
    )
]
_SPLITS = [
    _declare("Split", version, _SPLIT, _split_shape, "Writes `value` cut into lengths.", gone)
    for version, gone in (("", 16), ("V2", 26), ("V3", None))
]
_UNPACK = _declare(
    "Unpack", "", ["value: T", "flow_in: float"], scalar_shape, "Writes all rows of `value`.", 20
)


_OF_PART = 300
"""The bytes of a tensor that shows a part of another, and of where it ends."""


class Write(ElementKernel):
    """Writes one element."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype = self.input_types[2]

    def access(self, array: TensorArray, inputs: Sequence[Any]) -> Any:
        _, index, value, flow = inputs
        require_scalar(index, "TensorArray index must be scalar, but had shape: {}")
        _check_dtype(array, self.dtype)
        array.write_element(int(index), value)
        return flow


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
            _check_dtype(array, ctx.input_dtype("value"))
            array.mark_size(size)
            ends = np.cumsum(lengths).tolist()
            cuts = in_time(pairwise([0, *ends]))
            array.write(range(count), [value[start:end] for start, end in cuts])


for _ops, _kernel in (
    (_WRITES, Write),
    (_SCATTERS, Scatter),
    (_SPLITS, Split),
    ([_UNPACK], Unpack),
):
    for _op in _ops:
        register_kernel(_op, types={"T": ALL})(_kernel)


def _check_dtype(array: TensorArray, dtype: DataType) -> None:
    if dtype != array.dtype:
        raise InvalidArgumentError(
            f"TensorArray dtype is {array.dtype.string} but Op is trying to write dtype "
            f"{dtype.string}."
        )


def _check_rows(array: TensorArray, ctx: OpKernelContext, value: Any) -> None:
    _check_dtype(array, ctx.input_dtype("value"))
    require_rank_at_least(
        value, 1, "Input value for unpack must be at least a vector but received shape: []"
    )


def _check_lengths(value: Any, lengths: Any) -> None:
    """Raise InvalidArgumentError unless the lengths add up to that of the value."""
    require_vector(lengths, "Expected lengths to be a vector, received shape: {}")
    if value.ndim == 0:
        raise InvalidArgumentError("Expected value to be at least a vector, but received shape: []")
    if lengths.size and lengths.min() < 0:
        raise InvalidArgumentError(f"Expected lengths to be >= 0, got {lengths.tolist()}")
    check_bytes(_OF_PART * lengths.size, "parts of a tensor")
    total = sum(lengths.tolist())
    if total != len(value):
        raise InvalidArgumentError(
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
            f"{total} and value's shape is: {TensorShape(value.shape)}"
        )


@gradient_of("Write")
def write_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, index, value, _ = op.inputs
    flow = after_forward(op, grad)
    of_value = GradientArray.of(op, flow).apply("Read", index, dtype=value.dtype)
    return None, None, of_value, flow


@gradient_of("Scatter")
def scatter_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, indices, value, _ = op.inputs
    flow = after_forward(op, grad)
    of_value = GradientArray.of(op, flow).apply("Gather", indices, dtype=value.dtype)
    return None, None, of_value, flow


@gradient_of("Split")
def split_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, value, _, _ = op.inputs
    flow = after_forward(op, grad)
    of_value = GradientArray.of(op, flow).apply("Concat", dtype=value.dtype).value
    return None, of_value, None, flow
