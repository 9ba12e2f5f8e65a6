"""Gradients of the ops that give gradients of maximum pooling: second derivatives.

These ops are linear in the incoming gradient. Their other inputs only tell which elements were the
largest, and small changes of the inputs do not change that.
"""

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g

_ATTRS = ("ksize", "strides", "padding", "data_format")


def _linear(back: Callable[..., Any]) -> g.GradientFunction:
    """The gradient function from the op that takes a gradient the other way."""

    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        before, after, _ = op.inputs
        for_grad = back(before, after, grad, **g.attrs_of(op, *_ATTRS))
        return g.zeros_like(before), g.zeros_like(after), for_grad

    return gradient


_OF_POOLING = "orig_output counts as that of orig_input"
for _op, _back in (
    ("MaxPoolGrad", g.nodes.MaxPoolGradGrad),
    ("MaxPoolGradGrad", g.nodes.MaxPoolGrad),
    ("MaxPool3DGrad", g.nodes.MaxPool3DGradGrad),
    ("MaxPool3DGradGrad", g.nodes.MaxPool3DGrad),
):
    g.register_gradient(_op, not_derivative=_OF_POOLING)(_linear(_back))


@g.register_gradient("MaxPoolGradV2", not_derivative=_OF_POOLING)
def max_pool_grad_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    before, after, _, *window = op.inputs
    attrs = g.attrs_of(op, "padding", "data_format")
    for_grad = g.nodes.MaxPoolGradGradV2(before, after, grad, *window, **attrs)
    return g.zeros_like(before), g.zeros_like(after), for_grad, None, None
