"""Blocks of tensors. Where a block starts may be known only when the program runs; its size must be known."""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction, check_allocation
from opkernel.ops.array.pad_and_slice import slice_of
from opkernel.ops.array.strided_slice import (
    SparseSpec,
    check_vectors,
    entries_of_single_indices,
    masks_of,
    strided_slice,
)
from opkernel.types import TensorShape
from opkernel.xla.context import XlaOpKernel, XlaOpKernelContext
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel

__all__ = ["StridedSliceKernel"]


@register_xla_kernel("Slice", compile_time_constants=["begin", "size"])
class SliceOp(XlaOpKernel):
    """A start that is out of bounds is moved inside."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the block."""
        tensor, size = ctx.input(0), ctx.constant_input(2)
        if ctx.is_constant(1):
            ctx.set_output(0, slice_of(tensor, ctx.constant_input(1), size))
            return
        slice_of(tensor, np.zeros(ctx.input_shape(1), np.int64), size)  # is the block small enough?
        if (size < 0).any():
            ctx.constant_input(1)  # what is left depends on it
        begin = ctx.input(1)
        starts = [begin[axis] for axis in range(tensor.ndim)]
        ctx.set_output(0, lax().dynamic_slice(tensor, starts, size.tolist()))


class StridedSliceKernel(XlaOpKernel):
    """A kernel with the inputs begin, end and strides, and the masks of StridedSlice."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._masks = masks_of(construction)

    def index(
        self, ctx: XlaOpKernelContext, shape: tuple[int, ...]
    ) -> tuple[tuple[Any, ...], list[int]]:
        """The index that takes the slice from an array of a shape, and the shape of the slice.

        Raises:
            InvalidArgumentError: the inputs do not fit, or the shape of the slice is not known.
        """
        check_vectors(*(ctx.input_shape(name) for name in ("begin", "end", "strides")))
        strides = ctx.constant_input("strides").tolist()
        if ctx.is_constant("begin") and ctx.is_constant("end"):
            begin, end = (ctx.constant_input(name).tolist() for name in ("begin", "end"))
            return strided_slice(SparseSpec(begin, end, strides, self._masks), shape)
        index, final_shape = strided_slice(SparseSpec(None, None, strides, self._masks), shape)
        if -1 in final_shape:
            ctx.constant_input("begin")
            ctx.constant_input("end")
        starts = ctx.input("begin")
        entries = entries_of_single_indices(strides, self._masks, len(shape))
        singles = [
            part if entry is None else starts[entry]
            for part, entry in zip(index, entries, strict=False)
        ]
        return (*singles, ...), final_shape


@register_xla_kernel("StridedSlice", compile_time_constants=["begin", "end", "strides"])
class StridedSliceOp(StridedSliceKernel):
    """An index that is out of bounds, and known only when the program runs, is moved inside."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the slice."""
        tensor = ctx.input("input")
        index, _ = self.index(ctx, tensor.shape)
        is_known = ctx.is_constant("begin") and ctx.is_constant("end")
        ctx.set_output(0, tensor[index] if is_known else tensor.at[index].get(mode="clip"))


@register_xla_kernel(
    "StridedSliceGrad", compile_time_constants=["shape", "begin", "end", "strides"]
)
class StridedSliceGradOp(StridedSliceKernel):
    """An index that is out of bounds, and known only when the program runs, is moved inside."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set zeros with the gradient at the slice."""
        if len(ctx.input_shape("shape")) != 1:
            raise InvalidArgumentError(
                f"shape must be 1-D, got shape.shape = {TensorShape(ctx.input_shape('shape'))}"
            )
        sizes = check_allocation(ctx.constant_input_as_shape("shape"), ctx.input_type("dy"))
        dy = ctx.input("dy")
        index, expected = self.index(ctx, sizes)
        if list(dy.shape) != expected:
            raise InvalidArgumentError(
                f"shape of dy was {TensorShape(dy.shape)} instead of {TensorShape(expected)}"
            )
        zeros = jnp().zeros(sizes, dy.dtype)
        ctx.set_output(0, zeros.at[index].set(dy, mode="clip"))


@register_xla_kernel("TensorStridedSliceUpdate", compile_time_constants=["begin", "end", "strides"])
class TensorStridedSliceUpdateOp(StridedSliceKernel):
    """An index that is out of bounds, and known only when the program runs, is moved inside."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the tensor with the value at the slice."""
        ctx.set_output(0, self.updated(ctx, ctx.input("input"), ctx.input("value")))

    def updated(self, ctx: XlaOpKernelContext, tensor: Any, value: Any) -> Any:
        """A tensor with a value, broadcast, at the slice."""
        index, expected = self.index(ctx, tensor.shape)
        if 0 in expected:
            return tensor
        try:
            return tensor.at[index].set(jnp().broadcast_to(value, expected), mode="clip")
        except ValueError:
            raise InvalidArgumentError(
                f"Cannot broadcast input shape {TensorShape(value.shape)} into final shape "
                f"{TensorShape(expected)}"
            ) from None
