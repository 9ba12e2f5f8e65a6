"""Ops that compute nothing, and that others wait for.

Source: TensorFlow core/ops/no_op.cc, core/ops/control_flow_ops.cc, core/kernels/no_op.h.
"""

from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import no_outputs
from opkernel.ops.registration import register_kernel

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
