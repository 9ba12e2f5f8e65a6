"""NcclAllReduce, of which TensorFlow has a kernel for GPUs alone.

Source: TensorFlow core/ops/nccl_ops.cc, core/kernels/nccl_ops.cc.
"""

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import CollectiveType, OpKernelConstruction, OpKernelContext
from opkernel.opdef import register_op, unchanged_shape
from opkernel.ops.collective.kernel import MERGE_OPS, CollectiveKernel, Instance
from opkernel.ops.registration import register_kernel

NCCL_ALL_REDUCE = register_op(
    "NcclAllReduce",
    inputs=["input: T"],
    outputs=["data: T"],
    attrs=[
        "reduction: {'min', 'max', 'prod', 'sum'}",
        "T: {half, float, double, int32, int64}",
        "num_devices: int",
        "shared_name: string",
    ],
    shape_fn=unchanged_shape,
    traits="any_order",
    is_stateful=True,
    doc="The inputs of all `num_devices` nodes of one `shared_name`, reduced to one.",
)

_REDUCTIONS = {
    "max": MERGE_OPS["Max"],
    "min": MERGE_OPS["Min"],
    "prod": MERGE_OPS["Mul"],
    "sum": MERGE_OPS["Add"],
}


@register_kernel(NCCL_ALL_REDUCE, device="CPU")
class NcclAllReduce(CollectiveKernel):
    """The inputs of all members merged into one."""

    collective_type = CollectiveType.REDUCTION_COLLECTIVE

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.merge_op = _REDUCTIONS[construction.get_attr("reduction")]
        num_devices = construction.get_attr("num_devices")
        if num_devices <= 0:
            raise InvalidArgumentError(f"num_devices must be positive but is {num_devices}")
        shared_name = construction.get_attr("shared_name")
        self._instance = Instance(num_devices, f"NcclAllReduce {shared_name}", shared_name)

    def instance(self, ctx: OpKernelContext) -> Instance:
        return self._instance


@g.register_gradient("NcclAllReduce")
def nccl_all_reduce_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The gradients of all members, added up: each member's gradient needs those of all others."""
    if op.get_attr("reduction") != b"sum":
        raise UnimplementedError("NcclAllReduce has a gradient only where it is a sum")
    return g.nodes.NcclAllReduce(
        grad,
        shared_name=op.get_attr("shared_name") + b"_grad",
        **g.attrs_of(op, "reduction", "num_devices"),
    )
