"""Stacks: resources that hold buffers with room for as many elements as there may be at a time (`XlaTensorList`).

Source: TensorFlow compiler/tf2xla/kernels/stack_ops.cc.
"""

from __future__ import annotations

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction
from opkernel.types import DataType
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.kernels.tensor_lists import ListResourceOp
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource
from opkernel.xla.tensor_list import XlaTensorList


@register_xla_kernel("StackV2", compile_time_constants=["max_size"], resources=True)
class StackOp(ListResourceOp):
    """A new stack."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("elem_type")

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the handle."""
        size = ctx.constant_input_as_int("max_size")
        if size < 0:
            raise InvalidArgumentError(
                "XLA needs a bound of the size of a stack; of a while loop, maximum_iterations says it"
            )
        elements = XlaTensorList.zeros(size, None, self.dtype, 0)
        ctx.set_output(0, XlaResource(self.name, self.dtype, elements))


@register_xla_kernel("StackPushV2", resources=True)
class StackPushOp(ListResourceOp):
    """One more element. In a loop, what is pushed onto a full stack takes the place of the last one."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give the stack its elements; the output is the element."""
        dtype, element = self.input_types[1], ctx.input(1)
        stack, elements = self.elements(ctx, dtype)
        stack.assign(dtype, elements.pushed(element))
        ctx.set_output(0, element)


@register_xla_kernel("StackPopV2", resources=True)
class StackPopOp(ListResourceOp):
    """The last element, which is taken away. In a loop, an empty stack gives its first one, whatever that is."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set it."""
        dtype = self.output_types[0]
        stack, elements = self.elements(ctx, dtype)
        rest, last = elements.popped()
        stack.assign(dtype, rest)
        ctx.set_output(0, last)


@register_xla_kernel("StackCloseV2", resources=True)
class StackCloseOp(ListResourceOp):
    """The end of a stack; the program frees it without being told."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Add nothing to the program."""
