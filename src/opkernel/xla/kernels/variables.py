"""Variables: what they hold is a value of the program, and an assignment gives them another one.

Source: TensorFlow compiler/tf2xla/kernels/variable_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.op_kernel import XlaOpKernel
from opkernel.xla.register_kernel import register_xla_kernel


@register_xla_kernel("ReadVariableOp", resources=True)
class ReadVariableOp(XlaOpKernel):
    """The value."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give the value that the variable has at this place of the program."""
        ctx.set_output(0, ctx.resource(0).read(self.output_types[0]))


@register_xla_kernel("AssignVariableOp", resources=True)
class AssignVariableOp(XlaOpKernel):
    """Another value."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the value for what follows."""
        ctx.resource(0).assign(ctx.input_type(1), ctx.input(1))


def _assign(ctx: XlaOpKernelContext, value: Any) -> None:
    ctx.resource(0).assign(ctx.input_type(1), value)


@register_xla_kernel("AssignAddVariableOp", resources=True)
class AssignAddVariableOp(XlaOpKernel):
    """The value and more."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Add to the value."""
        _assign(ctx, ctx.resource(0).read() + ctx.input(1))


@register_xla_kernel("AssignSubVariableOp", resources=True)
class AssignSubVariableOp(XlaOpKernel):
    """The value and less."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Subtract from the value."""
        _assign(ctx, ctx.resource(0).read() - ctx.input(1))


@register_xla_kernel("VarIsInitializedOp", resources=True)
class VarIsInitializedOp(XlaOpKernel):
    """Whether there is a value, which the compiler knows."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give a constant."""
        ctx.set_output(0, np.asarray(ctx.resource(0).is_initialized))


@register_xla_kernel("VariableShape", resources=True, metadata=True)
class VariableShapeOp(XlaOpKernel):
    """The shape of the value, which the compiler knows."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give a constant."""
        dtype = self.output_types[0].numpy_dtype
        ctx.set_output(0, np.asarray(ctx.resource(0).read().shape, dtype))
