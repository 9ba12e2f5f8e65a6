"""What shape functions of quantised ops share: a tensor and its range, or its scales and zero points.

The kernel of ops that TensorFlow computes by oneDNN alone.

Source: TensorFlow core/kernels/no_op.h.
"""

from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelContext
from opkernel.opdef import DimensionHandle, InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.rules import check_ranks, check_scalars


def set_scalar_range(c: InferenceContext) -> None:
    """Outputs 1 and 2 are scalars."""
    c.set_output(1, c.scalar())
    c.set_output(2, c.scalar())


def shape_with_range(
    c: InferenceContext,
    plain: OpShapeInferenceFn,
    scalars: Sequence[int] = (),
    vectors: Sequence[int] = (),
) -> None:
    """As `plain`, and a scalar range; these inputs are scalars or vectors."""
    plain(c)
    check_ranks(c, 1, *vectors)
    check_scalars(c, *scalars)
    set_scalar_range(c)


def unchanged_with_range(
    c: InferenceContext, scalars: Sequence[int] = (), vectors: Sequence[int] = ()
) -> None:
    """Input 0, and a scalar range."""
    shape_with_range(c, unchanged_shape, scalars, vectors)


def check_channel_scales(c: InferenceContext, size: DimensionHandle, i: int) -> None:
    """Inputs `i` (scales) and `i + 1` (zero points) are scalars, or have one for each of `size` channels."""
    scales, zero_points = c.input(i), c.input(i + 1)
    if scales.dims is None or zero_points.dims is None:
        return
    if len(scales.dims) != len(zero_points.dims):
        raise InvalidArgumentError("scales and zero_points must have same rank.")
    for dim in (*scales.dims, *zero_points.dims):
        c.merge(dim, size)


class NoOutputs(OpKernel):
    """Sets none of its outputs, as TensorFlow's kernel with oneDNN off.

    A graph that needs one of them fails with INTERNAL; an eager call gives empty tensors.
    """

    leaves_outputs = True

    def compute(self, ctx: OpKernelContext) -> None:
        """Nothing."""
