"""Shapes of selections from rows.

Source: TensorFlow core/ops/special_math_ops.cc, math_ops.cc, nn_ops.cc, tpu_cross_replica_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import (
    unchanged_shape,
    unchanged_shape_with_rank,
    unknown_shape,
)

__all__ = ["SHAPE_FNS"]


def _kth_order_statistic_shape(c: InferenceContext) -> None:
    """[rows, columns] -> [rows]."""
    c.set_output(0, c.subshape(c.with_rank(c.input(0), 2), 0, -1))


def _top_k_unique_shape(c: InferenceContext) -> None:
    """[rows, columns] -> values and indices [rows, k]."""
    rows, k = c.dim(c.with_rank(c.input(0), 2), 0), c.get_attr("k")
    for i in range(2):
        c.set_output(i, c.matrix(rows, k))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "Fact": unknown_shape,
    "KthOrderStatistic": _kth_order_statistic_shape,
    "MakeUnique": unchanged_shape_with_rank(2),
    "TopKUnique": _top_k_unique_shape,
    "TopKWithUnique": _top_k_unique_shape,
    "_UnaryOpsComposition": unchanged_shape,
}
