"""Arithmetic, functions and comparisons of each element, with broadcasting."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.engines.openvino.layout import hoist_transposes
from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import BOOL, openvino_op
from opkernel.engines.openvino.tensors import reshaped, scalar, shape_of
from opkernel.ops.math.special.error_functions import ERFC_FLOAT, ERFC_MIDDLE
from opkernel.types import DataType

_UNARY = {
    "Abs": "absolute",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Log": "log",
    "Neg": "negative",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
_BINARY = {
    "Add": "add",
    "AddV2": "add",
    "Div": "divide",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mul": "multiply",
    "Pow": "power",
    "RealDiv": "divide",
    "SquaredDifference": "squared_difference",
    "Sub": "subtract",
}
_DIFFERING = frozenset({"Exp", "Maximum", "Minimum", "Pow"})
"""Exp(NaN) is infinity, Maximum and Minimum leave NaN out, and Pow has other limits."""
_COMPARISONS = {
    "Equal": "equal",
    "Less": "less",
    "LessEqual": "less_equal",
    "NotEqual": "not_equal",
}


def _calls(name: str) -> Callable[..., Any]:
    """The builder that calls a function of the opset with the inputs."""

    def build(*inputs: Any) -> Any:
        return getattr(opset(), name)(*inputs)

    return hoist_transposes(build)


for _op, _name in (_UNARY | _BINARY).items():
    openvino_op(_op, differs_for_non_finite=_op in _DIFFERING)(_calls(_name))
for _op, _name in _COMPARISONS.items():
    openvino_op(_op, types={"z": BOOL})(_calls(_name))


@openvino_op("Greater", types={"z": BOOL})
def greater(x: Any, y: Any) -> Any:
    """OpenVINO's own calls NaN greater than all."""
    return opset().less(y, x)


@openvino_op("GreaterEqual", types={"z": BOOL})
def greater_equal(x: Any, y: Any) -> Any:
    return opset().less_equal(y, x)


@openvino_op("IsNan", types={"y": BOOL})
def is_nan(x: Any) -> Any:
    return opset().is_nan(x)


@openvino_op("IsInf", types={"y": BOOL})
def is_inf(x: Any) -> Any:
    return opset().is_inf(x)


_BOOLS = {"x": BOOL, "y": BOOL, "z": BOOL}


@openvino_op("LogicalAnd", types=_BOOLS)
def logical_and(x: Any, y: Any) -> Any:
    return opset().logical_and(x, y)


@openvino_op("LogicalOr", types=_BOOLS)
def logical_or(x: Any, y: Any) -> Any:
    return opset().logical_or(x, y)


@openvino_op("LogicalNot", types=_BOOLS)
def logical_not(x: Any) -> Any:
    return opset().logical_not(x)


@openvino_op("SelectV2", types={"condition": BOOL})
@hoist_transposes
def select_v2(condition: Any, t: Any, e: Any) -> Any:
    return opset().select(condition, t, e)


@openvino_op("AddN")
def add_n(inputs: list[Any]) -> Any:
    add = hoist_transposes(lambda a, b: opset().add(a, b).output(0))
    return functools.reduce(add, inputs)


@openvino_op("Square")
@hoist_transposes
def square(x: Any) -> Any:
    return opset().multiply(x, x)


@openvino_op("Inv", "Reciprocal")
@hoist_transposes
def reciprocal(x: Any) -> Any:
    return opset().divide(scalar(1), x)


@openvino_op("Rsqrt")
@hoist_transposes
def rsqrt(x: Any) -> Any:
    return opset().divide(scalar(1), opset().sqrt(x))


@openvino_op("Round", "Rint")
@hoist_transposes
def round_(x: Any) -> Any:
    return opset().round(x, "half_to_even")


@openvino_op("ClipByValue", differs_for_non_finite=True)
@hoist_transposes
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    return opset().maximum(opset().minimum(t, clip_value_max), clip_value_min)


@openvino_op("DivNoNan")
@hoist_transposes
def div_no_nan(x: Any, y: Any) -> Any:
    """Numbers too small for the normal format count as zero, as in the kernel."""
    is_zero = opset().less(opset().absolute(y), scalar(float(np.finfo(np.float32).tiny)))
    return opset().select(is_zero, scalar(0), opset().divide(x, y))


@openvino_op("Select", types={"condition": BOOL})
def select(condition: Any, t: Any, e: Any) -> Any:
    """A vector of conditions chooses whole rows."""
    rows = shape_of(condition)
    if len(rows) == 1:
        condition = reshaped(condition, [*rows, *[1] * (len(shape_of(t)) - 1)])
    return opset().select(condition, t, e)


@openvino_op("Cast", types={"x": {DataType.DT_FLOAT, DataType.DT_BOOL}})
def cast(x: Any) -> Any:
    return opset().convert(x, np.float32)


@openvino_op("Erfc")
@hoist_transposes
def erfc(x: Any) -> Any:
    """As the kernel of the CPU computes it: 1 - erf(x) would have no digits for large x."""
    ops = opset()
    size = ops.absolute(x)
    inverse = ops.divide(scalar(1), ops.add(size, scalar(ERFC_MIDDLE)))
    argument = ops.subtract(scalar(1), ops.multiply(scalar(2 * ERFC_MIDDLE), inverse))
    result = scalar(ERFC_FLOAT[-1])
    for coefficient in ERFC_FLOAT[-2::-1]:
        result = ops.add(ops.multiply(result, argument), scalar(coefficient))
    power = ops.exp(ops.negative(ops.multiply(size, size)))
    result = ops.multiply(ops.multiply(result, inverse), power)
    is_negative = ops.less(x, scalar(0))
    return ops.select(is_negative, ops.subtract(scalar(2), result), result)
