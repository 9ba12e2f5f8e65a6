"""The shape functions of convolutions that are of no use to other ops.

Source: TensorFlow core/ops/nn_ops.cc.
"""

from collections.abc import Callable

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, ShapeHandle
from opkernel.opdef.common_shapes import get_windowed_output_size_from_dims
from opkernel.opdef.shapes.windowed_output import Padding

__all__ = ["fused_pad_conv2d_shape", "padded_convolution_shape", "shape_like", "shape_told_by"]


def shape_like(index: int, rank: int) -> Callable[[InferenceContext], None]:
    """The shape of input `index`."""
    return lambda c: c.set_output(0, c.with_rank(c.input(index), rank))


def shape_told_by(index: int, rank: int) -> Callable[[InferenceContext], None]:
    """The shape that input `index` holds."""
    return lambda c: c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(index), rank))


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


def fused_pad_conv2d_shape(c: InferenceContext) -> None:
    """The shape of a convolution of the image padded as input 1 says."""
    padded_convolution_shape(c, c.with_rank(c.input(0), 4), 1)
