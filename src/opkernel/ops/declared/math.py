"""Shapes of special functions and of selections from rows.

Source: TensorFlow core/ops/special_math_ops.cc, math_ops.cc, nn_ops.cc, tpu_cross_replica_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import (
    unchanged_shape,
    unchanged_shape_with_rank,
    unknown_shape,
)
from opkernel.ops.declared.rules import outputs_as_inputs

__all__ = ["SHAPE_FNS"]

_ELEMENTWISE = (
    "BesselI0",
    "BesselI0e",
    "BesselI1",
    "BesselI1e",
    "BesselJ0",
    "BesselJ1",
    "BesselK0",
    "BesselK0e",
    "BesselK1",
    "BesselK1e",
    "BesselY0",
    "BesselY1",
    "Dawsn",
    "Expint",
    "FresnelCos",
    "FresnelSin",
    "Spence",
    "_UnaryOpsComposition",
)


def _betainc_shape(c: InferenceContext) -> None:
    """Three inputs of the same shape, of which some may be scalars."""
    inputs = [c.input(i) for i in range(3)]
    others = [shape for shape in inputs if shape.dims != ()]
    if len(others) < 2:
        c.set_output(0, others[0] if others else inputs[0])
        return
    output = c.unknown_shape()
    for shape in others:
        output = c.merge(output, shape)
    c.set_output(0, output)


def _kth_order_statistic_shape(c: InferenceContext) -> None:
    """[rows, columns] -> [rows]."""
    c.set_output(0, c.subshape(c.with_rank(c.input(0), 2), 0, -1))


def _top_k_unique_shape(c: InferenceContext) -> None:
    """[rows, columns] -> values and indices [rows, k]."""
    rows, k = c.dim(c.with_rank(c.input(0), 2), 0), c.get_attr("k")
    for i in range(2):
        c.set_output(i, c.matrix(rows, k))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_ELEMENTWISE, unchanged_shape),
    "Betainc": _betainc_shape,
    "Fact": unknown_shape,
    "IsotonicRegression": outputs_as_inputs(0, 0),
    "KthOrderStatistic": _kth_order_statistic_shape,
    "MakeUnique": unchanged_shape_with_rank(2),
    "TopKUnique": _top_k_unique_shape,
    "TopKWithUnique": _top_k_unique_shape,
}
