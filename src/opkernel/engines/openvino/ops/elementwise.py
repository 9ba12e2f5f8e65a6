"""Arithmetic, functions and comparisons of each element, with broadcasting."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import BOOL, openvino_op
from opkernel.engines.openvino.tensors import scalar

_UNARY = {
    "Abs": "absolute",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceiling",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Neg": "negative",
    "Sign": "sign",
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
    "FloorMod": "floor_mod",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mod": "mod",
    "Mul": "multiply",
    "Pow": "power",
    "RealDiv": "divide",
    "SquaredDifference": "squared_difference",
    "Sub": "subtract",
}
_COMPARISONS = {
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Less": "less",
    "LessEqual": "less_equal",
}


def _calls(name: str) -> Callable[..., Any]:
    """The builder that calls a function of the opset with the inputs."""

    def build(*inputs: Any) -> Any:
        return getattr(opset(), name)(*inputs)

    return build


for _op, _name in (_UNARY | _BINARY).items():
    openvino_op(_op)(_calls(_name))
for _op, _name in _COMPARISONS.items():
    openvino_op(_op, types={"z": BOOL})(_calls(_name))


@openvino_op("Equal", "NotEqual", types={"z": BOOL})
def equal(x: Any, y: Any) -> Any:
    return opset().equal(x, y)


@openvino_op("NotEqual", types={"z": BOOL})
def not_equal(x: Any, y: Any) -> Any:
    return opset().not_equal(x, y)


@openvino_op("IsNan", types={"y": BOOL})
def is_nan(x: Any) -> Any:
    return opset().is_nan(x)


@openvino_op("IsInf", types={"y": BOOL})
def is_inf(x: Any) -> Any:
    return opset().is_inf(x)


@openvino_op("IsFinite", types={"y": BOOL})
def is_finite(x: Any) -> Any:
    return opset().is_finite(x)


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
def select_v2(condition: Any, t: Any, e: Any) -> Any:
    return opset().select(condition, t, e)


@openvino_op("AddN")
def add_n(inputs: list[Any]) -> Any:
    return functools.reduce(lambda a, b: opset().add(a, b).output(0), inputs)


@openvino_op("Square")
def square(x: Any) -> Any:
    return opset().multiply(x, x)


@openvino_op("Inv", "Reciprocal")
def reciprocal(x: Any) -> Any:
    return opset().divide(scalar(1), x)


@openvino_op("Rsqrt")
def rsqrt(x: Any) -> Any:
    return opset().divide(scalar(1), opset().sqrt(x))


@openvino_op("Round", "Rint")
def round_(x: Any) -> Any:
    return opset().round(x, "half_to_even")


@openvino_op("ClipByValue")
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    return opset().maximum(opset().minimum(t, clip_value_max), clip_value_min)
