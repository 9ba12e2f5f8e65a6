"""Rounding to integers, classes of numbers, the next number.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_op_floor.cc and its siblings,
cwise_op_isnan.cc, nextafter_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_shape
from opkernel.ops.kernel_types import FLOATS, INDEX, WIDE_FLOATS
from opkernel.ops.math.elementwise import (
    COMPLEX_SPEC,
    FLOATS_SPEC,
    register_body,
    register_flushed,
    register_ufunc,
    unary_op,
)

FLOOR = unary_op(
    "Floor",
    FLOATS_SPEC,
    "The largest integer that is not above `x`.",
    traits="cheap idempotent growing function_gradient=none",
)
CEIL = unary_op(
    "Ceil",
    FLOATS_SPEC,
    "The smallest integer that is not below `x`.",
    traits="cheap idempotent growing",
)
RINT = unary_op(
    "Rint",
    FLOATS_SPEC,
    "The integer nearest to `x`; of two, the even one.",
    traits="cheap idempotent growing",
)
ROUND = unary_op(
    "Round",
    f"{FLOATS_SPEC}, int8, int16, int32, int64, {COMPLEX_SPEC}",
    "The integer nearest to `x`; of two, the even one. Of integers the kernel makes 0.",
    traits="cheap idempotent",
)
IS_NAN = unary_op("IsNan", FLOATS_SPEC, "Whether `x` is not a number.", output="y: bool")
IS_INF = unary_op("IsInf", FLOATS_SPEC, "Whether `x` is infinite.", output="y: bool")
IS_FINITE = unary_op(
    "IsFinite", FLOATS_SPEC, "Whether `x` is neither infinite nor NaN.", output="y: bool"
)
NEXT_AFTER = register_op(
    "NextAfter",
    inputs=["x1: T", "x2: T"],
    outputs=["output: T"],
    attrs=["T: {double, float} = DT_FLOAT"],
    shape_fn=broadcast_binary_op_shape,
    traits="pointwise cannot_fail",
    doc="The number of the type that follows `x1` in the direction of `x2`.",
)

register_flushed(FLOOR, np.floor, FLOATS)
register_flushed(CEIL, np.ceil, FLOATS)
register_ufunc(RINT, np.rint, WIDE_FLOATS)
register_ufunc(ROUND, np.rint, FLOATS)
register_ufunc(IS_NAN, np.isnan, FLOATS)
register_ufunc(IS_INF, np.isinf, FLOATS)
register_ufunc(IS_FINITE, np.isfinite, FLOATS)
register_ufunc(NEXT_AFTER, np.nextafter, WIDE_FLOATS)


def round_integer(x: Any, *, xp: Any) -> Any:
    """0, as TensorFlow 2.21 gives; its Python `tf.round` leaves integers alone without the op."""
    return xp.zeros_like(x)


register_body(ROUND, round_integer, INDEX)


@g.register_gradient("Ceil", "Floor", "Rint", "Round")
def rounding_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return None


@g.register_gradient("NextAfter")
def next_after_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x1, x2 = op.inputs
    for_x1, for_x2 = g.nodes.Mul(g.ones_like(x1), grad), g.nodes.Mul(g.zeros_like(x2), grad)
    return g.sum_to_operands(x1, x2, for_x1, for_x2)
