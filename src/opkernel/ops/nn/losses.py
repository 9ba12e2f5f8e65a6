"""Losses of logits: cross entropy of the softmax with labels, and CTCLoss, each with its gradient.

The ops give the gradient of the loss with respect to the logits as their second output. That of cross
entropy may be differentiated itself.

CTC: how unlikely labels are, of which it is not known when they occur. Labels are stretched to as many steps
as there are: they may be repeated, with blanks between them. The probabilities of the beginnings and of the
ends of all ways to do so are added up step by step, by their logarithms. TensorFlow computes the part that is
added to the larger logarithm in float, of double inputs, too.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/xent_op.cc, sparse_xent_op.cc; core/ops/ctc_ops.cc,
core/kernels/ctc_loss_op.cc, core/util/ctc/ctc_loss_calculator.h, ctc_loss_util.h; log1pf of FreeBSD's msun,
from Sun's fdlibm.
"""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_output_shape
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import (
    broadcast_shape,
    require,
    require_equal,
    require_rank,
    require_vector,
)
from opkernel.ops.math.error_functions import rounded_exp
from opkernel.ops.nn.softmax import shifted_exponentials, sum_along_last
from opkernel.ops.registration import FLOATS, INDEX, WIDE_FLOATS, register_kernel
from opkernel.ops.sparse.tensors import check_indices
from opkernel.types import DataType, TensorShape

__all__ = ["log_sum"]


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


_FLOAT = np.float32
_LN2_HIGH, _LN2_LOW = _FLOAT(6.9313812256e-01), _FLOAT(9.0580006145e-06)
_COEFFICIENTS = np.array(
    [
        1.4798198640e-01, 1.5313838422e-01, 1.8183572590e-01, 2.2222198546e-01,
        2.8571429849e-01, 4.0000000596e-01, 6.6666668653e-01,
    ], _FLOAT
)  # fmt: skip
_SQRT2_LESS_1 = _FLOAT(0.41421387)


def log_sum(first: Any, second: Any) -> Any:
    """The logarithm of the sum of what two logarithms stand for."""
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    added = _float_log1p(rounded_exp((smaller - larger).astype(_FLOAT)))
    return np.where(smaller == -np.inf, larger, larger + added)


def _float_log1p(x: Any) -> Any:
    """The logarithm of 1 + x, for x in 0..1, with the rounding that C's log1pf has."""
    u = 1 + x
    is_large = x >= _SQRT2_LESS_1  # then of u / 2, and of 2
    f = np.where(is_large, u / 2 - 1, x)
    low = np.where(is_large, _LN2_LOW + (x - (u - 1)) / u, 0)
    half_square = f * f / 2
    s = f / (2 + f)
    z = s * s
    series = np.zeros_like(z)
    for coefficient in _COEFFICIENTS:
        series = z * (series + coefficient)
    rest = half_square - (s * (half_square + series) + low)
    return np.where(is_large, _LN2_HIGH, _FLOAT(0)) - (rest - f)


_SHAPE = shape_rule(
    "[time, batch, classes], [n, ?], [n], [batch] -> [batch], [time, batch, classes]"
)

_ATTRS = [
    "preprocess_collapse_repeated: bool = false",
    "ctc_merge_repeated: bool = true",
    "ignore_longer_outputs_than_inputs: bool = false",
]
_LABELS = "labels_indices: int64, labels_values: int32, sequence_length: int32"

CTC_LOSS = register_op(
    f"CTCLoss(inputs: T, {_LABELS}) -> loss: T, gradient: T",
    attrs=[*_ATTRS, "T: {float, double} = DT_FLOAT"],
    shape_fn=_SHAPE,
    doc="The loss of connectionist temporal classification, and its gradient.",
)
CTC_LOSS_V2 = register_op(
    f"CTCLossV2(inputs: float, {_LABELS}) -> loss: float, gradient: float",
    attrs=_ATTRS,
    shape_fn=_SHAPE,
    traits="no_kernel=tensorflow",
    doc="The loss of connectionist temporal classification, and its gradient; GPUs compute it.",
)


class _Paths(NamedTuple):
    """What the sequences of a batch run through: a blank before, between and after the labels.

    Attributes:
        classes: The class of each state, [batch, states]; after the last state blanks.
        ends: How many states each sequence has.
        lengths: How many steps each sequence takes; 0 where it does not count.
        stays: Whether a state may follow itself.
        skips: Whether a state may follow the one before the last.
    """

    classes: Any
    ends: Any
    lengths: Any
    stays: Any
    skips: Any


@register_kernel(CTC_LOSS, types={"T": WIDE_FLOATS})
def ctc_loss(
    inputs: Any,
    labels_indices: Any,
    labels_values: Any,
    sequence_length: Any,
    *,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
    T: DataType,
) -> tuple[Any, Any]:
    _check_inputs(inputs, labels_indices, labels_values, sequence_length)
    steps, batch, classes = inputs.shape
    rows = np.split(labels_values, np.searchsorted(labels_indices[:, 0], np.arange(1, batch)))
    labels = [
        _labels(row, number, classes, preprocess_collapse_repeated)
        for number, row in enumerate(in_time(rows))
    ]
    lengths = sequence_length.copy()
    for number, row in enumerate(rows):
        if len(row) > lengths[number]:
            if not ignore_longer_outputs_than_inputs:
                raise InvalidArgumentError(
                    "Not enough time for target transition sequence (required: "
                    f"{len(row)}, available: {lengths[number]}) in batch {number}. "
                    "Use ignore_longer_outputs_than_inputs to leave such sequences out"
                )
            lengths[number] = 0
    states = 2 * max(map(len, labels), default=0) + 1
    check_allocation((4, steps, batch, states), T)
    paths = _paths(labels, lengths, states, classes - 1, ctc_merge_repeated)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _loss_and_gradient(inputs, paths)


def _check_inputs(inputs: Any, indices: Any, values: Any, lengths: Any) -> None:
    for name, tensor, rank in (
        ("inputs", inputs, 3),
        ("labels_indices", indices, 2),
        ("labels_values", values, 1),
        ("sequence_length", lengths, 1),
    ):
        require_rank(tensor, rank, f"{name} is not of rank {rank}: it has shape {{}}")
    steps, batch, _ = inputs.shape
    require(steps and batch, "Max time or first dimension of input cannot be 0.")
    message = "len(sequence_length) != batch_size.  len(sequence_length):  {} batch_size: {}"
    require_equal(len(lengths), batch, message)
    if len(indices) != len(values) or indices.shape[1] != 2:
        raise InvalidArgumentError(
            "labels_indices must have two columns, and as many rows as labels_values has elements: got "
            f"{TensorShape(indices.shape)} and {TensorShape(values.shape)}"
        )
    for number, length in enumerate(lengths.tolist()):
        if not 0 <= length <= steps:
            raise InvalidArgumentError(
                f"sequence_length({number}) must be in 0..{steps}, got {length}"
            )
    check_indices(indices, (batch, int(indices[:, 1].max(initial=-1)) + 1))


def _labels(row: Any, number: int, classes: int, collapses: bool) -> Any:
    """The labels of a sequence; those from the first blank on do not count.

    Raises:
        InvalidArgumentError: there are none, some are negative, or labels follow the blank.
    """
    if not len(row):
        raise InvalidArgumentError(f"Labels length is zero in batch {number}")
    if (row < 0).any():
        raise InvalidArgumentError(
            f"All labels must be nonnegative integers, batch: {number} labels: {row.tolist()}"
        )
    is_label = row < classes - 1
    end = len(row) if is_label.all() else int(np.argmin(is_label))
    if is_label[end:].any():
        raise InvalidArgumentError(
            "Saw a non-null label (index >= num_classes - 1) following a null label, batch: "
            f"{number} num_classes: {classes} labels: {row.tolist()}"
        )
    row = row[:end]
    return row[np.diff(row, prepend=-1) != 0] if collapses else row


def _paths(labels: list[Any], lengths: Any, states: int, blank: int, merges: bool) -> _Paths:
    classes = np.full((len(labels), states), blank)
    for states_of_row, row in zip(classes, labels, strict=True):
        states_of_row[1 : 2 * len(row) : 2] = row
    is_blank = np.broadcast_to(np.arange(states) % 2 == 0, classes.shape)
    ends = np.array([2 * len(row) + 1 for row in labels])
    skips = ~is_blank
    skips[:, :2] = False
    if merges:
        skips[:, 2:] &= classes[:, 2:] != classes[:, :-2]
    return _Paths(classes, ends, lengths, is_blank | merges, skips)


def _loss_and_gradient(inputs: Any, paths: _Paths) -> tuple[Any, Any]:
    powers = np.exp(inputs - inputs.max(axis=2, keepdims=True))
    y = powers / powers.sum(axis=2, keepdims=True)
    in_states = np.broadcast_to(paths.classes, (len(inputs), *paths.classes.shape))
    log_y = np.log(np.take_along_axis(y, in_states, axis=2))
    alpha, beta = _beginnings(log_y, paths), _ends(log_y, paths)
    total = reduce(log_sum, (alpha[0] + beta[0]).T)
    counts = paths.lengths > 0
    loss = np.where(counts, -total, inputs.dtype.type(0))
    of_classes = _of_classes(alpha + beta, in_states, y.shape)
    share = rounded_exp((of_classes - total[:, None]).astype(_FLOAT))
    gradient = np.where((total == -np.inf)[:, None], y, y - share)
    is_over = np.arange(len(inputs))[:, None] >= paths.lengths
    gradient[is_over] = 0
    return loss, gradient


def _of_classes(states: Any, classes: Any, shape: tuple[int, ...]) -> Any:
    """The logarithms of states added up for each class."""
    found = np.full(shape, -np.inf, states.dtype)
    for state in in_time(range(states.shape[2]), SLOW):
        at, one = classes[:, :, state, None], states[:, :, state, None]
        np.put_along_axis(found, at, log_sum(np.take_along_axis(found, at, 2), one), 2)
    return found


def _shifted(states: Any, by: int) -> Any:
    """The states before (after, if negative), impossible where there are none."""
    shifted = np.full_like(states, -np.inf)
    if by > 0:
        shifted[:, by:] = states[:, :-by]
    else:
        shifted[:, :by] = states[:, -by:]
    return shifted


def _beginnings(log_y: Any, paths: _Paths) -> Any:
    """How likely each state is at each step, given what came until then."""
    alpha = np.full_like(log_y, -np.inf)
    alpha[0, :, :2] = log_y[0, :, :2]
    alpha[0, paths.ends == 1, 1:] = -np.inf
    for step in in_time(range(1, len(log_y)), SLOW):
        before = alpha[step - 1]
        stays = np.where(paths.stays, before, -np.inf)
        skips = np.where(paths.skips, _shifted(before, 2), -np.inf)
        alpha[step] = log_y[step] + log_sum(log_sum(stays, _shifted(before, 1)), skips)
    return alpha


def _ends(log_y: Any, paths: _Paths) -> Any:
    """How likely it is that a sequence ends well, given its state at each step."""
    beta = np.full_like(log_y, -np.inf)
    states = np.arange(log_y.shape[2])
    last = (states == paths.ends[:, None] - 1) | (states == paths.ends[:, None] - 2)
    last_step = paths.lengths[:, None] - 1
    at_last = np.where(last, 0, -np.inf).astype(log_y.dtype)
    # Without labels, TensorFlow's end at the state before the first one is that of the step before.
    at_next_to_last = np.where(last & (paths.ends[:, None] == 1), 0, -np.inf).astype(log_y.dtype)
    beta[-1] = np.where(last_step == len(log_y) - 1, at_last, -np.inf)
    for step in in_time(range(len(log_y) - 2, -1, -1), SLOW):
        after = beta[step + 1] + log_y[step + 1]
        stays = np.where(paths.stays, after, -np.inf)
        skips = _shifted(np.where(paths.skips, after, -np.inf), -2)
        found = log_sum(log_sum(stays, _shifted(after, -1)), skips)
        also_ends = np.where(last_step - 1 == step, at_next_to_last, -np.inf)
        beta[step] = np.where(last_step == step, at_last, log_sum(found, also_ends))
    return beta


@g.register_gradient("CTCLoss", "CTCLossV2")
def ctc_loss_gradient(op: g.Operation, grad: g.Tensor, _: g.Tensor) -> g.Gradients:
    scale = g.nodes.ExpandDims(g.nodes.ExpandDims(grad, 0), -1)
    return [g.nodes.Mul(scale, op.outputs[1]), None, None, None]
