"""Shapes of copies, and of the parts of updates in place.

Source: TensorFlow core/ops/array_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn
from opkernel.opdef.common_shapes import explicit_shape, unchanged_shape

__all__ = ["SHAPE_FNS"]

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(("CheckPinned", "Copy", "CopyHost"), unchanged_shape),
    "_ParallelConcatStart": explicit_shape,
    "_ParallelConcatUpdate": unchanged_shape,
}
