"""Shapes of bias addition.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from opkernel.opdef.shapes.inference_context import InferenceContext


def bias_add_shape(c: InferenceContext) -> None:
    """Input 0, its last dimension (for NCHW its second) merged with the length of input 1."""
    channels_first = c.find_attr("data_format") == "NCHW"
    shape = c.with_rank_at_least(c.input(0), 3 if channels_first else 2)
    bias = c.with_rank(c.input(1), 1)
    if not c.rank_known(shape):
        c.set_output(0, c.unknown_shape())
        return
    axis = 1 if channels_first else -1
    c.set_output(0, c.replace_dim(shape, axis, c.merge(c.dim(shape, axis), c.dim(bias, 0))))


def bias_add_grad_shape(c: InferenceContext) -> None:
    """A vector as long as the last dimension (for NCHW the second) of input 0."""
    channels_first = c.find_attr("data_format") == "NCHW"
    shape = c.with_rank_at_least(c.input(0), 3 if channels_first else 2)
    c.set_output(0, c.vector(c.dim(shape, 1 if channels_first else -1)))
