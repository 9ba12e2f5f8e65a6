"""Gradients of sums and products that run along an axis."""

from typing import Any

import opkernel.gradients as g
from opkernel.graph import constant


@g.register_gradient("Cumsum")
def cumsum_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Cumsum(grad, op.inputs[1], **_backwards(op)), None


@g.register_gradient("Cumprod")
def cumprod_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, axis = op.inputs
    weighted = g.nodes.Mul(op.outputs[0], grad)
    return g.nodes.DivNoNan(g.nodes.Cumsum(weighted, axis, **_backwards(op)), x), None


@g.register_gradient("CumulativeLogsumexp")
def cumulative_logsumexp_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """As sums of logarithms, by themselves for gradients above and below zero."""
    x, axis = op.inputs
    lowest = constant(grad.dtype.min, grad.dtype)

    def part(is_in: g.Tensor, size: g.Tensor) -> Any:
        log = g.nodes.SelectV2(is_in, g.nodes.Log(size), lowest)
        relative = g.nodes.Sub(log, op.outputs[0])
        total = g.nodes.CumulativeLogsumexp(relative, axis, **_backwards(op))
        return g.nodes.Exp(g.nodes.AddV2(total, x))

    above = part(g.nodes.Greater(grad, 0), grad)
    below = part(g.nodes.Less(grad, 0), g.nodes.Neg(grad))
    return g.nodes.Sub(above, below), None


def _backwards(op: g.Operation) -> dict[str, bool]:
    """The attrs of the scan in the other direction."""
    return {"exclusive": op.get_attr("exclusive"), "reverse": not op.get_attr("reverse")}
