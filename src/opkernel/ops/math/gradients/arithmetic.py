"""Gradients of sums, products and the like."""

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g


@g.register_gradient("Add", "AddV2")
def add_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    return g.sum_to_operands(x, y, grad, grad)


@g.register_gradient("Sub")
def sub_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    return g.sum_to_operands(x, y, grad, g.nodes.Neg(grad))


@g.register_gradient("Mul")
def mul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    return g.sum_to_operands(x, y, g.nodes.Mul(grad, g.conj(y)), g.nodes.Mul(g.conj(x), grad))


@g.register_gradient("MulNoNan", not_derivative="it leaves out the conjugates of complex numbers")
def mul_no_nan_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    return g.sum_to_operands(x, y, g.nodes.MulNoNan(grad, y), g.nodes.MulNoNan(x, grad))


@g.register_gradient("AddN", "AccumulateNV2")
def add_n_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return [grad] * len(op.inputs)


@g.register_gradient("Neg")
def neg_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Neg(grad)


@g.register_gradient("Abs")
@g.of_argument
def abs_derivative(x: g.Tensor) -> Any:
    return g.nodes.Sign(x)


@g.register_gradient("Sign", not_derivative="it is zero for complex numbers, too")
def sign_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.zeros_like(op.inputs[0])


@g.register_gradient("Square")
@g.of_argument
def square_derivative(x: g.Tensor) -> Any:
    return g.nodes.Mul(x, 2)


@g.register_gradient(
    "SquaredDifference", not_derivative="it leaves out the conjugates of complex numbers"
)
def squared_difference_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    for_x = g.nodes.Mul(g.nodes.Mul(2, grad), g.nodes.Sub(x, y))
    return g.sum_to_operands(x, y, for_x, g.nodes.Neg(for_x))


def _of_the_chosen(is_first: Callable[..., Any]) -> g.GradientFunction:
    """The gradient function of an op that chooses one of its operands; the first where equal."""

    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        x, y = op.inputs
        chosen, zeros = is_first(x, y), g.zeros_like(grad)
        for_x, for_y = g.nodes.SelectV2(chosen, grad, zeros), g.nodes.SelectV2(chosen, zeros, grad)
        return g.sum_to_operands(x, y, for_x, for_y)

    return gradient


g.register_gradient("Maximum")(_of_the_chosen(g.nodes.GreaterEqual))
g.register_gradient("Minimum")(_of_the_chosen(g.nodes.LessEqual))
