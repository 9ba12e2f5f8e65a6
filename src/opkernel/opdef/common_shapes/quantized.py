"""Shapes of quantised ops: the plain op's, and scalars for the ranges of values.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes.elementwise import unchanged_shape
from opkernel.opdef.common_shapes.nn import (
    avg_pool_shape,
    conv2d_shape,
    conv2d_shape_with_explicit_padding,
    depthwise_conv2d_native_shape_with_explicit_padding,
)
from opkernel.opdef.common_shapes.rules import check_ranks, check_ranks_at_most, check_scalars
from opkernel.opdef.core.op_def_builder import OpShapeInferenceFn
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import ShapeHandle


def set_scalar_range(c: InferenceContext) -> None:
    """Outputs 1 and 2 are scalars."""
    c.set_output(1, c.scalar())
    c.set_output(2, c.scalar())


def shape_with_range(
    c: InferenceContext,
    plain: OpShapeInferenceFn = unchanged_shape,
    scalars: Sequence[int] = (),
    vectors: Sequence[int] = (),
) -> None:
    """As `plain`, and a scalar range; these inputs are scalars or vectors."""
    plain(c)
    check_ranks(c, 1, *vectors)
    check_scalars(c, *scalars)
    set_scalar_range(c)


def quantized_conv2d_shape(c: InferenceContext) -> None:
    """As `conv2d_shape`; inputs 2 to 5 and outputs 1 and 2 are the scalar ranges."""
    shape_with_range(c, conv2d_shape, scalars=(2, 3, 4, 5))


def fused_quantized_conv2d_shape(c: InferenceContext) -> None:
    """As `conv2d_shape_with_explicit_padding`; the attr `fused_ops` names the fused operations.

    `BiasAdd` and `Sum` each take one more input behind the filter. The ranges of the images and of
    the filter follow; with `Requantize` outputs 1 and 2 are scalars.
    """
    _fused_shape(c, conv2d_shape_with_explicit_padding)


def fused_quantized_depthwise_conv2d_shape(c: InferenceContext) -> None:
    """As `fused_quantized_conv2d_shape`, of a depthwise convolution."""
    _fused_shape(c, depthwise_conv2d_native_shape_with_explicit_padding)


def _fused_shape(c: InferenceContext, convolution: OpShapeInferenceFn) -> None:
    _check_counts(c, inputs=2)
    convolution(c)
    fused_ops = c.get_attr("fused_ops")
    more_ranks = [rank for name, rank in (("BiasAdd", 1), ("Sum", 4)) if name in fused_ops]
    first = 2 + len(more_ranks)
    _check_counts(c, inputs=first + 4)
    for i, rank in enumerate(more_ranks, 2):
        c.with_rank(c.input(i), rank)
    set_quantized_range(c, first, requantizes="Requantize" in fused_ops)


def _check_counts(c: InferenceContext, inputs: int) -> None:
    """Attrs name the types of the inputs and outputs; there may be too few."""
    for noun, least, count in (("inputs", inputs, c.num_inputs()), ("outputs", 3, c.num_outputs())):
        if count < least:
            raise InvalidArgumentError(f"Expected at least {least} {noun}, got {count}")


def set_quantized_range(c: InferenceContext, first: int, requantizes: bool) -> None:
    """A part of convolutions: inputs from `first` on are the ranges of the images and the filter.

    The range of the images is two scalars. The filter may have a range for each channel; an output
    that is not requantised then has one for each channel, too.
    """
    check_scalars(c, first, first + 1)
    check_ranks_at_most(c, 1, first + 2, first + 3)
    output = c.scalar() if requantizes else c.input(first + 3)
    c.set_output(1, output)
    c.set_output(2, output)


def quantized_avg_pool_shape(c: InferenceContext) -> None:
    """As `avg_pool_shape`; inputs 1 and 2 and outputs 1 and 2 are the scalar range."""
    shape_with_range(c, avg_pool_shape, scalars=(1, 2))


def quantize_v2_shape(c: InferenceContext) -> None:
    """Input 0; the ranges, inputs 1 and 2, are scalars or have one value for each of `axis`."""
    unchanged_shape(c)
    range_shape = range_along_axis(c, 1)
    c.set_output(1, range_shape)
    c.set_output(2, range_shape)
    if c.find_attr("axis", -1) != -1:  # one slice has scalars
        c.doubt_output(1)
        c.doubt_output(2)


def range_along_axis(c: InferenceContext, first: int) -> ShapeHandle:
    """The shape of the largest values of input 0: a scalar, or one for each of `axis`.

    The inputs from `first` on are the least and the largest values.

    Raises:
        InvalidArgumentError: `axis` is less than -1, or the shapes do not fit.
    """
    axis = c.find_attr("axis", -1)
    if axis < -1:
        raise InvalidArgumentError(f"axis should be at least -1, got {axis}")
    _, largest = (c.with_rank(c.input(i), 0 if axis == -1 else 1) for i in (first, first + 1))
    if axis != -1:
        values = c.with_rank_at_least(c.input(0), axis + 1)
        c.merge(c.dim(largest, 0), c.dim(values, axis))
    return largest
