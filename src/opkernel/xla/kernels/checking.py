"""Ops that check values, which compiled code does not: Assert, CheckNumerics, and ToBool."""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.kernel.function_kernel import forward_input
from opkernel.ops.checks import check_has_truth
from opkernel.types import DataType
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.op_kernel import XlaOpKernel
from opkernel.xla.register_kernel import register_xla_kernel

__all__ = ["truth"]

register_xla_kernel(["CheckNumerics", "CheckNumericsV2"])(forward_input)


@register_xla_kernel("Assert", strings=True)
class AssertOp(XlaOpKernel):
    """Nothing is asserted, as in TensorFlow."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Add nothing to the program."""


def truth(tensor: Any) -> Any:
    """Whether a tensor counts as true: a scalar that is not zero, or another tensor with elements."""
    return np.asarray(tensor.size > 0) if tensor.ndim else tensor != 0


@register_xla_kernel("ToBool")
def to_bool(tensor: Any, *, T: DataType) -> Any:
    if not tensor.ndim:
        check_has_truth(T)
    return truth(tensor)
