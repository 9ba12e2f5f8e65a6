"""Gradients of the error function, the gamma function and their kin."""

import math
from typing import Any

import opkernel.gradients as g


@g.register_gradient("Erf")
@g.of_argument
def erf_derivative(x: g.Tensor) -> Any:
    return g.nodes.Mul(2 / math.sqrt(math.pi), g.nodes.Exp(g.nodes.Neg(g.nodes.Square(x))))


@g.register_gradient("Erfc")
@g.of_argument
def erfc_derivative(x: g.Tensor) -> Any:
    return g.nodes.Mul(-2 / math.sqrt(math.pi), g.nodes.Exp(g.nodes.Neg(g.nodes.Square(x))))


@g.register_gradient("Erfinv")
@g.of_result
def erfinv_derivative(y: g.Tensor) -> Any:
    return g.nodes.Mul(math.sqrt(math.pi) / 2, g.nodes.Exp(g.nodes.Square(y)))


@g.register_gradient("Ndtri")
@g.of_result
def ndtri_derivative(y: g.Tensor) -> Any:
    return g.nodes.Mul(math.sqrt(2 * math.pi), g.nodes.Exp(g.nodes.Mul(g.nodes.Square(y), 0.5)))


@g.register_gradient("Lgamma")
@g.of_argument
def lgamma_derivative(x: g.Tensor) -> Any:
    return g.nodes.Digamma(x)


@g.register_gradient("Digamma")
@g.of_argument
def digamma_derivative(x: g.Tensor) -> Any:
    return g.nodes.Polygamma(1, x)


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
