"""Losses of logits: cross entropy of the softmax with labels, and its gradient.

The ops give the gradient of the loss with respect to the logits as their second output. That of cross
entropy may be differentiated itself.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/xent_op.cc, sparse_xent_op.cc.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_output_shape
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import (
    broadcast_shape,
    require_rank,
    require_vector,
)
from opkernel.ops.nn.softmax import shifted_exponentials, sum_along_last
from opkernel.ops.registration import FLOATS, INDEX, register_kernel

_FLOAT_SPEC = "T: {half, bfloat16, float, double}"


def softmax_cross_entropy_shape(c: InferenceContext) -> None:
    """Logits and labels are matrices, or broadcast to one; the loss has one entry a row."""
    try:
        backprop = c.merge(c.with_rank(c.input(0), 2), c.input(1))
    except InvalidArgumentError:
        backprop = broadcast_binary_op_output_shape(c, c.input(0), c.input(1))
        if c.rank(backprop) != 2:
            rank = c.rank(backprop) if c.rank_known(backprop) else "unknown"
            raise InvalidArgumentError(
                f"Shape must be broadcasted with rank 2, but is rank is {rank}."
            ) from None
    c.set_output(0, c.vector(c.dim(backprop, 0)))
    c.set_output(1, backprop)
    if not (c.fully_defined(c.input(0)) and c.fully_defined(c.input(1))):
        c.doubt_output(0)  # what merges may yet be broadcast
        c.doubt_output(1)


SOFTMAX_CROSS_ENTROPY = register_op(
    "SoftmaxCrossEntropyWithLogits(features: T, labels: T) -> loss: T, backprop: T",
    attrs=[_FLOAT_SPEC],
    shape_fn=softmax_cross_entropy_shape,
    doc="""The cross entropy of each row of softmax(features) with the same row of `labels`.

    features: Logits, [batch, classes].
    labels: A distribution for each row; features and labels may be broadcast to a matrix.
    loss: [batch].
    backprop: softmax(features) - labels, [batch, classes].
    """,
)

SPARSE_SOFTMAX_CROSS_ENTROPY = register_op(
    "SparseSoftmaxCrossEntropyWithLogits(features: T, labels: Tlabels) -> loss: T, backprop: T",
    attrs=[_FLOAT_SPEC, "Tlabels: {int32, int64} = DT_INT64"],
    shape_fn=shape_rule("[batch, classes], [batch] -> [batch], [batch, classes]"),
    doc="""The cross entropy of each row of softmax(features) with the certainty of one class.

    features: Logits, [batch, classes].
    labels: The class of each row, [batch].
    loss: [batch].
    backprop: softmax(features), less 1 at the label, [batch, classes].
    """,
)


@register_kernel(SOFTMAX_CROSS_ENTROPY, types={"T": FLOATS})
def softmax_cross_entropy(features: Any, labels: Any, *, xp: Any) -> tuple[Any, Any]:
    """Where a probability and its label are 0 the loss is NaN, as in TensorFlow."""
    features, labels = _matrices(features, labels, xp)
    if features.size == 0:
        return xp.zeros(features.shape[:1], dtype=features.dtype), features + labels
    shifted, exponentials, sums = shifted_exponentials(features, xp)
    loss = sum_along_last(labels * (xp.log(sums) - shifted), xp)[:, 0]
    return loss, exponentials / sums - labels


@register_kernel(SPARSE_SOFTMAX_CROSS_ENTROPY, types={"T": FLOATS, "Tlabels": INDEX})
def sparse_softmax_cross_entropy(features: Any, labels: Any, *, xp: Any) -> tuple[Any, Any]:
    _check_sparse(features, labels)
    if features.size == 0:
        return xp.zeros(labels.shape, dtype=features.dtype), xp.zeros_like(features)
    shifted, exponentials, sums = shifted_exponentials(features, xp)
    if xp is np:
        _check_labels(labels, features.shape[1])
        at_label = np.arange(len(labels)), labels
        backprop = exponentials / sums
        backprop[at_label] -= features.dtype.type(1)
        return np.log(sums[:, 0]) - shifted[at_label], backprop
    is_label = labels[:, None] == xp.arange(features.shape[1], dtype=labels.dtype)
    label_logits = xp.sum(xp.where(is_label, shifted, xp.zeros_like(shifted)), axis=1)
    loss = xp.log(sums[:, 0]) - label_logits
    return loss, exponentials / sums - is_label.astype(features.dtype)


def _matrices(features: Any, labels: Any, xp: Any) -> tuple[Any, Any]:
    """Features and labels broadcast to one matrix shape."""
    message = "logits and labels must be broadcastable: logits_size={} labels_size={}"
    shape = broadcast_shape([*features.shape], [*labels.shape], message)
    if len(shape) != 2:
        raise InvalidArgumentError(
            "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional; "
            f"got {list(features.shape)} and {list(labels.shape)}"
        )
    return xp.broadcast_to(features, shape), xp.broadcast_to(labels, shape)


def _check_sparse(features: Any, labels: Any) -> None:
    require_rank(features, 2, "logits must be 2-D, but got shape {}")
    require_vector(labels, "labels must be 1-D, but got shape {}")
    shape = list(features.shape)
    if features.shape[0] != labels.shape[0]:
        shapes = f"logits shape {shape} and labels shape {list(labels.shape)}"
        raise InvalidArgumentError(
            f"logits and labels must have the same first dimension, got {shapes}"
        )
    if features.shape[1] == 0:
        raise InvalidArgumentError(f"Must have at least one class, but got logits shape {shape}")


def _check_labels(labels: Any, classes: int) -> None:
    wrong = labels[(labels < 0) | (labels >= classes)]
    if wrong.size:
        raise InvalidArgumentError(
            f"Received a label value of {wrong[0]} which is outside the valid range of "
            f"[0, {classes}).  Label values: {' '.join(map(str, labels[:100]))}"
        )


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
