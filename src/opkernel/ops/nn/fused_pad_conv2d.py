"""FusedPadConv2D: MirrorPad and Conv2D in one op.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/conv_ops_using_gemm.cc.
"""

from collections.abc import Callable

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import register_kernel
from opkernel.opdef import InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes import get_windowed_output_size_from_dims
from opkernel.opdef.windowed_output import Padding
from opkernel.ops.array.mirror_pad import mirror_pad
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.nn.conv2d import conv2d_windows
from opkernel.ops.nn.convolution import convolution, convolve_images
from opkernel.ops.nn.geometry import check_rank
from opkernel.ops.nn.windows import Array
from opkernel.types import DataType

__all__ = ["FUSED_PAD_CONV2D", "padded_convolution_shape"]


def _padded_shape(c: InferenceContext, image: ShapeHandle, index: int) -> ShapeHandle:
    """An image with the padding that an input holds."""
    paddings = c.with_rank(c.input(index), 2)
    rows = c.value(c.dim(paddings, 0))
    if rows != 4:  # as in TensorFlow, -1 where it is not known
        raise InvalidArgumentError(f"Shape must be rank {rows} but is rank 4")
    c.merge(paddings, c.matrix(4, 2))
    values = c.input_tensor(index)
    if values is None:
        return c.unknown_shape_of_rank(4)
    sums = values.sum(axis=1).tolist()
    return c.make_shape([c.add(c.dim(image, i), both) for i, both in enumerate(sums)])


def padded_convolution_shape(c: InferenceContext, image: ShapeHandle, index: int) -> None:
    """The convolution of an image, padded as input `index` says, with the filters after it."""
    padded, filter_ = _padded_shape(c, image, index), c.with_rank(c.input(index + 1), 4)
    strides = c.get_attr("strides")
    if len(strides) != 4:
        raise InvalidArgumentError(
            f"Operation requires the stride attribute to contain 4 values, but got: {len(strides)}"
        )
    c.merge(c.dim(padded, 3), c.dim(filter_, 2))
    padding = Padding.from_string(c.get_attr("padding"))
    space = [
        get_windowed_output_size_from_dims(
            c, c.dim(padded, i), c.dim(filter_, i - 1), strides[i], padding
        )
        for i in (1, 2)
    ]
    c.set_output(0, c.make_shape([c.dim(padded, 0), *space, c.dim(filter_, 3)]))


def _fused_pad_conv2d_shape(c: InferenceContext) -> None:
    padded_convolution_shape(c, c.with_rank(c.input(0), 4), 1)


FUSED_PAD_CONV2D = register_op(
    "FusedPadConv2D",
    inputs=["input: T", "paddings: int32", "filter: T"],
    outputs=["output: T"],
    attrs=[
        "T: {half, bfloat16, float, double}",
        "mode: {'REFLECT', 'SYMMETRIC'}",
        "strides: list(int)",
        "padding: {'SAME', 'VALID'}",
    ],
    shape_fn=_fused_pad_conv2d_shape,
    doc="Conv2D of images with their mirror image around them; batch and channels are not padded.",
)


@register_kernel(FUSED_PAD_CONV2D, device="CPU", types={"T": FLOATS}, factory=True)
def fused_pad_conv2d(
    *, T: DataType, mode: str, strides: list[int], padding: str
) -> Callable[[Array, Array, Array], Array]:
    pad = mirror_pad(mode=mode, T=T, xp=np)
    windows = conv2d_windows(strides, [1, 1, 1, 1], padding, (), "NHWC")

    def fused(x: Array, paddings: Array, filters: Array) -> Array:
        check_rank("input", x, 4)
        check_rank("filter", filters, 4)
        padded = pad(x, paddings)
        if paddings[[0, 3]].any():
            raise InvalidArgumentError(
                f"Fused mirror padding only support spatial padding, got {paddings.tolist()}"
            )
        if x.shape[3] != filters.shape[2]:
            raise InvalidArgumentError(
                f"input and filter must have the same depth: {x.shape[3]} vs {filters.shape[2]}"
            )
        return convolution(padded, filters, windows, convolve_images)

    return fused
