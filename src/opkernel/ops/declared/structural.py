"""Shapes of ops that make up graphs: lists, the end of a process.

Source: TensorFlow core/ops/control_flow_ops.cc, array_ops.cc.
"""

from opkernel.opdef import (
    OpShapeInferenceFn,
    no_outputs,
    unchanged_shape,
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "Abort": no_outputs,
    "_HostCast": unchanged_shape,
}
