"""Shapes of fractional pooling and of fused convolutions.

Source: TensorFlow core/ops/nn_ops.cc.
"""

import math

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle, InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import (
    conv3d_shape,
    fused_batch_norm_grad_ex_shape,
    unchanged_shape_with_rank,
)
from opkernel.ops.declared.rules import set_outputs
from opkernel.ops.nn.conv.shapes import padded_convolution_shape

__all__ = ["SHAPE_FNS"]


def _fractional_pool_shape(c: InferenceContext) -> None:
    """Images divided by `pooling_ratio`, and where their windows begin."""
    images = c.with_rank(c.input(0), 4)
    ratios = c.get_attr("pooling_ratio")
    if len(ratios) != 4:
        raise InvalidArgumentError("pooling_ratio field must specify 4 dimensions")
    dims = [_pooled(c, c.dim(images, i), ratio, i) for i, ratio in enumerate(ratios)]
    set_outputs(c, [c.make_shape(dims), c.vector(dims[1]), c.vector(dims[2])])


def _pooled(c: InferenceContext, dim: DimensionHandle, ratio: float, i: int) -> DimensionHandle:
    if not ratio >= 1:  # NaN is not
        raise InvalidArgumentError(f"pooling_ratio should be larger than 1, got {ratio}")
    if not c.value_known(dim):
        return c.unknown_dim()
    return c.make_dim(math.floor(np.float32(dim.value) / np.float32(ratio)))


def _fractional_avg_pool_grad_shape(c: InferenceContext) -> None:
    """The shape that input 0 holds."""
    if c.input_tensor(0) is None:
        c.set_output(0, c.unknown_shape_of_rank(4))
    else:
        c.set_output(0, c.make_shape_from_shape_tensor(0))


def _fused_resize_and_pad_conv2d_shape(c: InferenceContext) -> None:
    """Images with the size that input 1 holds, padded, convolved."""
    images = c.with_rank(c.input(0), 4)
    c.merge(c.input(1), c.vector(2))
    size = c.input_tensor(1)
    for axis, value in enumerate([None, None] if size is None else size.tolist(), 1):
        images = c.replace_dim(images, axis, value)
    padded_convolution_shape(c, images, 2)


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "FractionalAvgPool": _fractional_pool_shape,
    "FractionalAvgPoolGrad": _fractional_avg_pool_grad_shape,
    "FractionalMaxPool": _fractional_pool_shape,
    "FractionalMaxPoolGrad": unchanged_shape_with_rank(4),
    "FusedResizeAndPadConv2D": _fused_resize_and_pad_conv2d_shape,
    "_FusedBatchNormGradEx": fused_batch_norm_grad_ex_shape,
    "_FusedConv3D": conv3d_shape,
}
