"""Assignments to slices of variables: `v[begin:end:strides] = value`.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/strided_slice_op.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import no_outputs, register_op, unchanged_shape
from opkernel.ops.array.strided_slice import MASK_ATTRS, SLICE_TYPES, slice_assigner
from opkernel.ops.registration import register_kernel
from opkernel.ops.variables.var import initialized_ref, variable_of, writing

_DOC = "Writes `value`, broadcast, to where StridedSlice would take its result from."
_SPEC = ["begin: Index", "end: Index", "strides: Index", "value: T"]
_ATTRS = ["T: type", "Index: {int32, int64}", *MASK_ATTRS]

register_op(
    "ResourceStridedSliceAssign",
    inputs=["ref: resource", *_SPEC],
    attrs=_ATTRS,
    shape_fn=no_outputs,
    is_stateful=True,
    doc=_DOC,
)
register_op(
    "StridedSliceAssign",
    inputs=["ref: Ref(T)", *_SPEC],
    outputs=["output_ref: Ref(T)"],
    attrs=_ATTRS,
    shape_fn=unchanged_shape,
    doc=_DOC,
)


@register_kernel(
    "ResourceStridedSliceAssign",
    types={"T": SLICE_TYPES},
    host_memory=["ref", "begin", "end", "strides"],
)
class ResourceStridedSliceAssign(OpKernel):
    """Writes to the variable that a handle names."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.assign = slice_assigner(construction.get_attr("T"), construction)

    def compute(self, ctx: OpKernelContext) -> None:
        _, begin, end, strides, value = ctx.inputs
        with variable_of(ctx) as variable:
            if variable.dtype != self.input_types[4]:
                raise InvalidArgumentError(
                    f"l-value dtype {variable.dtype.string} does not match r-value dtype "
                    f"{self.input_types[4].string}"
                )
            with writing(variable.tensor_ref) as tensor:
                self.assign(tensor, begin, end, strides, value)


@register_kernel(
    "StridedSliceAssign", types={"T": SLICE_TYPES}, host_memory=["begin", "end", "strides"]
)
class StridedSliceAssign(OpKernel):
    """Writes to the variable that a reference refers to."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.assign = slice_assigner(construction.get_attr("T"), construction)

    def compute(self, ctx: OpKernelContext) -> None:
        _, begin, end, strides, value = ctx.inputs
        ref = initialized_ref(ctx)
        ctx.set_output_ref(0, ref)
        with writing(ref) as tensor:
            self.assign(tensor, begin, end, strides, value)
