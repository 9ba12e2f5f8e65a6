"""Gradients of quotients."""

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g


def _of_quotient(divide: Callable[..., Any]) -> g.GradientFunction:
    """The gradient function of `divide(x, y)`."""

    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        x, y = op.inputs
        by = g.conj(y)
        for_y = g.nodes.Mul(grad, divide(divide(g.nodes.Neg(g.conj(x)), by), by))
        return g.sum_to_operands(x, y, divide(grad, by), for_y)

    return gradient


g.register_gradient("Div")(_of_quotient(g.nodes.Div))
g.register_gradient("RealDiv")(_of_quotient(g.nodes.RealDiv))
g.register_gradient("DivNoNan")(_of_quotient(g.nodes.DivNoNan))


@g.register_gradient("Xdivy", not_derivative="it leaves out the conjugates of complex numbers")
def xdivy_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    by_x = g.nodes.Xdivy(is_not_zero(x), y)
    by_y = g.nodes.Xdivy(g.nodes.Neg(x), g.nodes.Square(y))
    return g.sum_to_operands(x, y, g.nodes.Mul(by_x, grad), g.nodes.Mul(by_y, grad))


def is_not_zero(x: g.Tensor) -> Any:
    """1 where `x` is not 0, in the type of `x`."""
    return g.nodes.Cast(g.nodes.NotEqual(x, 0), DstT=x.dtype)


@g.register_gradient("Inv", "Reciprocal")
def reciprocal_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.ReciprocalGrad(op.outputs[0], grad)


@g.register_gradient("FloorMod")
def floor_mod_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, y = op.inputs
    times = g.nodes.FloorDiv(g.conj(x), g.conj(y))
    return g.sum_to_operands(x, y, grad, g.nodes.Mul(grad, g.nodes.Neg(times)))


@g.register_gradient("FloorDiv", "TruncateDiv")
def integer_quotient_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return None, None
