"""Arithmetic, activations, functions and comparisons of each element, with broadcasting; products fuse with activations, too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import BOOL, openvino_op
from opkernel.engines.openvino.tensors import hoist_transposes, reshaped, scalar, shape_of
from opkernel.ops.math.error_functions import ERFC_FLOAT, ERFC_MIDDLE
from opkernel.types import DataType

__all__ = ["ACTIVATIONS"]


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
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "Equal": lambda x, y: opset().equal(x, y),
    "Greater": lambda x, y: opset().less(y, x),  # OpenVINO's own calls NaN greater than all
    "GreaterEqual": lambda x, y: opset().less_equal(y, x),
    "IsInf": lambda x: opset().is_inf(x),
    "IsNan": lambda x: opset().is_nan(x),
    "Less": lambda x, y: opset().less(x, y),
    "LessEqual": lambda x, y: opset().less_equal(x, y),
    "NotEqual": lambda x, y: opset().not_equal(x, y),
}
_LOGICAL = {"LogicalAnd": "logical_and", "LogicalNot": "logical_not", "LogicalOr": "logical_or"}
_COMPOSED: dict[str, Callable[..., Any]] = {
    "Inv": lambda x: opset().divide(scalar(1), x),
    "Reciprocal": lambda x: opset().divide(scalar(1), x),
    "Rint": lambda x: opset().round(x, "half_to_even"),
    "Round": lambda x: opset().round(x, "half_to_even"),
    "Rsqrt": lambda x: opset().divide(scalar(1), opset().sqrt(x)),
    "Square": lambda x: opset().multiply(x, x),
}


def _calls(name: str) -> Callable[..., Any]:
    """The builder that calls a function of the opset with the inputs."""
    return hoist_transposes(lambda *inputs: getattr(opset(), name)(*inputs))


for _op, _name in (_UNARY | _BINARY).items():
    openvino_op(_op, differs_for_non_finite=_op in _DIFFERING)(_calls(_name))
for _op, _name in _LOGICAL.items():
    openvino_op(_op, types={"x": BOOL, "y": BOOL, "z": BOOL})(_calls(_name))
for _op, _build in _COMPARISONS.items():
    openvino_op(_op, types={"y" if _op in ("IsInf", "IsNan") else "z": BOOL})(
        hoist_transposes(_build)
    )
for _op, _build in _COMPOSED.items():
    openvino_op(_op)(hoist_transposes(_build))


@openvino_op("SelectV2", types={"condition": BOOL})
@hoist_transposes
def select_v2(condition: Any, t: Any, e: Any) -> Any:
    return opset().select(condition, t, e)


@openvino_op("AddN")
def add_n(inputs: list[Any]) -> Any:
    return functools.reduce(_calls("add"), inputs)


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


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805

_DIFFERING_FOR_NAN = frozenset({"Relu", "Relu6"})
_FUNCTIONS = {
    "Elu": hoist_transposes(lambda x: opset().elu(x, 1.0)),
    "Relu": hoist_transposes(lambda x: opset().relu(x)),
    "Relu6": hoist_transposes(lambda x: opset().clamp(x, 0.0, 6.0)),
    "Selu": hoist_transposes(lambda x: opset().selu(x, scalar(_SELU_ALPHA), scalar(_SELU_SCALE))),
    "Sigmoid": hoist_transposes(lambda x: opset().sigmoid(x)),
    "Softplus": hoist_transposes(lambda x: opset().softplus(x)),
    "Softsign": hoist_transposes(lambda x: opset().softsign(x)),
}

for _op, _build in _FUNCTIONS.items():
    openvino_op(_op, differs_for_non_finite=_op in _DIFFERING_FOR_NAN)(_build)


@openvino_op("LeakyRelu")
@hoist_transposes
def leaky_relu(features: Any, *, alpha: float) -> Any:
    return opset().prelu(features, scalar(alpha))


ACTIVATIONS: dict[str, Callable[[Any, float], Any]] = {
    "": lambda x, _: x,
    "Relu": lambda x, _: _FUNCTIONS["Relu"](x),
    "Relu6": lambda x, _: _FUNCTIONS["Relu6"](x),
    "Elu": lambda x, _: _FUNCTIONS["Elu"](x),
    "LeakyRelu": lambda x, alpha: leaky_relu(x, alpha=alpha),
    "Tanh": lambda x, _: opset().tanh(x),
    "Sigmoid": lambda x, _: _FUNCTIONS["Sigmoid"](x),
    "GeluExact": lambda x, _: opset().gelu(x, "erf"),
    "GeluApproximate": lambda x, _: opset().gelu(x, "tanh"),
}
"""What fused ops name, as a function of a tensor and the slope of LeakyRelu below 0."""
