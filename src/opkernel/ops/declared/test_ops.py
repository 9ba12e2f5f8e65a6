"""Shapes of the ops of TensorFlow's own tests that have kernels.

Source: TensorFlow python/framework/test_ops.cc.
"""

from opkernel.opdef import (
    OpShapeInferenceFn,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.opdef.common_shapes.shape_rule import shape_rule

_SCALAR = ("DevicePlacementOp", "GraphDefVersion", "IsTensorFloat32Enabled", "KernelLabel")
_UNKNOWN = ("ConstructionFails", "GetDeadline", "Old", "SleepOp", "TestAttr")

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_SCALAR, scalar_shape),
    **dict.fromkeys(_UNKNOWN, unknown_shape),
    "KernelLabelRequired": shape_rule("[?] -> []"),
    "SleepIdentityOp": unchanged_shape,
}
