"""FusedResizeAndPadConv2D: images resized, mirrored around their borders, and convolved.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/conv_ops_fused_image_transform.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.image.resize import output_size
from opkernel.ops.image.resize_sampling import linear
from opkernel.ops.nn.conv.kernels import ConvolutionKernels
from opkernel.ops.nn.conv.ops import padded_convolution_shape
from opkernel.ops.nn.conv.reference import REFERENCE
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_TYPES = [DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE]


def _fused_resize_and_pad_conv2d_shape(c: InferenceContext) -> None:
    """Images with the size that input 1 holds, padded, convolved."""
    images = c.with_rank(c.input(0), 4)
    c.merge(c.input(1), c.vector(2))
    size = c.input_tensor(1)
    for axis, value in enumerate([None, None] if size is None else size.tolist(), 1):
        images = c.replace_dim(images, axis, value)
    padded_convolution_shape(c, images, 2)


FUSED_RESIZE_AND_PAD_CONV2D = register_op(
    "FusedResizeAndPadConv2D",
    inputs=["input: T", "size: int32", "paddings: int32", "filter: T"],
    outputs=["output: T"],
    attrs=[
        "T: {half, float, double}",
        "resize_align_corners: bool = false",
        "mode: {'REFLECT', 'SYMMETRIC'}",
        "strides: list(int)",
        "padding: {'SAME', 'VALID'}",
    ],
    shape_fn=_fused_resize_and_pad_conv2d_shape,
    doc="FusedPadConv2D of images that are resized to `size` before, bilinearly.",
)


@register_kernel(FUSED_RESIZE_AND_PAD_CONV2D, types={"T": _TYPES}, factory=True)
def fused_resize_and_pad_conv2d(
    *, T: DataType, resize_align_corners: bool, mode: str, strides: list[int], padding: str
) -> Callable[[Any, Any, Any, Any], Any]:
    convolve = ConvolutionKernels(REFERENCE).fused_pad_conv2d(
        T=T, mode=mode, strides=strides, padding=padding
    )

    def fused(images: Any, size: Any, paddings: Any, filters: Any) -> Any:
        sizes = output_size(images, size, T)
        return convolve(_resized(images, sizes, resize_align_corners), paddings, filters)

    return fused


def _resized(images: Any, sizes: tuple[int, int], align_corners: bool) -> Any:
    """The images in their own type, as the convolution takes them."""
    for axis, size in ((2, sizes[1]), (1, sizes[0])):
        at = linear(images.shape[axis], size, align_corners, half_pixel_centers=False)
        lower, upper = images.take(at.lower, axis), images.take(at.upper, axis)
        fraction = at.fraction.astype(images.dtype).reshape(-1, *(1,) * (3 - axis))
        images = np.add(lower, (upper - lower) * fraction)
    return images
