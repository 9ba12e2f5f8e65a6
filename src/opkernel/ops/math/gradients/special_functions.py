"""Gradients of the error function, the gamma function and their kin."""

import math
from collections.abc import Callable
from typing import Any

import opkernel.gradients as g


@g.register_gradient("Polygamma", not_derivative="a counts as constant")
def polygamma_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The order counts as constant."""
    a, x = op.inputs
    by_x = g.nodes.Polygamma(g.nodes.AddV2(a, 1), x)
    _, for_x = g.sum_to_operands(a, x, None, g.nodes.Mul(by_x, grad))
    return None, for_x


@g.register_gradient("Zeta", not_derivative="x counts as constant")
def zeta_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The exponent counts as constant."""
    x, q = op.inputs
    by_q = g.nodes.Mul(g.nodes.Neg(x), g.nodes.Zeta(g.nodes.AddV2(x, 1), q))
    _, for_q = g.sum_to_operands(x, q, None, g.nodes.Mul(by_q, grad))
    return None, for_q


@g.register_gradient("Igamma")
def igamma_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, x = op.inputs
    log_power = g.nodes.Mul(g.nodes.Sub(a, 1), g.nodes.Log(x))
    by_x = g.nodes.Exp(g.nodes.Sub(g.nodes.Sub(log_power, x), g.nodes.Lgamma(a)))
    by_a = g.nodes.IgammaGradA(a, x)
    return g.sum_to_operands(a, x, g.nodes.Mul(by_a, grad), g.nodes.Mul(by_x, grad))


@g.register_gradient("Igammac")
def igammac_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    for_a, for_x = igamma_gradient(op, grad)
    return g.nodes.Neg(for_a), g.nodes.Neg(for_x)


_OF_ARGUMENT: dict[str, Callable[[g.Tensor], Any]] = {
    "Erf": lambda x: g.nodes.Mul(
        2 / math.sqrt(math.pi), g.nodes.Exp(g.nodes.Neg(g.nodes.Square(x)))
    ),
    "Erfc": lambda x: g.nodes.Mul(
        -2 / math.sqrt(math.pi), g.nodes.Exp(g.nodes.Neg(g.nodes.Square(x)))
    ),
    "Lgamma": lambda x: g.nodes.Digamma(x),
    "Digamma": lambda x: g.nodes.Polygamma(1, x),
}
"""The derivatives that are computed from the argument."""
_OF_RESULT: dict[str, Callable[[g.Tensor], Any]] = {
    "Erfinv": lambda y: g.nodes.Mul(math.sqrt(math.pi) / 2, g.nodes.Exp(g.nodes.Square(y))),
    "Ndtri": lambda y: g.nodes.Mul(
        math.sqrt(2 * math.pi), g.nodes.Exp(g.nodes.Mul(g.nodes.Square(y), 0.5))
    ),
}
"""The derivatives that are computed from the result."""

for _name, _derivative in _OF_ARGUMENT.items():
    g.register_gradient(_name)(g.of_argument(_derivative))
for _name, _derivative in _OF_RESULT.items():
    g.register_gradient(_name)(g.of_result(_derivative))
