"""Shapes of fractional pooling and of fused convolutions.

Source: TensorFlow core/ops/nn_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn
from opkernel.opdef.common_shapes import (
    conv3d_shape,
    fused_batch_norm_grad_ex_shape,
)

__all__ = ["SHAPE_FNS"]


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "_FusedBatchNormGradEx": fused_batch_norm_grad_ex_shape,
    "_FusedConv3D": conv3d_shape,
}
