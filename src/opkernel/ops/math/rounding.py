"""Rounding to integers, classes of numbers, the next number.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_op_floor.cc and its siblings,
cwise_op_isnan.cc, nextafter_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_shape
from opkernel.ops.math.elementwise import (
    COMPLEX_SPEC,
    FLOATS_SPEC,
    in_blocks,
    register_body,
    register_flushed,
    register_ufunc,
    unary_op,
)
from opkernel.ops.registration import FLOATS, INDEX, NARROW_FLOATS, WIDE_FLOATS, register_kernel
from opkernel.types import DataType

_MAGNITUDE = np.uint16(0x7FFF)
_INTEGRAL = "cheap idempotent growing"
FLOOR = unary_op(
    "Floor",
    FLOATS_SPEC,
    "The largest integer that is not above `x`.",
    traits=f"{_INTEGRAL} function_gradient=none",
)
CEIL = unary_op(
    "Ceil", FLOATS_SPEC, "The smallest integer that is not below `x`.", traits=_INTEGRAL
)
_NEAREST = "The integer nearest to `x`; of two, the even one."
RINT = unary_op("Rint", FLOATS_SPEC, _NEAREST, traits=_INTEGRAL)
ROUND = unary_op(
    "Round",
    f"{FLOATS_SPEC}, int8, int16, int32, int64, {COMPLEX_SPEC}",
    f"{_NEAREST} Of integers the kernel makes 0.",
    traits="cheap idempotent",
)


def _register_class(op: OpHandle, ufunc: np.ufunc, compare: np.ufunc) -> None:
    """Register the kernels of a class of numbers: those whose bits without sign `compare` so to infinity's."""
    register_ufunc(op, ufunc, WIDE_FLOATS)

    @register_kernel(op, types={"T": NARROW_FLOATS}, kind="elementwise", factory=True)
    def make(*, T: DataType, xp: Any) -> Callable[[Any], Any]:
        infinity = np.array(np.inf, T.numpy_dtype).view(np.uint16)
        if xp is not np:
            return partial(getattr(xp, ufunc.__name__))
        return in_blocks(lambda x: compare(np.asarray(x).view(np.uint16) & _MAGNITUDE, infinity))


for _name, _ufunc, _compare, _doc in (
    ("IsNan", np.isnan, np.greater, "Whether `x` is not a number."),
    ("IsInf", np.isinf, np.equal, "Whether `x` is infinite."),
    ("IsFinite", np.isfinite, np.less, "Whether `x` is neither infinite nor NaN."),
):
    _register_class(unary_op(_name, FLOATS_SPEC, _doc, output="bool"), _ufunc, _compare)
NEXT_AFTER = register_op(
    "NextAfter(x1: T, x2: T) -> output: T",
    attrs=["T: {double, float} = DT_FLOAT"],
    shape_fn=broadcast_binary_op_shape,
    traits="pointwise cannot_fail",
    doc="The number of the type that follows `x1` in the direction of `x2`.",
)

register_flushed(FLOOR, np.floor, FLOATS)
register_flushed(CEIL, np.ceil, FLOATS)
register_ufunc(RINT, np.rint, WIDE_FLOATS)
register_ufunc(ROUND, np.rint, FLOATS)
register_ufunc(NEXT_AFTER, np.nextafter, WIDE_FLOATS)


# 0, as TensorFlow 2.21 gives; its Python `tf.round` leaves integers alone without the op.
register_body(ROUND, lambda x, *, xp: xp.zeros_like(x), INDEX)


g.register_gradient("Ceil", "Floor", "Rint", "Round")(lambda op, grad: None)


g.register_gradient("NextAfter")(
    g.of_operands(
        lambda x1, x2, grad: (
            g.nodes.Mul(g.ones_like(x1), grad),
            g.nodes.Mul(g.zeros_like(x2), grad),
        )
    )
)
