"""TensorArrays: resources that hold buffers with room for all elements (`XlaTensorList`).

The number of elements must be known to the compiler, and their shape when the first one is read. An element that was
not written is zeros; one may be read and written more than once.

Source: TensorFlow compiler/tf2xla/kernels/tensor_array_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernelConstruction
from opkernel.types import DataType, PartialTensorShape
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.kernels.scatter import CHANGES
from opkernel.xla.kernels.tensor_lists import ListResourceOp
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource
from opkernel.xla.tensor_list import XlaTensorList

_NO_FLOW = np.zeros((), np.float32)


def _known(shape: PartialTensorShape) -> tuple[int, ...] | None:
    return tuple(shape.as_tensor_shape()) if shape.is_fully_defined() else None


@register_xla_kernel("TensorArrayV3", compile_time_constants=["size"], resources=True)
class TensorArrayOp(ListResourceOp):
    """A new TensorArray."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")
        self.shape = _known(construction.get_attr("element_shape"))
        if construction.get_attr("dynamic_size"):
            raise UnimplementedError("XLA does not compile a TensorArray of dynamic size")

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the handle, and a flow."""
        size = ctx.constant_input_as_int("size")
        if size < 0:
            raise InvalidArgumentError(f"The size of a TensorArray must be >= 0, not {size}")
        elements = XlaTensorList.zeros(size, self.shape, self.dtype, size)
        ctx.set_output(0, XlaResource(self.name, self.dtype, elements))
        ctx.set_output(1, _NO_FLOW)


@register_xla_kernel("TensorArrayGradV3", resources=True)
class TensorArrayGradOp(ListResourceOp):
    """The TensorArray for the gradients of the elements; one for each source."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the handle, and a flow."""
        array, _ = self.elements(ctx)
        ctx.set_output(0, array.gradient(self.node_def.attr["source"].s.decode()))
        ctx.set_output(1, _NO_FLOW)


@register_xla_kernel("TensorArraySizeV3", resources=True)
class TensorArraySizeOp(ListResourceOp):
    """The number of elements, which the compiler knows."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give a constant."""
        ctx.set_output(0, np.asarray(self.elements(ctx)[1].max_size, np.int32))


@register_xla_kernel("TensorArrayCloseV3", resources=True)
class TensorArrayCloseOp(ListResourceOp):
    """The end of an array; the program frees it without being told."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Add nothing to the program."""


@register_xla_kernel("TensorArrayReadV3", resources=True)
class TensorArrayReadOp(ListResourceOp):
    """One element."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set it."""
        _, elements = self.elements(ctx, self.output_types[0])
        ctx.set_output(0, elements.item(ctx.input("index")))


@register_xla_kernel("TensorArrayGatherV3", resources=True)
class TensorArrayGatherOp(ListResourceOp):
    """Some elements, one behind the other."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.shape = _known(construction.get_attr("element_shape"))

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set them."""
        _, elements = self.elements(ctx, self.output_types[0])
        prepared = elements if self.shape is None else elements.like(self.shape)
        ctx.set_output(0, prepared.items(ctx.input("indices")))


@register_xla_kernel("TensorArrayConcatV3", resources=True)
class TensorArrayConcatOp(ListResourceOp):
    """All elements joined along their first dimension, and how long each is."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set both; the lengths are known to the compiler."""
        _, elements = self.elements(ctx, self.output_types[0])
        if not elements.element_shape:
            raise InvalidArgumentError("Elements without a dimension cannot be joined along one")
        length, *rest = elements.element_shape
        ctx.set_output(0, elements.buffer.reshape((elements.max_size * length, *rest)))
        ctx.set_output(1, np.full(elements.max_size, length, np.int64))


@register_xla_kernel("TensorArrayWriteV3", resources=True)
class TensorArrayWriteOp(ListResourceOp):
    """One element is written; gradients add up."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give the array its elements after the write."""
        array, elements = self.elements(ctx, self.input_types[2])
        index, value = ctx.input("index"), ctx.input("value")
        prepared = elements.prepared_for(value.shape)
        if array.is_gradient:
            value = prepared.item(index) + value
        array.assign(self.input_types[2], prepared.with_item(index, value))
        ctx.set_output(0, ctx.input("flow_in"))


class _WriteRowsOp(ListResourceOp):
    """Rows of a tensor are written as elements; gradients add up."""

    def write(self, ctx: XlaOpKernelContext, indices: Any, rows: Any) -> None:
        """Give the array its elements after the writes."""
        dtype = ctx.input_type("value")
        array, elements = self.elements(ctx, dtype)
        prepared = elements.prepared_for(rows.shape[1:])
        change = CHANGES["Add" if array.is_gradient else "Update"]
        array.assign(dtype, prepared.with_buffer(change(prepared.buffer, indices[..., None], rows)))
        ctx.set_output(0, ctx.input("flow_in"))


@register_xla_kernel("TensorArrayScatterV3", resources=True)
class TensorArrayScatterOp(_WriteRowsOp):
    """At given indices."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Write a row at each index."""
        indices, rows = ctx.input("indices"), ctx.input("value")
        if not rows.ndim or indices.shape != rows.shape[:1]:
            raise InvalidArgumentError(
                f"value must have a row for each of the indices {list(indices.shape)}, its shape is "
                f"{list(rows.shape)}"
            )
        self.write(ctx, indices, rows)


@register_xla_kernel("TensorArraySplitV3", compile_time_constants=["lengths"], resources=True)
class TensorArraySplitOp(_WriteRowsOp):
    """Pieces of a tensor, all of one length."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Write a piece as each element."""
        lengths, value = ctx.constant_input("lengths"), ctx.input("value")
        size = self.elements(ctx)[1].max_size
        if lengths.shape != (size,):
            raise InvalidArgumentError(
                f"lengths must have one for each of {size} elements, its shape is {list(lengths.shape)}"
            )
        if not value.ndim or lengths.sum() != len(value):
            raise InvalidArgumentError(
                f"Pieces of the lengths {lengths.tolist()} do not make up {list(value.shape)}"
            )
        if len(set(lengths.tolist())) > 1:
            raise UnimplementedError(
                f"XLA needs pieces of one length for a TensorArray, they are {lengths.tolist()}"
            )
        length = int(lengths[0]) if size else 0
        self.write(ctx, np.arange(size), value.reshape((size, length, *value.shape[1:])))
