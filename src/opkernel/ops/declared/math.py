"""Shapes of selections from rows.

Source: TensorFlow core/ops/special_math_ops.cc, math_ops.cc, nn_ops.cc, tpu_cross_replica_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import (
    unchanged_shape,
    unchanged_shape_with_rank,
    unknown_shape,
)
from opkernel.ops.declared.rules import check_scalars

__all__ = ["SHAPE_FNS"]


def _kth_order_statistic_shape(c: InferenceContext) -> None:
    """[rows, columns] -> [rows]."""
    c.set_output(0, c.subshape(c.with_rank(c.input(0), 2), 0, -1))


def _top_k_unique_shape(c: InferenceContext) -> None:
    """[rows, columns] -> values and indices [rows, k]."""
    rows, k = c.dim(c.with_rank(c.input(0), 2), 0), c.get_attr("k")
    for i in range(2):
        c.set_output(i, c.matrix(rows, k))


def _sobol_sample_shape(c: InferenceContext) -> None:
    """As many points as input 1 holds, of as many coordinates as input 0 holds."""
    check_scalars(c, 0, 1, 2)
    coordinates, points = (
        None if tensor is None else c.get_scalar_from_tensor(tensor)
        for tensor in (c.input_tensor(0), c.input_tensor(1))
    )
    c.set_output(0, c.matrix(points, coordinates))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "Fact": unknown_shape,
    "KthOrderStatistic": _kth_order_statistic_shape,
    "MakeUnique": unchanged_shape_with_rank(2),
    "SobolSample": _sobol_sample_shape,
    "TopKUnique": _top_k_unique_shape,
    "TopKWithUnique": _top_k_unique_shape,
    "_UnaryOpsComposition": unchanged_shape,
}
