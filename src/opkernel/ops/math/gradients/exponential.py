"""Gradients of powers, exponentials and logarithms."""

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g
from opkernel.ops.math.gradients.division import is_not_zero


@g.register_gradient("Sigmoid")
def sigmoid_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SigmoidGrad(g.conj(op.outputs[0]), grad)


@g.register_gradient("Sqrt")
def sqrt_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SqrtGrad(op.outputs[0], grad)


@g.register_gradient("Rsqrt")
def rsqrt_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.RsqrtGrad(op.outputs[0], grad)


@g.register_gradient("Pow")
def pow_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    base, exponent = g.conj(x), g.conj(y)
    by_x = g.nodes.Mul(exponent, g.nodes.Pow(base, g.nodes.Sub(exponent, 1)))
    by_y = g.nodes.Mul(g.conj(op.outputs[0]), _log_or_zero(base))
    return g.sum_to_operands(x, y, g.nodes.Mul(grad, by_x), g.nodes.Mul(grad, by_y))


def _log_or_zero(x: g.Tensor) -> Any:
    """The logarithm; 0 for numbers without one."""
    has_log = g.nodes.NotEqual(x, 0) if x.dtype.is_complex else g.nodes.Greater(x, 0)
    log = g.nodes.Log(g.nodes.Select(has_log, x, g.ones_like(x)))
    return g.nodes.Select(has_log, log, g.zeros_like(x))


@g.register_gradient("Xlogy", not_derivative="it leaves out the conjugates of complex numbers")
def xlogy_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    by_x, by_y = g.nodes.Xlogy(is_not_zero(x), y), g.nodes.Xdivy(x, y)
    return g.sum_to_operands(x, y, g.nodes.Mul(by_x, grad), g.nodes.Mul(by_y, grad))


@g.register_gradient("Xlog1py", not_derivative="it leaves out the conjugates of complex numbers")
def xlog1py_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    by_x, by_y = g.nodes.Xlog1py(is_not_zero(x), y), g.nodes.Xdivy(x, g.nodes.AddV2(y, 1))
    return g.sum_to_operands(x, y, g.nodes.Mul(by_x, grad), g.nodes.Mul(by_y, grad))


_OF_ARGUMENT: dict[str, Callable[[g.Tensor], Any]] = {
    "Expm1": lambda x: g.nodes.Exp(x),
    "Log": lambda x: g.nodes.Reciprocal(x),
    "Log1p": lambda x: g.nodes.Reciprocal(g.nodes.AddV2(1, x)),
}
"""The derivatives that are computed from the argument."""
_OF_RESULT: dict[str, Callable[[g.Tensor], Any]] = {
    "Exp": lambda y: y,
}
"""The derivatives that are computed from the result."""

for _name, _derivative in _OF_ARGUMENT.items():
    g.register_gradient(_name)(g.of_argument(_derivative))
for _name, _derivative in _OF_RESULT.items():
    g.register_gradient(_name)(g.of_result(_derivative))
