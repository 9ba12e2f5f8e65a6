"""Shapes of fractional pooling and of fused convolutions.

Source: TensorFlow core/ops/nn_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import (
    conv3d_shape,
    fused_batch_norm_grad_ex_shape,
)
from opkernel.ops.nn.conv.shapes import padded_convolution_shape

__all__ = ["SHAPE_FNS"]


def _fused_resize_and_pad_conv2d_shape(c: InferenceContext) -> None:
    """Images with the size that input 1 holds, padded, convolved."""
    images = c.with_rank(c.input(0), 4)
    c.merge(c.input(1), c.vector(2))
    size = c.input_tensor(1)
    for axis, value in enumerate([None, None] if size is None else size.tolist(), 1):
        images = c.replace_dim(images, axis, value)
    padded_convolution_shape(c, images, 2)


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "FusedResizeAndPadConv2D": _fused_resize_and_pad_conv2d_shape,
    "_FusedBatchNormGradEx": fused_batch_norm_grad_ex_shape,
    "_FusedConv3D": conv3d_shape,
}
