"""Steps of optimisers: those of the CPU's kernels, on variables of the program.

Source: TensorFlow compiler/tf2xla/kernels/training_ops.cc.
"""

from __future__ import annotations

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction
from opkernel.ops.training.optimizers import OPTIMIZERS
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.op_kernel import XlaOpKernel
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.traced_array import TracedArray

_OPS = [f"ResourceApply{name}" for name in OPTIMIZERS]


@register_xla_kernel(_OPS, resources=True)
class ResourceApplyOp(XlaOpKernel):
    """A step on a variable and its slots, with a gradient of their shape."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        optimizer = OPTIMIZERS[self.node_def.op.removeprefix("ResourceApply")]
        self.step, self.count = optimizer.step, len(optimizer.variables.split())
        names = [spec.partition(":")[0] for spec in optimizer.attrs]
        self.attrs = {name: construction.get_attr(name) for name in names}
        self.names = optimizer.inputs(sparse=False)

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give the variables their values after the step."""
        variables = [ctx.resource(place) for place in range(self.count)]
        arrays = [TracedArray(one.read()) for one in variables]
        arrays += [TracedArray(ctx.input(place)) for place in range(self.count, ctx.num_inputs)]
        self._check_shapes(arrays)
        self.step(*arrays, **self.attrs)
        for variable, array in zip(variables, arrays, strict=False):
            assert variable.dtype is not None
            variable.assign(variable.dtype, array.value)

    def _check_shapes(self, arrays: list[TracedArray]) -> None:
        shape = arrays[0].shape
        for place, (name, array) in enumerate(zip(self.names, arrays, strict=True)):
            is_gradient = name in ("grad", "delta")
            if (place < self.count or is_gradient) and array.shape != shape:
                raise InvalidArgumentError(
                    f"var and {name} do not have the same shape: {list(shape)} and {list(array.shape)}"
                )
            if place >= self.count and not is_gradient and array.shape:
                raise InvalidArgumentError(f"{name} is not a scalar: {list(array.shape)}")
