"""Gradient functions of ops with one input and one output, element by element, from derivatives."""

import functools
from collections.abc import Callable
from typing import Any

from opkernel.gradients.node_methods import conj, nodes
from opkernel.gradients.registry import GradientFunction, Gradients
from opkernel.graph import Operation, Tensor

Derivative = Callable[[Tensor], Any]


def of_argument(derivative: Derivative) -> GradientFunction:
    """The gradient function of `y = f(x)` from `x -> f'(x)`."""

    @functools.wraps(derivative)
    def gradient(op: Operation, grad: Tensor) -> Gradients:
        return nodes.Mul(grad, derivative(conj(op.inputs[0])))

    return gradient


def of_result(derivative: Derivative) -> GradientFunction:
    """The gradient function of `y = f(x)` from `y -> f'(x)`."""

    @functools.wraps(derivative)
    def gradient(op: Operation, grad: Tensor) -> Gradients:
        return nodes.Mul(grad, derivative(conj(op.outputs[0])))

    return gradient
