"""Gradients of Bessel functions, and of functions that are defined as integrals.

Source: TensorFlow python/ops/math_grad.py.
"""

import math
from collections.abc import Callable
from typing import Any

import opkernel.gradients as g

Derivative = Callable[[g.Tensor, g.Tensor], Any]


def _register(name: str, derivative: Derivative) -> None:
    """The gradient of `y = f(x)` from `(x, y) -> f'(x)`."""

    @g.register_gradient(name)
    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        return g.nodes.Mul(grad, derivative(op.inputs[0], op.outputs[0]))


def _at(point: float, value: float, derivative: Derivative) -> Derivative:
    """A derivative whose formula has no value at a point."""

    def whole(x: g.Tensor, y: g.Tensor) -> Any:
        there = g.nodes.Fill(g.shape_of(x), g.nodes.Cast(value, DstT=x.dtype))
        return g.nodes.SelectV2(g.nodes.Equal(x, point), there, derivative(x, y))

    return whole


def _i1e(x: g.Tensor, y: g.Tensor) -> Any:
    slope = g.nodes.AddV2(g.nodes.Sign(x), g.nodes.Reciprocal(x))
    return g.nodes.Sub(g.nodes.BesselI0e(x), g.nodes.Mul(y, slope))


def _k1e(x: g.Tensor, y: g.Tensor) -> Any:
    scaled = g.nodes.Mul(y, g.nodes.Sub(1, g.nodes.Reciprocal(x)))
    return g.nodes.Sub(scaled, g.nodes.BesselK0e(x))


def _dawson(x: g.Tensor, y: g.Tensor) -> Any:
    return g.nodes.Sub(1, g.nodes.Mul(2, g.nodes.Mul(x, y)))


def _angle(x: g.Tensor) -> Any:
    return g.nodes.Mul(math.pi / 2, g.nodes.Square(x))


def _spence(x: g.Tensor, y: g.Tensor) -> Any:
    return g.nodes.RealDiv(g.nodes.Log(x), g.nodes.Sub(1, x))


_DERIVATIVES: dict[str, Derivative] = {
    "BesselI0": lambda x, y: g.nodes.BesselI1(x),
    "BesselI0e": lambda x, y: g.nodes.Sub(g.nodes.BesselI1e(x), g.nodes.Mul(g.nodes.Sign(x), y)),
    "BesselI1": _at(0, 1, lambda x, y: g.nodes.Sub(g.nodes.BesselI0(x), g.nodes.RealDiv(y, x))),
    "BesselI1e": _at(0, 0.5, _i1e),
    "BesselJ0": lambda x, y: g.nodes.Neg(g.nodes.BesselJ1(x)),
    "BesselJ1": _at(0, 0.5, lambda x, y: g.nodes.Sub(g.nodes.BesselJ0(x), g.nodes.RealDiv(y, x))),
    "BesselK0": lambda x, y: g.nodes.Neg(g.nodes.BesselK1(x)),
    "BesselK0e": lambda x, y: g.nodes.Sub(y, g.nodes.BesselK1e(x)),
    "BesselK1": lambda x, y: g.nodes.Neg(g.nodes.AddV2(g.nodes.BesselK0(x), g.nodes.RealDiv(y, x))),
    "BesselK1e": _k1e,
    "BesselY0": lambda x, y: g.nodes.Neg(g.nodes.BesselY1(x)),
    "BesselY1": lambda x, y: g.nodes.Sub(g.nodes.BesselY0(x), g.nodes.RealDiv(y, x)),
    "Dawsn": _dawson,
    "Expint": lambda x, y: g.nodes.RealDiv(g.nodes.Exp(x), x),
    "FresnelCos": lambda x, y: g.nodes.Cos(_angle(x)),
    "FresnelSin": lambda x, y: g.nodes.Sin(_angle(x)),
    "Spence": _at(1, -1, _spence),
}

for _name, _derivative in _DERIVATIVES.items():
    _register(_name, _derivative)


@g.register_gradient("Betainc", not_derivative="a and b count as constants")
def betainc_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The parameters count as constants."""
    a, b, x = op.inputs
    log_beta = g.nodes.Sub(
        g.nodes.AddV2(g.nodes.Lgamma(a), g.nodes.Lgamma(b)), g.nodes.Lgamma(g.nodes.AddV2(a, b))
    )
    power = g.nodes.AddV2(
        g.nodes.Xlog1py(g.nodes.Sub(b, 1), g.nodes.Neg(x)), g.nodes.Xlogy(g.nodes.Sub(a, 1), x)
    )
    density = g.nodes.Exp(g.nodes.Sub(power, log_beta))
    _, for_x = g.sum_to_operands(a, x, None, g.nodes.Mul(density, grad))
    return None, None, for_x
