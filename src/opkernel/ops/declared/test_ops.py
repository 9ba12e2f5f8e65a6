"""Shapes of the ops of TensorFlow's own tests that have kernels.

Source: TensorFlow python/framework/test_ops.cc.
"""

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)


def _kernel_label_required(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 1)
    c.set_output(0, c.scalar())


_SCALAR = ("DevicePlacementOp", "GraphDefVersion", "IsTensorFloat32Enabled", "KernelLabel")
_UNKNOWN = ("ConstructionFails", "GetDeadline", "Old", "SleepOp", "TestAttr")

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_SCALAR, scalar_shape),
    **dict.fromkeys(_UNKNOWN, unknown_shape),
    "KernelLabelRequired": _kernel_label_required,
    "SleepIdentityOp": unchanged_shape,
}
