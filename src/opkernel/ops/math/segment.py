"""Reductions of the rows of a tensor by segment: sums, products, means and extrema.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/segment_reduction_ops_impl.h.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from opkernel.device.work_clock import SLOW, array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import segment_reduction_with_num_segments_shape
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require, require_rank_at_least, require_scalar, require_vector
from opkernel.ops.registration import INDEX, NUMBERS, REAL_NUMBERS, WIDE_INDEX, register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.types import Array, DataType

Reduction = Literal["Sum", "Prod", "Max", "Min"]


def _declare_sorted(name: str, types: str) -> OpHandle:
    return register_op(
        f"Segment{name}(data: T, segment_ids: Tindices) -> output: T",
        attrs=[f"T: {{{types}}}", "Tindices: {int32, int64}"],
        shape_fn=shape_rule("[?, ...], [?] -> [?, ...]"),
        doc=f"{name} of the rows of `data` of each segment; `segment_ids`, [rows], is sorted.",
    )


def _declare_counted(
    name: str, types: str, indices: str = "int32, int64", traits: str = ""
) -> OpHandle:
    return register_op(
        f"{name}(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T",
        attrs=[
            f"T: {{{types}}}",
            f"Tindices: {{{indices}}}",
            "Tnumsegments: {int32, int64} = DT_INT32",
        ],
        shape_fn=segment_reduction_with_num_segments_shape,
        traits=traits,
        doc="""Reduce the parts of `data` of each of `num_segments` segments to one.

segment_ids: the segment of each part; its shape is how that of `data` begins.
""",
    )


SEGMENT_MEAN = _declare_sorted("Mean", "numbertype")


_LONG_ROW = 1 << 10


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of equal segment ids in a sorted vector of them."""

    segments: Array
    """The segment of each run, ascending."""
    starts: Array
    """The row at which each run begins."""

    @classmethod
    def of(cls, ids: Array) -> "Runs":
        """The runs of a sorted vector."""
        starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])[: ids.size])
        return cls(ids[starts], starts)

    def counts(self, rows: int) -> Array:
        """How many of the `rows` each run has."""
        return np.diff(self.starts, append=rows)

    def reduce(self, data: Array, reduction: Reduction) -> Array:
        """The reduction of the rows of each run; integers wrap around."""
        row = math.prod(data.shape[1:])
        reduced: Array
        if row < _LONG_ROW:
            reduced = _UFUNCS[reduction].reduceat(data, self.starts, 0, data.dtype)
        else:
            reduced = self._reduced_row_by_row(data, _UFUNCS[reduction])
        if reduction in ("Max", "Min") and data.dtype.kind not in "iu" and np.isnan(reduced).any():
            return self._extrema_with_nan(data, reduction)
        return reduced

    def _reduced_row_by_row(self, data: Array, ufunc: np.ufunc) -> Array:
        """As `reduceat`, which is slow where rows are long."""
        reduced = data[self.starts]
        for run, (start, count) in enumerate(zip(self.starts, self.counts(len(data)), strict=True)):
            own = reduced[run]
            for row in in_time(range(start + 1, start + count), array_work(own.size, 1)):
                ufunc(own, data[row], out=own)
        return reduced

    def _extrema_with_nan(self, data: Array, reduction: Reduction) -> Array:
        """The reduction row by row, as Eigen does it: the row after a NaN replaces the NaN."""
        keeps = np.less if reduction == "Max" else np.greater
        result = data[self.starts]
        counts = self.counts(len(data))
        for run, (start, count) in enumerate(in_time(zip(self.starts, counts, strict=True))):
            for row in in_time(data[start + 1 : start + count], SLOW):
                result[run] = np.where(keeps(row, result[run]), result[run], row)
        return result


_UFUNCS: dict[Reduction, np.ufunc] = {
    "Sum": np.add,
    "Prod": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
}


def check_sorted_ids(ids: Array) -> None:
    """Raise InvalidArgumentError unless segment ids ascend from 0 or more."""
    if ids.size == 0:
        return
    rows = int(ids[-1]) + 1
    require(rows > 0, "segment ids must be >= 0")
    require(not (ids[1:] < ids[:-1]).any(), "segment ids are not increasing")
    if ids[0] < 0:
        raise InvalidArgumentError(
            f"Segment id {ids[0]} out of range [0, {rows}), possibly because 'segment_ids' input is not sorted."
        )


def _runs(data: Any, ids: Any, T: DataType) -> tuple[Runs, tuple[int, ...]]:
    """The runs of the ids, and the shape of the output: [last segment + 1, rest...]."""
    require_rank_at_least(data, 1, "input must be at least rank 1")
    require_vector(ids, "segment_ids should be a vector.")
    if ids.shape[0] != data.shape[0]:
        raise InvalidArgumentError("segment_ids should be the same size as dimension 0 of input.")
    check_sorted_ids(ids)
    segments = int(ids[-1]) + 1 if ids.size else 0
    shape = check_allocation((segments, *data.shape[1:]), T)
    return Runs.of(ids), shape


def _with_gaps(runs: Runs, reduced: Array, shape: tuple[int, ...], gap: int) -> Array:
    """The output: the reduction of each run, and `gap` in segments without rows."""
    if reduced.shape == shape:
        return reduced
    output = np.full(shape, gap, reduced.dtype)
    output[runs.segments] = reduced
    return output


def _sorted_kernel(reduction: Reduction) -> Callable[..., Any]:
    gap = 1 if reduction == "Prod" else 0

    def segment(data: Any, segment_ids: Any, *, T: DataType) -> Any:
        runs, shape = _runs(data, segment_ids, T)
        if not math.prod(shape):
            return np.empty(shape, T.numpy_dtype)
        return _with_gaps(runs, runs.reduce(data, reduction), shape, gap)

    return segment


@register_kernel(SEGMENT_MEAN, types={"T": NUMBERS, "Tindices": INDEX})
def segment_mean(data: Any, segment_ids: Any, *, T: DataType) -> Any:
    """Sums and counts in `T`; integers are divided towards zero."""
    runs, shape = _runs(data, segment_ids, T)
    if not math.prod(shape):
        return np.empty(shape, T.numpy_dtype)
    sums = runs.reduce(data, "Sum")
    counts = runs.counts(len(data)).astype(T.numpy_dtype)
    counts = counts.reshape(-1, *(1 for _ in data.shape[1:]))
    if T.is_integer:
        sums -= np.fmod(sums, counts)
        sums //= counts
    else:
        sums /= counts
    return _with_gaps(runs, sums, shape, 0)


def num_segments_of(tensor: Any) -> int:
    """The value of an input `num_segments`.

    Raises:
        InvalidArgumentError: it is no scalar, or negative.
    """
    require_scalar(tensor, "num_segments should be a scalar, not shape {}")
    if tensor < 0:
        raise InvalidArgumentError(f"Input num_segments == {tensor} must not be negative.")
    return int(tensor)


def _check_ids(ids: Array, segments: int) -> None:
    outside = ids >= segments
    if outside.any():
        place = np.unravel_index(int(outside.argmax()), ids.shape)
        where = f"[{','.join(str(i) for i in place)}]" if place else ""
        raise InvalidArgumentError(
            f"segment_ids{where} = {ids[place]} is out of range [0, {segments})"
        )


def segments_shape(data: Any, ids: Any, num_segments: Any, T: DataType) -> tuple[int, ...]:
    """The shape of the parts of `data` reduced by segment.

    Raises:
        InvalidArgumentError: the ids do not fit the data, or `num_segments` is no size.
    """
    segments = num_segments_of(num_segments)
    if data.shape[: ids.ndim] != ids.shape:
        raise InvalidArgumentError(
            f"data.shape = {list(data.shape)} does not start with segment_ids.shape = {list(ids.shape)}"
        )
    return check_allocation((segments, *data.shape[ids.ndim :]), T)


def empty_reduction(reduction: Reduction, T: DataType) -> Any:
    """The reduction of nothing."""
    if reduction in ("Max", "Min"):
        return T.min if reduction == "Max" else T.max
    return 0 if reduction == "Sum" else 1


def _unsorted_kernel(reduction: Reduction) -> Callable[..., Any]:
    """Ids below 0 are passed over."""

    def segment(data: Any, segment_ids: Any, num_segments: Any, *, T: DataType) -> Any:
        ids = np.asarray(segment_ids)
        shape = segments_shape(data, ids, num_segments, T)
        output = np.full(shape, empty_reduction(reduction, T), T.numpy_dtype)
        if data.size == 0:
            return output
        _check_ids(ids, shape[0])
        rows = np.flatnonzero(ids >= 0)
        if rows.size:
            rows = rows[stable_order(ids.reshape(-1)[rows])]
            runs = Runs.of(ids.reshape(-1)[rows])
            parts = np.asarray(data).reshape(ids.size, *shape[1:])[rows]
            reduced = runs.reduce(parts, reduction)
            output[runs.segments] = _UFUNCS[reduction](output[runs.segments], reduced)
        return output

    return segment


for _reduction in _UFUNCS:
    _is_sum = _reduction in ("Sum", "Prod")
    _spec, _types = ("numbertype", NUMBERS) if _is_sum else ("realnumbertype", REAL_NUMBERS)
    _sorted = _declare_sorted(_reduction, _spec)
    register_kernel(_sorted, types={"T": _types, "Tindices": INDEX})(_sorted_kernel(_reduction))
    _declare_counted(f"Segment{_reduction}V2", _spec, traits="no_kernel=tensorflow")
    _index_spec = "int16, int32, int64" if _reduction == "Sum" else "int32, int64"
    _unsorted = _declare_counted(f"UnsortedSegment{_reduction}", _spec, _index_spec)
    register_kernel(_unsorted, types={"T": _types, "Tindices": WIDE_INDEX})(
        _unsorted_kernel(_reduction)
    )
