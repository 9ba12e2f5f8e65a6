"""Comparisons and the logic of their results.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_op_equal_to_1.cc and its siblings,
cwise_op_less.cc, cwise_op_logical_and.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import (
    broadcast_binary_op_output_shape,
    broadcast_binary_op_shape,
    unchanged_shape,
)
from opkernel.ops.input_checks import require_equal
from opkernel.ops.kernel_types import ALL_QUANTIZED, POD_OR_STRING, REAL_NUMBERS, WIDE_FLOATS
from opkernel.ops.math.elementwise import POINTWISE, binary_op, register_ufunc
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_ORDERINGS = {
    "Less": (np.less, "less", "Whether `x < y`."),
    "LessEqual": (np.less_equal, "less_equal", "Whether `x <= y`."),
    "Greater": (np.greater, "greater", "Whether `x > y`."),
    "GreaterEqual": (np.greater_equal, "greater_equal", "Whether `x >= y`."),
}

for _name, (_ufunc, _rule, _doc) in _ORDERINGS.items():
    _traits = f"value_rule={_rule} int32_on_host function_gradient=none"
    _op = binary_op(_name, "realnumbertype", _doc, output="z: bool", traits=_traits)
    register_ufunc(_op, _ufunc, REAL_NUMBERS)


def equality_shape(c: InferenceContext) -> None:
    """The inputs broadcast; where they cannot be and that is no error, a scalar."""
    strict = bool(c.get_attr("incompatible_shape_error"))
    c.set_output(0, broadcast_binary_op_output_shape(c, c.input(0), c.input(1), strict))


_EQUALITY_TYPES = (*POD_OR_STRING, *ALL_QUANTIZED)


def _declare_equality(name: str, ufunc: np.ufunc, doc: str, of_other_shapes: bool) -> OpHandle:
    """An op whose answer is `of_other_shapes` where the shapes cannot be broadcast."""
    op = register_op(
        name,
        inputs=["x: T", "y: T"],
        outputs=["z: bool"],
        attrs=["T: type", "incompatible_shape_error: bool = true"],
        shape_fn=equality_shape,
        traits=f"cannot_fail value_rule={ufunc.__name__} int32_on_host function_gradient=none",
        is_commutative=True,
        doc=doc,
    )

    @register_kernel(op, types={"T": _EQUALITY_TYPES}, factory=True)
    def make(*, incompatible_shape_error: bool, xp: Any) -> Callable[[Any, Any], Any]:
        compare: Callable[[Any, Any], Any] = getattr(xp, ufunc.__name__)
        if incompatible_shape_error:
            return compare

        def compare_any_shapes(x: Any, y: Any) -> Any:
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return xp.asarray(of_other_shapes)
            return compare(x, y)

        return compare_any_shapes

    return op


EQUAL = _declare_equality("Equal", np.equal, "Whether `x == y`.", False)
NOT_EQUAL = _declare_equality("NotEqual", np.not_equal, "Whether `x != y`.", True)


def approximate_equal_shape(c: InferenceContext) -> None:
    """The shape of `x`, with which the shape of `y` must agree."""
    c.merge(c.input(0), c.input(1))
    c.set_output(0, c.input(0))


APPROXIMATE_EQUAL = register_op(
    "ApproximateEqual",
    inputs=["x: T", "y: T"],
    outputs=["z: bool"],
    attrs=["T: numbertype", "tolerance: float = 0.00001"],
    shape_fn=approximate_equal_shape,
    is_commutative=True,
    doc="Whether `x` and `y`, of the same shape, differ by less than `tolerance`.",
)


@register_kernel(APPROXIMATE_EQUAL, types={"T": WIDE_FLOATS}, factory=True)
def approximate_equal(*, T: DataType, tolerance: float, xp: Any) -> Callable[[Any, Any], Any]:
    bound = T.numpy_dtype.type(tolerance)

    def compare(x: Any, y: Any) -> Any:
        require_equal(
            x.shape, y.shape, "x and y must be of the same shape. x shape: {}. y shape: {}"
        )
        return xp.abs(x - y) < bound

    return compare


def _declare_logical(name: str, ufunc: np.ufunc, doc: str) -> OpHandle:
    op = register_op(
        name,
        inputs=["x: bool", "y: bool"],
        outputs=["z: bool"],
        shape_fn=broadcast_binary_op_shape,
        traits=f"{POINTWISE} value_rule={ufunc.__name__} function_gradient=none",
        is_commutative=True,
        doc=doc,
    )
    register_kernel(op, kind="elementwise")(ufunc)
    return op


LOGICAL_AND = _declare_logical("LogicalAnd", np.logical_and, "Whether both `x` and `y` are true.")
LOGICAL_OR = _declare_logical("LogicalOr", np.logical_or, "Whether `x` or `y` or both are true.")
LOGICAL_NOT = register_op(
    "LogicalNot",
    inputs=["x: bool"],
    outputs=["y: bool"],
    shape_fn=unchanged_shape,
    traits=f"{POINTWISE} involution value_rule=logical_not function_gradient=none",
    doc="Whether `x` is false.",
)
register_kernel(LOGICAL_NOT, kind="elementwise")(np.logical_not)
