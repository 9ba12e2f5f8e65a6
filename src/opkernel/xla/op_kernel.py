"""XlaOpKernel: a kernel that adds a node to the program which is compiled.

Source: TensorFlow compiler/tf2xla/xla_op_kernel.h.
"""

from __future__ import annotations

from opkernel.kernel import OpKernel
from opkernel.xla.context import XlaOpKernelContext


class XlaOpKernel(OpKernel):
    """A kernel for XLA as a class, for what a function cannot say: resources, functions, structures.

    Subclasses take an OpKernelConstruction, read their attrs from it, and override `compile`.
    """

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the outputs of the node from its inputs in `ctx`."""
        raise NotImplementedError(f"{type(self).__name__} does not override compile")


class WholeProgramOp(XlaOpKernel):
    """A kernel for XLA whose state lives for one run of a program: an operation compiled by itself has none."""
