"""Ops whose outputs have sizes that depend on values. They compile where the values are known at compile time."""

from __future__ import annotations

from opkernel.errors import UnimplementedError
from opkernel.ops.array.unique import list_diff
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.op_kernel import XlaOpKernel
from opkernel.xla.register_kernel import register_xla_kernel

register_xla_kernel("ListDiff", compile_time_constants=["x", "y"], factory=True)(list_diff)


class DynamicSizeOp(XlaOpKernel):
    """Operations on constants are computed before they reach a kernel."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Refuse."""
        node = self.node_def
        raise UnimplementedError(
            f"XLA cannot compile {node.op} (node {node.name!r}): the size of its output depends on the values of its "
            "inputs, which are known only when the program runs"
        )


register_xla_kernel(["Unique", "Where"])(DynamicSizeOp)
register_xla_kernel("UniqueV2", compile_time_constants=["axis"])(DynamicSizeOp)
