"""Gradients of trigonometric and hyperbolic functions and their inverses."""

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g


@g.register_gradient("Tanh")
def tanh_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.TanhGrad(g.conj(op.outputs[0]), grad)


@g.register_gradient("Atan2")
def atan2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    y, x = op.inputs
    part = g.nodes.RealDiv(grad, g.nodes.AddV2(g.nodes.Square(y), g.nodes.Square(x)))
    return g.sum_to_operands(y, x, g.nodes.Mul(x, part), g.nodes.Mul(g.nodes.Neg(y), part))


def _one_minus_square(x: g.Tensor) -> Any:
    return g.nodes.Sub(1, g.nodes.Square(x))


_OF_ARGUMENT: dict[str, Callable[[g.Tensor], Any]] = {
    "Sin": lambda x: g.nodes.Cos(x),
    "Cos": lambda x: g.nodes.Neg(g.nodes.Sin(x)),
    "Tan": lambda x: g.nodes.Square(g.nodes.Reciprocal(g.nodes.Cos(x))),
    "Asin": lambda x: g.nodes.Reciprocal(g.nodes.Sqrt(_one_minus_square(x))),
    "Acos": lambda x: g.nodes.Neg(g.nodes.Reciprocal(g.nodes.Sqrt(_one_minus_square(x)))),
    "Atan": lambda x: g.nodes.Reciprocal(g.nodes.AddV2(1, g.nodes.Square(x))),
    "Sinh": lambda x: g.nodes.Cosh(x),
    "Cosh": lambda x: g.nodes.Sinh(x),
    "Atanh": lambda x: g.nodes.Reciprocal(_one_minus_square(x)),
}
"""The derivatives that are computed from the argument."""
_OF_RESULT: dict[str, Callable[[g.Tensor], Any]] = {
    "Asinh": lambda y: g.nodes.Reciprocal(g.nodes.Cosh(y)),
    "Acosh": lambda y: g.nodes.Reciprocal(g.nodes.Sinh(y)),
}
"""The derivatives that are computed from the result."""

for _name, _derivative in _OF_ARGUMENT.items():
    g.register_gradient(_name)(g.of_argument(_derivative))
for _name, _derivative in _OF_RESULT.items():
    g.register_gradient(_name)(g.of_result(_derivative))
