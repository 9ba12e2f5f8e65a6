"""Shapes of batch normalisation.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes.windows import data_format_attr
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import UNKNOWN_DIM


def fused_batch_norm_shape(c: InferenceContext) -> None:
    """Input 0, and four vectors with one element for each channel."""
    data_format = data_format_attr(c)
    rank = 5 if c.get_attr("data_format") in ("NDHWC", "NCDHW") else 4
    images = c.with_rank(c.input(0), rank)
    # Mean and variance are empty while training, unless they are averaged with the old ones.
    averages = c.find_attr("exponential_avg_factor", 1.0) != 1.0
    statistics_given = not c.get_attr("is_training") or averages
    axis = data_format.feature_index(rank)
    channels = c.dim(images, axis)
    for i in range(1, 5 if statistics_given else 3):
        channels = c.merge(channels, c.dim(c.with_rank(c.input(i), 1), 0))
    c.set_output(0, c.replace_dim(images, axis, channels))
    per_channel = c.vector(channels)
    for i in range(1, 5):
        c.set_output(i, per_channel)


def fused_batch_norm_v3_shape(c: InferenceContext) -> None:
    """As `fused_batch_norm_shape`; the sixth output is the kernel's own and unknown."""
    fused_batch_norm_shape(c)
    c.set_output(5, c.unknown_shape())


def fused_batch_norm_ex_shape(c: InferenceContext) -> None:
    """As `fused_batch_norm_v3_shape`, where the number of channels is a multiple of 4."""
    fused_batch_norm_v3_shape(c)
    images = c.with_rank(c.input(0), 4)
    channels = c.dim(images, data_format_attr(c).feature_index(4)).value
    if channels != UNKNOWN_DIM and channels % 4:
        raise InvalidArgumentError(
            f"{c.node_def.op} channel dimension must be divisible by 4, but is {channels}."
        )


def fused_batch_norm_grad_shape(c: InferenceContext) -> None:
    """The gradients of the images, of scale and of offset, and two empty vectors."""
    data_format = data_format_attr(c)
    rank = 5 if c.get_attr("data_format") in ("NDHWC", "NCDHW") else 4
    gradient = c.with_rank(c.input(0), rank)
    images = c.with_rank(c.input(1), rank)
    axis = data_format.feature_index(rank)
    channels = c.merge(c.dim(gradient, axis), c.dim(images, axis))
    for i in range(2, 5):
        channels = c.merge(channels, c.dim(c.with_rank(c.input(i), 1), 0))
    c.set_output(0, c.replace_dim(gradient, axis, channels))
    c.set_output(1, c.vector(channels))
    c.set_output(2, c.vector(channels))
    c.set_output(3, c.vector(0))
    c.set_output(4, c.vector(0))


def fused_batch_norm_grad_ex_shape(c: InferenceContext) -> None:
    """As `fused_batch_norm_grad_shape`, and the gradient of the side input, if there is one."""
    fused_batch_norm_grad_shape(c)
    if c.get_attr("num_side_inputs"):
        gradient, images = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 4)
        axis = data_format_attr(c).feature_index(4)
        channels = c.merge(c.dim(gradient, axis), c.dim(images, axis))
        c.set_output(5, c.replace_dim(gradient, axis, channels))
