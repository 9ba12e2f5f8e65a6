"""CTCLoss, and its gradient.

CTC: how unlikely labels are, of which it is not known when they occur. Labels are stretched to as many steps
as there are: they may be repeated, with blanks between them. The probabilities of the beginnings and of the
ends of all ways to do so are added up step by step, by their logarithms. TensorFlow computes the part that is
added to the larger logarithm in float, of double inputs, too.

The op gives the gradient of the loss with respect to the logits as its second output.

Source: TensorFlow core/ops/ctc_ops.cc, core/kernels/ctc_loss_op.cc, core/util/ctc/ctc_loss_calculator.h,
ctc_loss_util.h; log1pf of FreeBSD's msun, from Sun's fdlibm.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation, shard
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require, require_equal, require_rank
from opkernel.ops.math.error_functions import rounded_exp
from opkernel.ops.registration import WIDE_FLOATS, register_kernel
from opkernel.ops.sparse.tensors import check_indices
from opkernel.types import Array, DataType, TensorShape

__all__ = ["log_sum"]

_FLOAT = np.float32
LN2_HIGH, LN2_LOW = _FLOAT(6.9313812256e-01), _FLOAT(9.0580006145e-06)
LOG1P_COEFFICIENTS = np.array(
    [
        1.4798198640e-01, 1.5313838422e-01, 1.8183572590e-01, 2.2222198546e-01,
        2.8571429849e-01, 4.0000000596e-01, 6.6666668653e-01,
    ], _FLOAT
)  # fmt: skip
SQRT2_LESS_1 = _FLOAT(0.41421387)


def log_sum(first: Any, second: Any) -> Any:
    """The logarithm of the sum of what two logarithms stand for."""
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    added = _float_log1p(rounded_exp((smaller - larger).astype(_FLOAT)))
    return np.where(smaller == -np.inf, larger, larger + added)


def _float_log1p(x: Any) -> Any:
    """The logarithm of 1 + x, for x in 0..1, with the rounding that C's log1pf has."""
    u = 1 + x
    is_large = x >= SQRT2_LESS_1  # then of u / 2, and of 2
    f = np.where(is_large, u / 2 - 1, x)
    low = np.where(is_large, LN2_LOW + (x - (u - 1)) / u, 0)
    half_square = f * f / 2
    s = f / (2 + f)
    z = s * s
    series = np.zeros_like(z)
    for coefficient in LOG1P_COEFFICIENTS:
        series = z * (series + coefficient)
    rest = half_square - (s * (half_square + series) + low)
    return np.where(is_large, LN2_HIGH, _FLOAT(0)) - (rest - f)


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


_STATES_AT_ONCE = 1 << 18
"""Steps of states whose logarithms are added up at once, some 50 ms of work."""

AddPaths = Callable[[Array, Array, Array, Array, int], tuple[Array, Array]]
"""A function as `add_paths`."""


def register_ctc_loss(add: AddPaths, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of CTCLoss with a function that adds up what is likely."""

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
        lengths = _lengths(sequence_length, rows, ignore_longer_outputs_than_inputs)
        states = 2 * max(map(len, labels), default=0) + 1
        check_allocation((4, steps, batch, states), T)
        paths = _paths(labels, lengths, states, classes - 1, ctc_merge_repeated)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return _loss_and_gradient(inputs, paths, add)

    register_kernel(CTC_LOSS, types={"T": WIDE_FLOATS}, registry=registry)(ctc_loss)


def _lengths(lengths: Any, rows: Sequence[Any], ignores_longer: bool) -> Any:
    """How many steps each sequence takes; 0 where it is left out.

    Raises:
        InvalidArgumentError: a sequence has more labels than steps, and is not to be left out.
    """
    lengths = lengths.copy()
    for number, row in enumerate(rows):
        if len(row) > lengths[number]:
            if not ignores_longer:
                raise InvalidArgumentError(
                    "Not enough time for target transition sequence (required: "
                    f"{len(row)}, available: {lengths[number]}) in batch {number}. "
                    "Use ignore_longer_outputs_than_inputs to leave such sequences out"
                )
            lengths[number] = 0
    return lengths


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


def _loss_and_gradient(inputs: Any, paths: _Paths, add: AddPaths) -> tuple[Any, Any]:
    whole, longest = inputs.shape, max(paths.lengths.max(), 1)
    inputs = inputs[:longest]  # behind, gradients are 0
    powers = np.exp(inputs - inputs.max(axis=2, keepdims=True))
    y = powers / powers.sum(axis=2, keepdims=True)
    steps, batch, classes = y.shape
    in_states = np.broadcast_to(paths.classes, (steps, *paths.classes.shape))
    log_y = np.log(np.take_along_axis(y, in_states, axis=2))
    limits = np.stack([paths.ends, paths.lengths], axis=1).astype(np.int64)
    moves = np.stack([paths.stays, paths.skips], axis=1)
    total = np.empty(y.shape[1], y.dtype)
    of_classes = np.empty_like(y)

    def compute(part: slice) -> None:
        log_y_of_part = np.ascontiguousarray(log_y[:, part])
        total[part], of_classes[:, part] = add(
            log_y_of_part, paths.classes[part], moves[part], limits[part], classes
        )

    many = max(1, _STATES_AT_ONCE // (log_y[:, 0].size + 1))
    shard(compute, [slice(start, start + many) for start in range(0, batch, many)])
    counts = paths.lengths > 0
    loss = np.where(counts, -total, inputs.dtype.type(0))
    is_likely = (of_classes != -np.inf) | np.isnan(total)[:, None]  # few are
    is_likely &= (total != -np.inf)[:, None]
    of_classes -= total[:, None]
    y[is_likely] -= rounded_exp(of_classes[is_likely].astype(_FLOAT))
    gradient = np.zeros(whole, y.dtype)
    counted = np.arange(longest)[:, None] < paths.lengths
    gradient[:longest][counted] = y[counted]
    return loss, gradient


def add_paths(
    log_y: Array, classes: Array, moves: Array, limits: Array, count: int
) -> tuple[Array, Array]:
    """How likely the labels are, and how likely each class is at each step beside them.

    Args:
        log_y: Logarithms of how likely the classes of the states are, [steps, batch, states].
        classes: The class of each state, [batch, states].
        moves: Whether a state may follow itself, and whether it may follow the one before the last,
            [batch, 2, states].
        limits: How many states and steps each sequence has, [batch, 2].
        count: How many classes there are.

    Returns:
        Logarithms: [batch], [steps, batch, count].
    """
    paths = _Paths(classes, limits[:, 0], limits[:, 1], moves[:, 0], moves[:, 1])
    alpha, beta = _beginnings(log_y, paths), _ends(log_y, paths)
    total = reduce(log_sum, (alpha[0] + beta[0]).T)
    in_states = np.broadcast_to(classes, log_y.shape)
    return total, _of_classes(alpha + beta, in_states, (*log_y.shape[:2], count))


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


register_ctc_loss(add_paths)


@g.register_gradient("CTCLoss", "CTCLossV2")
def ctc_loss_gradient(op: g.Operation, grad: g.Tensor, _: g.Tensor) -> g.Gradients:
    scale = g.nodes.ExpandDims(g.nodes.ExpandDims(grad, 0), -1)
    return [g.nodes.Mul(scale, op.outputs[1]), None, None, None]
