"""Variables on the devices that JAX has: handles are on the host, values stay on the device.

No array of JAX ever changes, so a variable hands out its array, and takes over the one that it is given.

Source: TensorFlow core/kernels/resource_variable_ops.cc.
"""

from __future__ import annotations

from opkernel.kernel import OpKernel, OpKernelContext, handle_from_input, lookup_or_create_resource
from opkernel.ops.variables import handles, read_and_assign
from opkernel.ops.variables.var import Var

__all__ = ["VARIABLE_KERNELS"]


class AssignVariableOp(read_and_assign.AssignVariableOp):
    """Takes the array over."""

    forwards_inputs = False

    def compute(self, ctx: OpKernelContext) -> None:
        value, handle = ctx.input(1), handle_from_input(ctx.input(0))
        with lookup_or_create_resource(
            ctx, handle, Var, lambda: Var(self.dtype, value)
        ) as variable:
            variable.assign(value, self.dtype, validate_shape=self.validate_shape)


VARIABLE_KERNELS: dict[str, tuple[type[OpKernel], list[str]]] = {
    "AssignVariableOp": (AssignVariableOp, ["resource"]),
    "DestroyResourceOp": (handles.DestroyResourceOp, ["resource"]),
    "DisableCopyOnRead": (handles.DisableCopyOnRead, ["resource"]),
    "ReadVariableOp": (read_and_assign.ReadVariableOp, ["resource"]),
    "VarHandleOp": (handles.VarHandleOp, ["resource"]),
    "VarIsInitializedOp": (handles.VarIsInitializedOp, ["resource", "is_initialized"]),
    "VariableShape": (handles.VariableShape, ["input", "output"]),
    "_ReadVariablesOp": (read_and_assign.ReadVariablesOp, ["resources"]),
    "_VarHandlesOp": (handles.VarHandlesOp, ["resources"]),
}
"""The kernels by op, with their arguments in host memory; those of the CPU where they only look at arrays."""
