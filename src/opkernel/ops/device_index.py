"""DeviceIndex: which device a node runs on; DtypeWithDefaultOp: which type it was given.

Source: TensorFlow core/ops/functional_ops.cc, core/kernels/function_ops.cc, python/framework/test_ops.cc.
"""

from typing import Any

import numpy as np

from opkernel.device.string_tensors import string_tensor
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import register_op, scalar_shape
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

DEVICE_INDEX = register_op(
    "DeviceIndex",
    outputs=["index: int32"],
    attrs=["device_names: list(string)"],
    is_stateful=True,
    shape_fn=scalar_shape,
    doc="The place of the type of the node's device among `device_names`; their number if it is missing.",
    traits="clustering=inaccurate",
)


@register_kernel(DEVICE_INDEX)
@register_kernel(DEVICE_INDEX, device="DEFAULT", host_memory=["index"])
class DeviceIndex(OpKernel):
    """Looks for the type of its device, as `CPU`."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._names: list[str] = construction.get_attr("device_names")

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the place."""
        own = ctx.device.device_type
        index = self._names.index(own) if own in self._names else len(self._names)
        ctx.set_output(0, np.array(index, np.int32))


DTYPE_WITH_DEFAULT_OP = register_op(
    "DtypeWithDefaultOp",
    inputs=["in: T"],
    outputs=["dtype: string"],
    attrs=["T: type = DT_UINT8"],
    is_stateful=True,
    shape_fn=scalar_shape,
    doc="The name of the type of a tensor.",
)


@register_kernel(DTYPE_WITH_DEFAULT_OP, factory=True)
def dtype_with_default(*, T: DataType) -> Any:
    return lambda value: string_tensor((), [T.string.encode()])
