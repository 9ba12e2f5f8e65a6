"""Constants of graphs that TensorFlow rewrites: HostConst, FakeParam.

Source: TensorFlow core/ops/array_ops.cc, functional_ops.cc, core/kernels/constant_op.cc, functional_ops.cc.
"""

from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import explicit_shape, unknown_shape
from opkernel.ops.array.constant import ConstantOp
from opkernel.ops.array.zeros import zeros
from opkernel.ops.registration import register_kernel

HOST_CONST = register_op(
    "HostConst",
    outputs=["output: dtype"],
    attrs=["value: tensor", "dtype: type"],
    shape_fn=unknown_shape,
    doc="The tensor `value`, in host memory.",
)

register_kernel(HOST_CONST, device="CPU")(ConstantOp)
register_kernel(HOST_CONST, device="DEFAULT", host_memory=["output"])(ConstantOp)

FAKE_PARAM = register_op(
    "FakeParam",
    outputs=["output: dtype"],
    attrs=["dtype: type", "shape: shape"],
    shape_fn=explicit_shape,
    doc="A tensor that nobody looks at, of a shape; unknown dimensions are 0.",
)


@register_kernel(FAKE_PARAM, device="CPU")
@register_kernel(FAKE_PARAM, device="DEFAULT")
class FakeParam(OpKernel):
    """Gives every step the same zeros."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        shape, dtype = construction.get_attr("shape"), self.output_types[0]
        sizes = [] if shape.rank is None else [size or 0 for size in shape.as_list()]
        self._value = zeros(check_allocation(sizes, dtype), dtype)
        self._value.flags.writeable = False

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the zeros as the output."""
        ctx.set_output(0, self._value)
