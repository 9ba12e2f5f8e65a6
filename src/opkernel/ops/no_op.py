"""Ops that compute nothing, and that others wait for; DeviceIndex, DtypeWithDefaultOp, Fact, and Abort.

Source: TensorFlow core/ops/no_op.cc, core/ops/control_flow_ops.cc, core/kernels/no_op.h,
core/ops/functional_ops.cc, core/kernels/function_ops.cc, python/framework/test_ops.cc,
core/kernels/control_flow_ops.cc (AbortOp), core/ops/array_ops.cc, core/kernels/fact_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.string_tensors import string_tensor
from opkernel.errors import AbortedError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import register_op, scalar_shape, unknown_shape
from opkernel.opdef.common_shapes import no_outputs
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

NO_OP = register_op(
    "NoOp", shape_fn=no_outputs, system=True, doc="Does nothing; others may wait for it."
)
CONTROL_TRIGGER = register_op(
    "ControlTrigger", shape_fn=no_outputs, doc="Does nothing, even where inputs are dead."
)

SYNC_DEVICE = register_op(
    "SyncDevice",
    is_stateful=True,
    shape_fn=no_outputs,
    doc="Waits for what the device was asked to do; here kernels end when their work is done.",
)


@register_kernel(NO_OP, device="DEFAULT", system=True)
@register_kernel(SYNC_DEVICE, CONTROL_TRIGGER, device="DEFAULT")
def no_op() -> None:
    """Nothing."""


DEVICE_INDEX = register_op(
    "DeviceIndex() -> index: int32",
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
    "DtypeWithDefaultOp(in: T) -> dtype: string",
    attrs=["T: type = DT_UINT8"],
    is_stateful=True,
    shape_fn=scalar_shape,
    doc="The name of the type of a tensor.",
)


@register_kernel(DTYPE_WITH_DEFAULT_OP, factory=True)
def dtype_with_default(*, T: DataType) -> Any:
    return lambda value: string_tensor((), [T.string.encode()])


FACT = register_op("Fact() -> fact: string", shape_fn=unknown_shape, doc="A fact.")


@register_kernel(FACT)
def fact() -> Any:
    return string_tensor((), [b"0! == 1"])


ABORT = register_op(
    "Abort()",
    attrs=["error_msg: string = ''", "exit_without_error: bool = false"],
    shape_fn=no_outputs,
    doc="Ends the step with an AbortedError that has the message. TensorFlow ends the process.",
)


@register_kernel(ABORT, factory=True)
def abort(*, error_msg: str, exit_without_error: bool) -> Callable[[], None]:
    def kernel() -> None:
        asked = "exit" if exit_without_error else "abort"
        raise AbortedError(f"Abort would {asked} the process; it ends the step: {error_msg!r}")

    return kernel
