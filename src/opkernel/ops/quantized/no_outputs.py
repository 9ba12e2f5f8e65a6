"""The kernel of ops that TensorFlow computes by oneDNN alone.

Source: TensorFlow core/kernels/no_op.h.
"""

from opkernel.kernel import OpKernel, OpKernelContext

__all__ = ["NoOutputs"]


class NoOutputs(OpKernel):
    """Sets none of its outputs, as TensorFlow's kernel with oneDNN off.

    A graph that needs one of them fails with INTERNAL; an eager call gives empty tensors.
    """

    leaves_outputs = True

    def compute(self, ctx: OpKernelContext) -> None:
        """Nothing."""
