"""Reading of tensor arrays, their size, and their end.

Gradients of reads: writes of gradients, which add up.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/tensor_array_ops.cc.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import InferenceContext, unknown_shape
from opkernel.opdef.common_shapes.rules import (
    check_inputs,
    checked_no_outputs,
    checked_scalar,
    checked_unknown,
)
from opkernel.ops.array.concat import concatenated, stacked
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require_scalar, require_vector
from opkernel.ops.kernel_types import ALL, POD_OR_STRING, QUANTIZED
from opkernel.ops.registration import register_kernel
from opkernel.ops.step_resources import InexpensiveKernel
from opkernel.ops.tensor_array.gradients.gradient_array import GradientArray, gradient_of
from opkernel.ops.tensor_array.tensor_array import TensorArray
from opkernel.ops.tensor_array.versions import (
    ElementKernel,
    array_of,
    check_handle_and_indices,
    declare,
    element_shape_of,
)
from opkernel.types import DataType, PartialTensorShape, TensorShape

_ANY_ELEMENT = "element_shape: shape = { unknown_rank: true }"
_ANY_ROW = "element_shape_except0: shape = { unknown_rank: true }"


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


_VALUE = ["value: dtype"]
_GATHERED = ["dtype: type", _ANY_ELEMENT]
_FLOW = ["flow_in: float"]

_READS = [
    declare(
        "Read",
        version,
        inputs=["index: int32", *_FLOW],
        outputs=_VALUE,
        attrs=["dtype: type"],
        shape_fn=shape_fn,
        doc="The element `index`.",
        gone_from=gone,
    )
    for version, shape_fn, gone in (
        ("", read_shape, 16),
        ("V2", checked_unknown("h00"), 26),
        ("V3", read_shape, None),
    )
]
_GATHERS = [
    declare(
        "Gather",
        version,
        inputs=["indices: int32", *_FLOW],
        outputs=_VALUE,
        attrs=_GATHERED,
        shape_fn=shape_fn,
        doc="The elements at `indices` as the rows of one tensor.",
        gone_from=gone,
    )
    for version, shape_fn, gone in (
        ("", gather_shape, 16),
        ("V2", gather_v2_shape, 26),
        ("V3", gather_shape, None),
    )
]
_PACK = declare(
    "Pack",
    "",
    inputs=_FLOW,
    outputs=_VALUE,
    attrs=_GATHERED,
    shape_fn=unknown_shape,
    doc="All elements as the rows of one tensor.",
    gone_from=16,
)
_CONCATS = [
    declare(
        "Concat",
        version,
        inputs=_FLOW,
        outputs=[*_VALUE, "lengths: int64"],
        attrs=["dtype: type", _ANY_ROW],
        shape_fn=concat_shape,
        doc="All elements one after the other, and the length of each.",
        gone_from=gone,
    )
    for version, gone in (("", 16), ("V2", None), ("V3", None))
]
_SIZES = [
    declare(
        "Size",
        version,
        inputs=_FLOW,
        outputs=["size: int32"],
        attrs=[],
        shape_fn=checked_scalar("h"),
        doc="The number of elements.",
        gone_from=gone,
    )
    for version, gone in (("", 16), ("V2", 26), ("V3", None))
]
_CLOSES = [
    declare(
        "Close",
        version,
        inputs=[],
        outputs=[],
        attrs=[],
        shape_fn=checked_no_outputs("h"),
        doc="Gives up the elements before the step ends.",
        gone_from=gone,
    )
    for version, gone in (("", 16), ("V2", 26), ("V3", None))
]


class Read(ElementKernel):
    """Reads one element."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")

    def access(self, array: TensorArray, inputs: Sequence[Any]) -> Any:
        index = inputs[1]
        require_scalar(index, "TensorArray index must be scalar, but had shape: {}")
        _check_dtype(array, self.dtype)
        return array.read_element(int(index))


class Gather(OpKernel):
    """Reads elements of one shape into one tensor: those at the indices, or all."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")
        self.element_shape: PartialTensorShape = construction.get_attr("element_shape")

    def compute(self, ctx: OpKernelContext) -> None:
        with array_of(ctx) as array:
            _check_dtype(array, self.dtype)
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


class Concat(OpKernel):
    """Reads all elements, one after the other, into one tensor."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")
        self.row_shape: PartialTensorShape = construction.get_attr("element_shape_except0")

    def compute(self, ctx: OpKernelContext) -> None:
        with array_of(ctx) as array:
            _check_dtype(array, self.dtype)
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


class Size(InexpensiveKernel):
    """Tells how many elements there are."""

    def compute(self, ctx: OpKernelContext) -> None:
        with array_of(ctx) as array:
            ctx.set_output(0, np.int32(array.size()))


class Close(InexpensiveKernel):
    """Closes the array."""

    def compute(self, ctx: OpKernelContext) -> None:
        with array_of(ctx) as array:
            array.close()


_GATHERED_TYPES = (*POD_OR_STRING, *QUANTIZED, DataType.DT_VARIANT)

for _op in _READS:
    register_kernel(_op, types={"dtype": ALL})(Read)
for _op in (*_GATHERS, _PACK):
    register_kernel(_op, types={"dtype": _GATHERED_TYPES})(Gather)
for _op in _CONCATS:
    register_kernel(
        _op, types={"dtype": (*POD_OR_STRING, *QUANTIZED)}, host_memory=["lengths", "handle"]
    )(Concat)
for _op in _SIZES:
    register_kernel(_op)(Size)
for _op in _CLOSES:
    register_kernel(_op)(Close)


def _check_dtype(array: TensorArray, dtype: DataType) -> None:
    if dtype != array.dtype:
        raise InvalidArgumentError(
            f"TensorArray dtype is {array.dtype.string} but Op requested dtype {dtype.string}."
        )


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


@gradient_of("Read")
def read_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, index, flow = op.inputs
    return None, None, GradientArray.of(op, flow).apply("Write", index, grad)


@gradient_of("Gather")
def gather_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, indices, flow = op.inputs
    return None, None, GradientArray.of(op, flow).apply("Scatter", indices, grad)


@gradient_of("Concat")
def concat_gradient(op: g.Operation, grad: g.Tensor, _: Any) -> g.Gradients:
    _, flow = op.inputs
    return None, GradientArray.of(op, flow).apply("Split", grad, op.outputs[1])
