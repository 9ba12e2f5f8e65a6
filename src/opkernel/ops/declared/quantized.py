"""Shapes of quantised ops: those of the plain ops, and of the ranges of values.

Source: TensorFlow core/ops/math_ops.cc, nn_ops.cc, array_ops.cc and image_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, common_shapes
from opkernel.opdef.common_shapes.quantized import set_quantized_range
from opkernel.opdef.common_shapes.rules import check_ranks, check_scalars


def _with_range(
    shape_fn: OpShapeInferenceFn, *, scalars: tuple[int, ...] = (), vectors: tuple[int, ...] = ()
) -> OpShapeInferenceFn:
    """A shape function: as `shape_fn`, and a scalar range; these inputs are scalars or vectors."""

    def with_range(c: InferenceContext) -> None:
        shape_fn(c)
        check_ranks(c, 1, *vectors)
        check_scalars(c, *scalars)
        _set_scalar_range(c)

    return with_range


def _set_scalar_range(c: InferenceContext) -> None:
    c.set_output(1, c.scalar())
    c.set_output(2, c.scalar())


def quantized_convolution_shape(
    c: InferenceContext,
    convolution: OpShapeInferenceFn,
    has_bias: bool,
    requantizes: bool,
    checks_output_range: bool = True,
) -> None:
    """Images, filter, perhaps a bias; the ranges of images and filter, perhaps the range of the output.

    The filter may have a range for each channel, and so may an output that is not requantised.
    """
    convolution(c)
    if has_bias:
        check_ranks(c, 1, 2)
    first = 3 if has_bias else 2
    set_quantized_range(c, first, requantizes)
    if requantizes and checks_output_range:
        check_scalars(c, first + 4, first + 5)


def _matmul_of_many_shape(c: InferenceContext) -> None:
    """Attrs name the types of the inputs and outputs; there may be too few."""
    if c.num_inputs() < 2 or c.num_outputs() < 1:
        raise InvalidArgumentError(
            f"Expected at least 2 inputs and 1 output, got {c.num_inputs()} and {c.num_outputs()}"
        )
    common_shapes.matmul_shape(c)


def quantized_matmul_shape(c: InferenceContext, requantizes: bool) -> None:
    """Matrices, a bias, and the ranges of the matrices, perhaps that of the output."""
    common_shapes.matmul_shape(c)
    check_ranks(c, 1, 2)
    check_scalars(c, *range(3, 9 if requantizes else 7))
    if c.num_outputs() > 2:
        _set_scalar_range(c)


def _custom_aggregator_shape(c: InferenceContext) -> None:
    """Input 0, its range and a histogram."""
    common_shapes.unchanged_shape(c)
    _set_scalar_range(c)
    c.set_output(3, c.vector(c.get_attr("num_bins")))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "CustomAggregator": _custom_aggregator_shape,
    "QuantizedReluX": _with_range(common_shapes.unchanged_shape, scalars=(1, 2, 3)),
    "_FusedQuantizedConv2D": common_shapes.fused_quantized_conv2d_shape,
    "_FusedQuantizedDepthwiseConv2D": common_shapes.fused_quantized_depthwise_conv2d_shape,
    "_QuantizedMatMul": _matmul_of_many_shape,
    "_QuantizedMaxPool3D": common_shapes.pool3d_shape,
}
