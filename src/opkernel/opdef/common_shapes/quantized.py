"""Shapes of quantised ops: the plain op's, and scalars for the ranges of values.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes.convolution import conv2d_shape
from opkernel.opdef.common_shapes.elementwise import unchanged_shape
from opkernel.opdef.common_shapes.pooling import avg_pool_shape
from opkernel.opdef.inference_context import InferenceContext

__all__ = ["quantize_v2_shape", "quantized_avg_pool_shape", "quantized_conv2d_shape"]


def quantized_conv2d_shape(c: InferenceContext) -> None:
    """As `conv2d_shape`; inputs 2 to 5 and outputs 1 and 2 are the scalar ranges."""
    conv2d_shape(c)
    for i in range(2, 6):
        c.with_rank(c.input(i), 0)
    c.set_output(1, c.scalar())
    c.set_output(2, c.scalar())


def quantized_avg_pool_shape(c: InferenceContext) -> None:
    """As `avg_pool_shape`; inputs 1 and 2 and outputs 1 and 2 are the scalar range."""
    avg_pool_shape(c)
    c.with_rank(c.input(1), 0)
    c.with_rank(c.input(2), 0)
    c.set_output(1, c.scalar())
    c.set_output(2, c.scalar())


def quantize_v2_shape(c: InferenceContext) -> None:
    """Input 0; the ranges, inputs 1 and 2, are scalars or have one value for each of `axis`."""
    axis = c.find_attr("axis", -1)
    if axis < -1:
        raise InvalidArgumentError(f"axis should be at least -1, got {axis}")
    unchanged_shape(c)
    range_rank = 0 if axis == -1 else 1
    c.with_rank(c.input(1), range_rank)
    range_shape = c.with_rank(c.input(2), range_rank)
    if axis != -1:
        values = c.with_rank_at_least(c.input(0), axis + 1)
        c.merge(c.dim(range_shape, 0), c.dim(values, axis))
    c.set_output(1, range_shape)
    c.set_output(2, range_shape)
