"""What shape functions of quantised ops share: beside the tensor stands its range, two scalars."""

from collections.abc import Sequence

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.declared.rules import check_ranks, check_scalars

__all__ = ["set_scalar_range", "shape_with_range", "unchanged_with_range"]


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
