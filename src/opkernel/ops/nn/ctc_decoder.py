"""CTCGreedyDecoder and CTCBeamSearchDecoder: the most likely labels, of which it is not known when they occur.

Source: TensorFlow core/ops/ctc_ops.cc, core/kernels/ctc_decoder_ops.cc, core/util/ctc/ctc_beam_search.h.
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from opkernel.device.made_bytes import MadeBytes, making_bytes
from opkernel.device.work_clock import SLOW, WorkClock, array_work, in_time
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_input_ranks, set_outputs, shape_rule
from opkernel.ops.input_checks import int32_attr, require, require_rank, require_vector
from opkernel.ops.libstdcxx_order import TopN
from opkernel.ops.nn.ctc_loss import log_sum
from opkernel.ops.registration import WIDE_FLOATS, register_kernel
from opkernel.types import DataType

_TYPES = {"T": WIDE_FLOATS}


def ctc_beam_search_decoder_shape(c: InferenceContext) -> None:
    """`top_paths` sparse matrices of labels, and as many numbers for each sequence."""
    inputs, lengths = check_input_ranks(c, 3, 1)
    batch = c.merge(c.dim(inputs, 1), c.dim(lengths, 0))
    paths = c.get_attr("top_paths")
    indices = [c.matrix(None, 2) for _ in range(paths)]
    values = [c.vector(None) for _ in range(paths)]
    shapes = [c.vector(2) for _ in range(paths)]
    set_outputs(c, [*indices, *values, *shapes, c.matrix(batch, paths)])


CTC_GREEDY_DECODER = register_op(
    "CTCGreedyDecoder(inputs: T, sequence_length: int32) "
    "-> decoded_indices: int64, decoded_values: int64, decoded_shape: int64, log_probability: T",
    attrs=[
        "merge_repeated: bool = false",
        "blank_index: int = -1",
        "T: {float, double} = DT_FLOAT",
    ],
    shape_fn=shape_rule(
        "[time, batch, classes], [batch] -> [decoded, 2], [decoded], [2], [batch, 1]"
    ),
    doc="The labels of the largest input of each step, without blanks, as a sparse matrix.",
)
CTC_BEAM_SEARCH_DECODER = register_op(
    "CTCBeamSearchDecoder(inputs: T, sequence_length: int32) "
    "-> decoded_indices: top_paths * int64, decoded_values: top_paths * int64, "
    "decoded_shape: top_paths * int64, log_probability: T",
    attrs=[
        "beam_width: int >= 1",
        "top_paths: int >= 1",
        "merge_repeated: bool = true",
        "T: {float, double} = DT_FLOAT",
    ],
    shape_fn=ctc_beam_search_decoder_shape,
    doc="The most likely sequences of labels that a beam search finds, as sparse matrices.",
)


def _check_inputs(inputs: Any, lengths: Any) -> None:
    require_rank(inputs, 3, "inputs is not a 3-Tensor")
    require(inputs.size, "inputs must not be empty")
    require_vector(lengths, "sequence_length is not a vector")
    steps, batch, _ = inputs.shape
    if len(lengths) != batch:
        raise FailedPreconditionError(
            f"len(sequence_length) != batch_size.  len(sequence_length):  {len(lengths)} batch_size: {batch}"
        )
    too_long = np.flatnonzero(lengths > steps)
    if len(too_long):
        raise FailedPreconditionError(f"sequence_length({too_long[0]}) <= {steps}")


def _sparse(labels: Any, counts: Any) -> tuple[Any, Any, Any]:
    """Sequences of labels, one after the other, as a sparse matrix: each a row with so many labels."""
    check_allocation((len(labels), 2), DataType.DT_INT64)
    rows = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(len(labels)) - (np.cumsum(counts) - counts)[rows]
    values = np.array(labels, np.int64)
    return np.stack((rows, places), axis=1), values, np.array([len(counts), max(counts)])


@register_kernel(CTC_GREEDY_DECODER, types=_TYPES)
def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, *, merge_repeated: bool, blank_index: int
) -> tuple[Any, Any, Any, Any]:
    _check_inputs(inputs, sequence_length)
    inputs = inputs[: max(sequence_length.max(), 1)]
    steps, _, classes = inputs.shape
    if not -classes <= blank_index < classes:
        raise InvalidArgumentError(
            f"blank_index expected to be between {-classes} and {classes - 1} but was {blank_index}"
        )
    counts = np.arange(steps)[:, None] < sequence_length
    best, largest = _largest(inputs)
    kept = counts & (best != blank_index % classes)
    if merge_repeated:
        kept[1:] &= best[1:] != best[:-1]
    score = -np.where(counts, largest, 0).sum(axis=0, keepdims=True).T.astype(inputs.dtype)
    return (*_sparse(best.T[kept.T], kept.sum(axis=0)), score)


def _largest(inputs: Any) -> tuple[Any, Any]:
    """The class of the largest input, and that input; NaN is never larger, nor is anything than NaN."""
    best = inputs.argmax(axis=-1)  # the first NaN if there is any
    largest = np.take_along_axis(inputs, best[..., None], -1)
    if np.isnan(largest).any():
        rest = np.where(np.isnan(inputs), -np.inf, inputs)
        best = np.where(np.isnan(inputs[..., 0]), 0, rest.argmax(axis=-1))
        largest = np.take_along_axis(inputs, best[..., None], -1)
    return best, largest[..., 0]


_IMPOSSIBLE = -math.inf
_OF_BEAM, _BYTES_OF_BEAM = 1 << 13, 400
"""The work of a step with a beam, and the memory that a beam takes."""


class _Beam:
    """A beginning of a sequence, and the logarithms of how likely it is: before a step and after it.

    Attributes:
        parent: The same without the last label.
        label: The last label, -1 if there is none.
        children: The beginnings that are longer by a label, as far as they were looked at.
        old_total: How likely it was.
        old_blank: How likely it was with a blank at the end.
        total: How likely it is; impossible if it is not followed any more.
        blank: How likely it is with a blank at the end.
        of_label: How likely it is with its label at the end.
    """

    __slots__ = (
        "blank",
        "children",
        "label",
        "of_label",
        "old_blank",
        "old_total",
        "parent",
        "total",
    )

    def __init__(self, parent: "_Beam | None", label: int) -> None:
        self.parent = parent
        self.label = label
        self.children: dict[int, _Beam] = {}
        self.drop()
        self.old_total = self.old_blank = _IMPOSSIBLE

    def drop(self) -> None:
        """It is not followed any more; in this step it may still be followed with another label."""
        self.total = self.blank = self.of_label = _IMPOSSIBLE

    def advance(self, logits: Sequence[float]) -> None:
        """Take a step that adds no label: the last one goes on, or there is a blank."""
        parent = self.parent
        if parent is not None:
            if parent.total != _IMPOSSIBLE:
                before = parent.old_blank if self.label == parent.label else parent.old_total
                self.of_label = _log_sum(self.of_label, before)
            self.of_label += logits[self.label]
        self.blank = self.old_total + logits[-1]
        self.total = _log_sum(self.blank, self.of_label)

    def labels(self, merge_repeated: bool) -> list[int]:
        """Its labels; equal ones one after the other once if `merge_repeated`."""
        found: list[int] = []
        beam, previous = self, -1
        while beam.parent is not None:
            if not merge_repeated or beam.label != previous:
                found.append(beam.label)
            previous, beam = beam.label, beam.parent
        return found[::-1]


def _log_sum(first: float, second: float) -> float:
    if _IMPOSSIBLE in (first, second):
        return max(first, second)
    return float(log_sum(np.float64(first), np.float64(second)))


class _BeamSearch:
    """The beams that are followed."""

    def __init__(self, width: int, clock: WorkClock, made: MadeBytes) -> None:
        root = _Beam(None, -1)
        root.total = root.blank = 0.0
        self.width = width
        self.beams = TopN[_Beam](width)
        self.beams.push(root.total, root)
        self._clock = clock
        self._made = made

    def step(self, inputs: Any) -> None:
        """Take a step, of which these are the inputs."""
        most = inputs.max()
        logits = (inputs - (most + np.log(np.exp(inputs - most).sum()))).astype(np.float64)
        branches = self.beams.sorted()
        self.beams = TopN[_Beam](self.width)
        for beam in branches:
            beam.old_total, beam.old_blank = beam.total, beam.blank
        numbers = logits.tolist()
        for beam in branches:
            self._clock.spend(_OF_BEAM)
            beam.advance(numbers)
            self.beams.push(beam.total, beam)
        for beam in branches:
            if self._is_candidate(beam.old_total):
                self._grow(beam, logits[:-1])

    def _is_candidate(self, total: float) -> bool:
        return total > _IMPOSSIBLE and (len(self.beams) < self.width or total > self.beams.lowest())

    def _grow(self, beam: _Beam, logits: Any) -> None:
        """Follow the beam with another label where that is likely enough."""
        self._clock.spend(array_work(logits.size))
        totals = logits + beam.old_total
        if beam.label >= 0:
            totals[beam.label] = logits[beam.label] + beam.old_blank
        least = self.beams.lowest() if len(self.beams) == self.width else _IMPOSSIBLE
        known = [label for label, child in beam.children.items() if child.total == _IMPOSSIBLE]
        labels = np.flatnonzero(totals > least).tolist()
        for label in sorted({*labels, *known}) if known else labels:
            self._clock.spend(_OF_BEAM)
            child = beam.children.get(label)
            if child is None:
                self._made.add(_BYTES_OF_BEAM)
                child = beam.children[label] = _Beam(beam, label)
            if child.total != _IMPOSSIBLE:
                continue
            total = float(totals[label])
            if not self._is_candidate(total):
                child.old_total = child.old_blank = _IMPOSSIBLE
                continue
            child.blank, child.of_label, child.total = _IMPOSSIBLE, total, total
            if len(self.beams) == self.width:
                self.beams.give_up_lowest().drop()
            self.beams.push(total, child)


@register_kernel(CTC_BEAM_SEARCH_DECODER, types=_TYPES)
def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, *, beam_width: int, top_paths: int, merge_repeated: bool
) -> tuple[list[Any], list[Any], list[Any], Any]:
    int32_attr("beam_width", beam_width)
    _check_inputs(inputs, sequence_length)
    require(top_paths <= beam_width, "requested more paths than the beam width.")
    found, clock = [], WorkClock("decoding sequences")
    for number, length in enumerate(sequence_length.tolist()):
        with making_bytes("beams") as made:
            search = _BeamSearch(beam_width, clock, made)
            for step in range(length):
                search.step(inputs[step, number])
        require(len(search.beams) >= top_paths, "Less leaves in the beam search than requested.")
        found.append(search.beams.best(top_paths))
    paths = []
    for path in in_time(range(top_paths), SLOW):
        labels = [beams[path].labels(merge_repeated) for beams in found]
        paths.append(_sparse([*chain.from_iterable(labels)], np.array([*map(len, labels)])))
    scores = np.array([[beam.total for beam in beams] for beams in found], inputs.dtype)
    indices, values, shapes = map(list, zip(*paths, strict=True))
    return indices, values, shapes, scores
