"""Gradients of cross entropies.

The ops give the gradient of the loss with respect to the logits as their second output, which may
be differentiated itself.
"""

from typing import Any

import opkernel.gradients as g


@g.register_gradient(
    "SoftmaxCrossEntropyWithLogits", not_derivative="labels count as probabilities"
)
def softmax_cross_entropy_gradient(
    op: g.Operation, loss_grad: g.Tensor, backprop_grad: g.Tensor | None
) -> g.Gradients:
    log_probabilities = g.nodes.LogSoftmax(op.inputs[0])
    for_labels = _times(loss_grad, g.nodes.Neg(log_probabilities))
    return _for_logits(op, loss_grad, backprop_grad), for_labels


@g.register_gradient("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy_gradient(
    op: g.Operation, loss_grad: g.Tensor, backprop_grad: g.Tensor | None
) -> g.Gradients:
    return _for_logits(op, loss_grad, backprop_grad), None


def _for_logits(op: g.Operation, loss_grad: g.Tensor, backprop_grad: g.Tensor | None) -> Any:
    first = _times(loss_grad, op.outputs[1])
    if g.is_zeros(backprop_grad):
        return first
    softmax = g.nodes.Softmax(op.inputs[0])
    mean = g.nodes.Sum(g.nodes.Mul(backprop_grad, softmax), [-1], keep_dims=True)
    return g.nodes.AddV2(first, g.nodes.Mul(g.nodes.Sub(backprop_grad, mean), softmax))


def _times(vector: g.Tensor, matrix: g.Tensor) -> Any:
    """Each row times an element."""
    return g.nodes.Mul(g.nodes.ExpandDims(vector, -1), matrix)
