"""Shapes of ops of the debugger that have no kernel.

Source: TensorFlow core/ops/debug_ops.cc, array_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn, scalar_shape, unchanged_shape, unknown_shape

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "DebugGradientRefIdentity": unchanged_shape,
    "DebugNanCount": scalar_shape,
    "DebugNumericSummary": unknown_shape,
    "DebugNumericSummaryV2": unknown_shape,
}
