"""CTCLoss and CTCLossV2: how unlikely labels are, of which it is not known when they occur.

Labels are stretched to as many steps as there are: they may be repeated, with blanks between them. The
probabilities of the beginnings and of the ends of all ways to do so are added up step by step.

Sums of probabilities by their logarithms, as the CTC ops have them.

TensorFlow computes the part that is added to the larger logarithm in float, of double inputs, too.

Source: TensorFlow core/ops/ctc_ops.cc, core/kernels/ctc_loss_op.cc, core/util/ctc/ctc_loss_calculator.h,
core/util/ctc/ctc_loss_util.h; log1pf of FreeBSD's msun, from Sun's fdlibm.
"""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_rank
from opkernel.ops.kernel_types import WIDE_FLOATS
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import check_indices
from opkernel.types import DataType, TensorShape

__all__ = ["float_exp", "log_sum"]


_FLOAT = np.float32
_LN2_HIGH, _LN2_LOW = _FLOAT(6.9313812256e-01), _FLOAT(9.0580006145e-06)
_COEFFICIENTS = np.array(
    [
        1.4798198640e-01,
        1.5313838422e-01,
        1.8183572590e-01,
        2.2222198546e-01,
        2.8571429849e-01,
        4.0000000596e-01,
        6.6666668653e-01,
    ],
    _FLOAT,
)
_SQRT2_LESS_1 = _FLOAT(0.41421387)


def log_sum(first: Any, second: Any) -> Any:
    """The logarithm of the sum of what two logarithms stand for."""
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    added = _float_log1p(float_exp(smaller - larger))
    return np.where(smaller == -np.inf, larger, larger + added)


def float_exp(values: Any) -> Any:
    """The power of e in float, rounded correctly."""
    return np.exp(values.astype(_FLOAT), dtype=np.float64).astype(_FLOAT)


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
_LABELS = ["labels_indices: int64", "labels_values: int32", "sequence_length: int32"]

CTC_LOSS = register_op(
    "CTCLoss",
    inputs=["inputs: T", *_LABELS],
    outputs=["loss: T", "gradient: T"],
    attrs=[*_ATTRS, "T: {float, double} = DT_FLOAT"],
    shape_fn=_SHAPE,
    doc="The loss of connectionist temporal classification, and its gradient.",
)
CTC_LOSS_V2 = register_op(
    "CTCLossV2",
    inputs=["inputs: float", *_LABELS],
    outputs=["loss: float", "gradient: float"],
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
    rows = _rows(labels_indices, labels_values, batch)
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
    if not steps or not batch:
        raise InvalidArgumentError("Max time or first dimension of input cannot be 0.")
    if len(lengths) != batch:
        raise InvalidArgumentError(
            f"len(sequence_length) != batch_size.  len(sequence_length):  {len(lengths)} "
            f"batch_size: {batch}"
        )
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


def _rows(indices: Any, values: Any, batch: int) -> list[Any]:
    return np.split(values, np.searchsorted(indices[:, 0], np.arange(1, batch)))


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
    share = float_exp(of_classes - total[:, None])
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
    beta[-1] = np.where(last_step == len(log_y) - 1, at_last, -np.inf)
    for step in in_time(range(len(log_y) - 2, -1, -1), SLOW):
        after = beta[step + 1] + log_y[step + 1]
        stays = np.where(paths.stays, after, -np.inf)
        skips = _shifted(np.where(paths.skips, after, -np.inf), -2)
        found = log_sum(log_sum(stays, _shifted(after, -1)), skips)
        beta[step] = np.where(last_step == step, at_last, found)
    return beta


@g.register_gradient("CTCLoss", "CTCLossV2")
def ctc_loss_gradient(op: g.Operation, grad: g.Tensor, _: g.Tensor) -> g.Gradients:
    scale = g.nodes.ExpandDims(g.nodes.ExpandDims(grad, 0), -1)
    return [g.nodes.Mul(scale, op.outputs[1]), None, None, None]
