"""Non-maximum suppression: of boxes that overlap, only the one with the best score.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/non_max_suppression_op.cc.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import (
    DimensionHandle,
    InferenceContext,
    OpHandle,
    OpShapeInferenceFn,
    register_op,
)
from opkernel.opdef.common_shapes.rules import check_ranks
from opkernel.ops.image.box_selection import (
    SelectPart,
    SelectSoftly,
    box_corners,
    select_as_scores_change,
    select_in_turn,
    select_part,
    select_softly,
)
from opkernel.ops.image.crop_and_resize import check_one_for_each_box
from opkernel.ops.input_checks import require
from opkernel.ops.math.elementwise import flush_subnormals
from opkernel.ops.registration import register_kernel
from opkernel.ops.stable_order import best_first
from opkernel.types import Array, DataType

_TYPES = (DataType.DT_HALF, DataType.DT_FLOAT)
_FEW = 1 << 10
_MAX_COORDINATE = 1e9  # below it, no area is infinite and no overlap undefined
_FLOATS = "{half, float} = DT_FLOAT"
_DOC = """Indices of boxes, best score first, none of which overlaps a better one too much.

    boxes: [boxes, 4]: the coordinates y, x of two opposite corners.
    scores: [boxes].
    max_output_size: At most so many boxes.
    iou_threshold: How large the intersection of two boxes may be, as a part of their union.
    {more}
    """


def _check_inputs(c: InferenceContext) -> None:
    """Boxes are [boxes, 4], scores [boxes], all other inputs scalars."""
    boxes, scores = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
    check_ranks(c, 0, *range(2, c.num_inputs()))
    c.merge(c.dim(boxes, 0), c.dim(scores, 0))
    c.with_value(c.dim(boxes, 1), 4)


def _selected(c: InferenceContext) -> DimensionHandle:
    """The number of boxes selected: known where they are padded to a number that is known."""
    return c.make_dim_for_scalar_input(2) if c.get_attr(_PAD) else c.unknown_dim()


def indices_shape(c: InferenceContext) -> None:
    """A vector of unknown length."""
    _check_inputs(c)
    c.set_output(0, c.vector(c.unknown_dim()))


def indices_count_shape(c: InferenceContext) -> None:
    """A vector, and a scalar."""
    _check_inputs(c)
    c.set_output(0, c.vector(_selected(c)))
    c.set_output(1, c.scalar())


def indices_scores_count_shape(c: InferenceContext) -> None:
    """Two vectors, and a scalar."""
    _check_inputs(c)
    selected = _selected(c)
    c.set_output(0, c.vector(selected))
    c.set_output(1, c.vector(selected if c.get_attr(_PAD) else c.unknown_dim()))
    c.set_output(2, c.scalar())


_PAD = "pad_to_max_output_size"
_BOXES = "boxes: T, scores: T, max_output_size: int32"
_THRESHOLDS = "iou_threshold: T_threshold, score_threshold: T_threshold"
_T_ATTRS = [f"T: {_FLOATS}", f"T_threshold: {_FLOATS}"]
_PAD_ATTR = f"{_PAD}: bool = false"
_SCORE_DOC = "score_threshold: Boxes with this score, or a lower one, are not selected."
_COUNT_DOC = f"{_SCORE_DOC}\n    valid_outputs: The number of boxes selected, padding excluded."


def _declare(
    signature: str, attrs: Sequence[str], shape_fn: OpShapeInferenceFn, more: str = ""
) -> OpHandle:
    return register_op(signature, attrs=attrs, shape_fn=shape_fn, doc=_DOC.format(more=more))


NMS = _declare(
    "NonMaxSuppression(boxes: float, scores: float, max_output_size: int32) -> selected_indices: int32",
    ["iou_threshold: float = 0.5"],
    indices_shape,
)
NMS_V2 = _declare(
    f"NonMaxSuppressionV2({_BOXES}, iou_threshold: T_threshold) -> selected_indices: int32",
    _T_ATTRS,
    indices_shape,
)
NMS_V3 = _declare(
    f"NonMaxSuppressionV3({_BOXES}, {_THRESHOLDS}) -> selected_indices: int32",
    _T_ATTRS,
    indices_shape,
    _SCORE_DOC,
)
NMS_V4 = _declare(
    f"NonMaxSuppressionV4({_BOXES}, {_THRESHOLDS}) -> selected_indices: int32, valid_outputs: int32",
    [*_T_ATTRS, _PAD_ATTR],
    indices_count_shape,
    _COUNT_DOC,
)
NMS_V5 = _declare(
    f"NonMaxSuppressionV5({_BOXES}, iou_threshold: T, score_threshold: T, soft_nms_sigma: T) "
    "-> selected_indices: int32, selected_scores: T, valid_outputs: int32",
    [_T_ATTRS[0], _PAD_ATTR],
    indices_scores_count_shape,
    f"{_COUNT_DOC}\n    soft_nms_sigma: Above 0, overlap lowers scores instead.",
)


def check_scalars(**values: Any) -> None:
    """Raise InvalidArgumentError unless all values are scalars."""
    for name, value in values.items():
        if np.ndim(value):
            raise InvalidArgumentError(f"{name} must be 0-D, got shape {list(value.shape)}")


class SelectionLimits(NamedTuple):
    """The limits by which boxes are selected."""

    max_output_size: Any
    iou_threshold: Any
    score_threshold: Any = -np.inf
    soft_nms_sigma: Any = 0.0

    def check(self) -> None:
        """Raise InvalidArgumentError for limits that make no sense."""
        check_scalars(**self._asdict())
        require(0 <= self.iou_threshold <= 1, "iou_threshold must be in [0, 1]")
        require(self.soft_nms_sigma >= 0, "soft_nms_sigma_val must be non-negative")

    def numbers(self, dtype: Any) -> Array:
        """The limits other than the size, `[3]`."""
        return np.array(self[1:], dtype)


class _Selection(NamedTuple):
    indices: Array
    scores: Array

    @property
    def count(self) -> Any:
        return np.int32(len(self.indices))

    def padded(self, length: int) -> "_Selection":
        """The selection and zeros after it."""
        check_allocation((length,), DataType.DT_INT32)
        missing = (0, length - len(self.indices))
        return _Selection(np.pad(self.indices, missing), np.pad(self.scores, missing))


class Selecting(NamedTuple):
    """The functions that select boxes."""

    part: SelectPart
    softly: SelectSoftly


def _select(by: Selecting, boxes: Any, scores: Any, limits: SelectionLimits) -> _Selection:
    """The best box, then the best of the boxes left, and so on; the first of equal ones."""
    limits = SelectionLimits(*(flush_subnormals(np.asarray(limit), np) for limit in limits))
    limits.check()
    check_one_for_each_box("scores", scores, boxes)
    require(limits.max_output_size >= 0, "output size must be non-negative")
    most = min(int(limits.max_output_size), len(scores))
    check_allocation((most,), DataType.DT_INT32)
    corners = box_corners(boxes.astype(np.float32))
    scores = flush_subnormals(scores, np)
    candidates = np.flatnonzero(scores > limits.score_threshold)
    of_candidates = scores[candidates]
    most = min(most, len(candidates))
    bounds = corners.min(initial=0), corners.max(initial=0)
    if limits.soft_nms_sigma == 0 and bounds[0] > -_MAX_COORDINATE and bounds[1] < _MAX_COORDINATE:
        threshold = scores.dtype.type(limits.iou_threshold)
        selected = select_in_turn(
            (candidates[some] for some in best_first(of_candidates, max(4 * most, _FEW))),
            most,
            lambda left, chosen, count: by.part(corners, left, chosen, count, threshold),
        )
        selected_scores = scores[selected]
    else:
        numbers, selected_scores = select_as_scores_change(
            corners[:, candidates], of_candidates, most, limits.numbers(scores.dtype), by.softly
        )
        selected = candidates[numbers]
    return _Selection(selected.astype(np.int32), selected_scores)


def register_suppression(
    by: Selecting,
    types: Sequence[DataType] = _TYPES,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernels of NonMaxSuppression to V5 with functions that select the boxes."""

    def nms(boxes: Any, scores: Any, max_output_size: Any, *, iou_threshold: float) -> Any:
        limits = SelectionLimits(max_output_size, np.float32(iou_threshold))
        return _select(by, boxes, scores, limits).indices

    def nms_by_thresholds() -> Callable[..., Any]:
        return lambda boxes, scores, *limits: (
            _select(by, boxes, scores, SelectionLimits(*limits)).indices
        )

    def nms_padded(*, pad_to_max_output_size: bool) -> Callable[..., Any]:
        """The scores are outputs where there is a limit for them to change by, `soft_nms_sigma`."""

        def selected(boxes: Any, scores: Any, *limits: Any) -> Any:
            selection = _select(by, boxes, scores, SelectionLimits(*limits))
            result = selection.padded(int(limits[0])) if pad_to_max_output_size else selection
            if len(limits) < len(SelectionLimits._fields):
                return result.indices, selection.count
            return result.indices, result.scores, selection.count

        return selected

    register_kernel(NMS, registry=registry)(nms)
    of_types = partial(register_kernel, types={"T": types}, factory=True, registry=registry)
    of_types(NMS_V2, NMS_V3)(nms_by_thresholds)
    of_types(NMS_V4, NMS_V5)(nms_padded)


register_suppression(Selecting(select_part, select_softly))
