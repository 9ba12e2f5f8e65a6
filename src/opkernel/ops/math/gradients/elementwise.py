"""Gradients of arithmetic, of elementary functions and of complex numbers.

Where a function has a derivative by itself it stands in a table: by its argument or by its result.
"""

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g
from opkernel.ops.registration import COMPLEX_OF

n = g.nodes

_CONJUGATES = "it leaves out the conjugates of complex numbers"


def _one_minus_square(x: g.Tensor) -> Any:
    return n.Sub(1, n.Square(x))


_BY_ARGUMENT: dict[str, Callable[[g.Tensor], Any]] = {
    "Abs": lambda x: n.Sign(x),
    "Square": lambda x: n.Mul(x, 2),
    "Expm1": lambda x: n.Exp(x),
    "Log": lambda x: n.Reciprocal(x),
    "Log1p": lambda x: n.Reciprocal(n.AddV2(1, x)),
    "Sin": lambda x: n.Cos(x),
    "Cos": lambda x: n.Neg(n.Sin(x)),
    "Tan": lambda x: n.Square(n.Reciprocal(n.Cos(x))),
    "Asin": lambda x: n.Reciprocal(n.Sqrt(_one_minus_square(x))),
    "Acos": lambda x: n.Neg(n.Reciprocal(n.Sqrt(_one_minus_square(x)))),
    "Atan": lambda x: n.Reciprocal(n.AddV2(1, n.Square(x))),
    "Sinh": lambda x: n.Cosh(x),
    "Cosh": lambda x: n.Sinh(x),
    "Atanh": lambda x: n.Reciprocal(_one_minus_square(x)),
}
_BY_RESULT: dict[str, Callable[[g.Tensor], Any]] = {
    "Exp": lambda y: y,
    "Asinh": lambda y: n.Reciprocal(n.Cosh(y)),
    "Acosh": lambda y: n.Reciprocal(n.Sinh(y)),
}
for _name, _derivative in _BY_ARGUMENT.items():
    g.register_gradient(_name)(g.of_argument(_derivative))
for _name, _derivative in _BY_RESULT.items():
    g.register_gradient(_name)(g.of_result(_derivative))

g.register_gradient("AddN", "AccumulateNV2")(lambda op, grad: [grad] * len(op.inputs))
g.register_gradient("Neg")(lambda op, grad: n.Neg(grad))
g.register_gradient("Sign", not_derivative="it is zero for complex numbers, too")(
    lambda op, grad: g.zeros_like(op.inputs[0])
)
g.register_gradient("Inv", "Reciprocal")(lambda op, grad: n.ReciprocalGrad(op.outputs[0], grad))
g.register_gradient("Sqrt")(lambda op, grad: n.SqrtGrad(op.outputs[0], grad))
g.register_gradient("Rsqrt")(lambda op, grad: n.RsqrtGrad(op.outputs[0], grad))
g.register_gradient("Sigmoid")(lambda op, grad: n.SigmoidGrad(g.conj(op.outputs[0]), grad))
g.register_gradient("Tanh")(lambda op, grad: n.TanhGrad(g.conj(op.outputs[0]), grad))
g.register_gradient("FloorDiv", "TruncateDiv")(lambda op, grad: (None, None))


# Functions of two operands that are broadcast

OfOperands = Callable[[g.Tensor, g.Tensor, g.Tensor], tuple[Any, Any]]
"""The gradients of two operands, from these and the gradient of the result, before sums."""


def _of_quotient(divide: Callable[..., Any]) -> OfOperands:
    def gradients(x: g.Tensor, y: g.Tensor, grad: g.Tensor) -> tuple[Any, Any]:
        by = g.conj(y)
        for_y = n.Mul(grad, divide(divide(n.Neg(g.conj(x)), by), by))
        return divide(grad, by), for_y

    return gradients


def _of_the_chosen(is_first: Callable[..., Any]) -> OfOperands:
    """Of an op that chooses one of its operands; the first where equal."""

    def gradients(x: g.Tensor, y: g.Tensor, grad: g.Tensor) -> tuple[Any, Any]:
        chosen, zeros = is_first(x, y), g.zeros_like(grad)
        return n.SelectV2(chosen, grad, zeros), n.SelectV2(chosen, zeros, grad)

    return gradients


def _of_squared_difference(x: g.Tensor, y: g.Tensor, grad: g.Tensor) -> tuple[Any, Any]:
    for_x = n.Mul(n.Mul(2, grad), n.Sub(x, y))
    return for_x, n.Neg(for_x)


def _of_angle(y: g.Tensor, x: g.Tensor, grad: g.Tensor) -> tuple[Any, Any]:
    part = n.RealDiv(grad, n.AddV2(n.Square(y), n.Square(x)))
    return n.Mul(x, part), n.Mul(n.Neg(y), part)


def _weighted(derivatives: Callable[[g.Tensor, g.Tensor], tuple[Any, Any]]) -> OfOperands:
    """By the derivatives with respect to both operands."""

    def gradients(x: g.Tensor, y: g.Tensor, grad: g.Tensor) -> tuple[Any, Any]:
        by_x, by_y = derivatives(x, y)
        return n.Mul(by_x, grad), n.Mul(by_y, grad)

    return gradients


def _is_not_zero(x: g.Tensor) -> Any:
    """1 where `x` is not 0, in the type of `x`."""
    return n.Cast(n.NotEqual(x, 0), DstT=x.dtype)


_OF_OPERANDS: dict[str, OfOperands] = {
    "Add": lambda x, y, grad: (grad, grad),
    "AddV2": lambda x, y, grad: (grad, grad),
    "Sub": lambda x, y, grad: (grad, n.Neg(grad)),
    "Mul": lambda x, y, grad: (n.Mul(grad, g.conj(y)), n.Mul(g.conj(x), grad)),
    "Div": _of_quotient(n.Div),
    "RealDiv": _of_quotient(n.RealDiv),
    "DivNoNan": _of_quotient(n.DivNoNan),
    "FloorMod": lambda x, y, grad: (
        grad,
        n.Mul(grad, n.Neg(n.FloorDiv(g.conj(x), g.conj(y)))),
    ),
    "Maximum": _of_the_chosen(n.GreaterEqual),
    "Minimum": _of_the_chosen(n.LessEqual),
    "Atan2": _of_angle,
    "Complex": lambda real, imag, grad: (
        n.Real(grad, Tout=real.dtype.base),
        n.Imag(grad, Tout=real.dtype.base),
    ),
}
_OF_OPERANDS_WITHOUT_CONJUGATES: dict[str, OfOperands] = {
    "MulNoNan": lambda x, y, grad: (n.MulNoNan(grad, y), n.MulNoNan(x, grad)),
    "SquaredDifference": _of_squared_difference,
    "Xdivy": _weighted(lambda x, y: (n.Xdivy(_is_not_zero(x), y), n.Xdivy(n.Neg(x), n.Square(y)))),
    "Xlogy": _weighted(lambda x, y: (n.Xlogy(_is_not_zero(x), y), n.Xdivy(x, y))),
    "Xlog1py": _weighted(lambda x, y: (n.Xlog1py(_is_not_zero(x), y), n.Xdivy(x, n.AddV2(y, 1)))),
}
for _name, _gradients in _OF_OPERANDS.items():
    g.register_gradient(_name)(g.of_operands(_gradients))
for _name, _gradients in _OF_OPERANDS_WITHOUT_CONJUGATES.items():
    g.register_gradient(_name, not_derivative=_CONJUGATES)(g.of_operands(_gradients))


@g.register_gradient("Pow")
def pow_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    base, exponent = g.conj(x), g.conj(y)
    by_x = n.Mul(exponent, n.Pow(base, n.Sub(exponent, 1)))
    by_y = n.Mul(g.conj(op.outputs[0]), _log_or_zero(base))
    return g.sum_to_operands(x, y, n.Mul(grad, by_x), n.Mul(grad, by_y))


def _log_or_zero(x: g.Tensor) -> Any:
    """The logarithm; 0 for numbers without one."""
    has_log = n.NotEqual(x, 0) if x.dtype.is_complex else n.Greater(x, 0)
    log = n.Log(n.Select(has_log, x, g.ones_like(x)))
    return n.Select(has_log, log, g.zeros_like(x))


# Complex numbers and their parts

g.register_gradient("Conj")(lambda op, grad: n.Conj(grad))
g.register_gradient("Real")(lambda op, grad: _complex(grad, 0))
g.register_gradient("Imag")(lambda op, grad: _complex(0, grad))


@g.register_gradient("Angle")
def angle_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    (x,) = op.inputs
    parts = {"Tout": op.outputs[0].dtype}
    turned = _complex(n.Imag(x, **parts), n.Real(x, **parts))
    return n.Mul(n.Neg(_complex(grad, 0)), n.Reciprocal(turned))


@g.register_gradient("ComplexAbs")
def complex_abs_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    weighted = n.Mul(_complex(grad, g.zeros_like(grad)), op.inputs[0])
    return n.DivNoNan(weighted, _complex(op.outputs[0], g.zeros_like(grad)))


def _complex(real: Any, imag: Any) -> Any:
    part = real if isinstance(real, g.Tensor) else imag
    return n.Complex(real, imag, Tout=COMPLEX_OF[part.dtype.base])
