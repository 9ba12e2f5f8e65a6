"""Gradients of trigonometric and hyperbolic functions and their inverses."""

from typing import Any

import opkernel.gradients as g


@g.register_gradient("Sin")
@g.of_argument
def sin_derivative(x: g.Tensor) -> Any:
    return g.nodes.Cos(x)


@g.register_gradient("Cos")
@g.of_argument
def cos_derivative(x: g.Tensor) -> Any:
    return g.nodes.Neg(g.nodes.Sin(x))


@g.register_gradient("Tan")
@g.of_argument
def tan_derivative(x: g.Tensor) -> Any:
    return g.nodes.Square(g.nodes.Reciprocal(g.nodes.Cos(x)))


@g.register_gradient("Asin")
@g.of_argument
def asin_derivative(x: g.Tensor) -> Any:
    return g.nodes.Reciprocal(g.nodes.Sqrt(_one_minus_square(x)))


@g.register_gradient("Acos")
@g.of_argument
def acos_derivative(x: g.Tensor) -> Any:
    return g.nodes.Neg(g.nodes.Reciprocal(g.nodes.Sqrt(_one_minus_square(x))))


@g.register_gradient("Atan")
@g.of_argument
def atan_derivative(x: g.Tensor) -> Any:
    return g.nodes.Reciprocal(g.nodes.AddV2(1, g.nodes.Square(x)))


@g.register_gradient("Sinh")
@g.of_argument
def sinh_derivative(x: g.Tensor) -> Any:
    return g.nodes.Cosh(x)


@g.register_gradient("Cosh")
@g.of_argument
def cosh_derivative(x: g.Tensor) -> Any:
    return g.nodes.Sinh(x)


@g.register_gradient("Tanh")
def tanh_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.TanhGrad(g.conj(op.outputs[0]), grad)


@g.register_gradient("Asinh")
@g.of_result
def asinh_derivative(y: g.Tensor) -> Any:
    return g.nodes.Reciprocal(g.nodes.Cosh(y))


@g.register_gradient("Acosh")
@g.of_result
def acosh_derivative(y: g.Tensor) -> Any:
    return g.nodes.Reciprocal(g.nodes.Sinh(y))


@g.register_gradient("Atanh")
@g.of_argument
def atanh_derivative(x: g.Tensor) -> Any:
    return g.nodes.Reciprocal(_one_minus_square(x))


@g.register_gradient("Atan2")
def atan2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    y, x = op.inputs
    part = g.nodes.RealDiv(grad, g.nodes.AddV2(g.nodes.Square(y), g.nodes.Square(x)))
    return g.sum_to_operands(y, x, g.nodes.Mul(x, part), g.nodes.Mul(g.nodes.Neg(y), part))


def _one_minus_square(x: g.Tensor) -> Any:
    return g.nodes.Sub(1, g.nodes.Square(x))
