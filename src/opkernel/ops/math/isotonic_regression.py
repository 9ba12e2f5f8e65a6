"""IsotonicRegression.

The gradient of IsotonicRegression: the mean of the gradients of each segment.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/isotonic_regression_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import array_work, in_time
from opkernel.kernel import KernelRegistry
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import outputs_as_inputs
from opkernel.ops.registration import FLOATS, INDEX, register_kernel
from opkernel.types import Array, DataType

ISOTONIC_REGRESSION = register_op(
    "IsotonicRegression(input: T) -> output: output_dtype, segments: int32",
    attrs=["T: realnumbertype", "output_dtype: {half, bfloat16, float, double} = DT_FLOAT"],
    shape_fn=outputs_as_inputs(0, 0),
    doc="The numbers closest to those of the last dimension that do not rise (least squares); and which "
    "of them are the mean of the same segment.",
)


Algorithm = Callable[[Array], tuple[Array, Array]]
"""A function of rows, double [rows, length]: the numbers closest to them, and the segment of each, int32."""

_AT_ONCE = 1 << 14
"""Rows of about so many values are one call of the algorithm."""
_OF_VALUE = 1 << 9
"""The work of a value, taken in one by one."""
_ROUNDS = 32
"""After so many rounds, rows are computed one value after the other."""
_CLOSE = 1e-12
"""Means that differ by less may be equal but for rounding, which depends on the order of a sum."""


def segments_by_numpy(rows: Array) -> tuple[Array, Array]:
    """In each round, all segments larger than the one before join it: any order gives the same, but for rounding."""
    count, length = rows.shape
    sums, places = rows.reshape(-1), np.arange(rows.size)
    sizes, means = np.ones(rows.size), sums
    is_exact = (rows.astype(np.float32) == rows).all()
    in_doubt = np.zeros(count, bool)
    for turn in range(_ROUNDS + 1):
        begins = places % length == 0
        joins = (means[1:] > means[:-1]) & ~begins[1:]
        if not is_exact:
            in_doubt[places[1:][_are_close(means, sizes) & ~begins[1:]] // length] = True
        if turn == _ROUNDS:
            in_doubt[places[1:][joins] // length] = True
        if turn == _ROUNDS or not joins.any():
            break
        starts = np.flatnonzero(np.concatenate([[True], ~joins]))
        sums, sizes = np.add.reduceat(sums, starts), np.add.reduceat(sizes, starts)
        places, means = places[starts], sums / sizes
    lengths = np.diff(places, append=rows.size)
    numbers = np.arange(len(places))
    numbers -= np.maximum.accumulate(np.where(begins, numbers, 0))
    output = np.repeat(means, lengths).reshape(count, length)
    segments = np.repeat(numbers.astype(np.int32), lengths).reshape(count, length)
    for row in in_time(np.flatnonzero(in_doubt).tolist(), array_work(length)):
        of_row, own_lengths = _one_by_one(rows[row].tolist())
        output[row] = np.repeat(of_row, own_lengths)
        segments[row] = np.repeat(np.arange(len(of_row)), own_lengths)
    return output, segments


def _are_close(means: Array, sizes: Array) -> Array:
    """Whether means that are not numbers themselves are about those that follow."""
    close: Array = np.abs(np.diff(means)) <= _CLOSE * np.abs(means[1:])
    return close & (np.maximum(sizes[1:], sizes[:-1]) > 1)


def _one_by_one(row: Sequence[float]) -> tuple[list[float], list[int]]:
    """Mean and length of each segment: a segment takes in those before it that are smaller."""
    means: list[float] = []
    sums: list[float] = []
    counts: list[int] = []
    for value in in_time(row, _OF_VALUE):
        mean, total, count = value, value, 1
        while means and means[-1] < mean:
            means.pop()
            total += sums.pop()
            count += counts.pop()
            mean = total / count
        means.append(mean)
        sums.append(total)
        counts.append(count)
    return means, counts


def register_isotonic_regression(
    algorithm: Algorithm, registry: KernelRegistry | None = None
) -> None:
    """Register the kernels of IsotonicRegression with an algorithm."""

    def isotonic_regression(input: Any, *, output_dtype: DataType) -> tuple[Any, Any]:
        output = np.zeros(input.shape, output_dtype.numpy_dtype)
        segments = np.zeros(input.shape, np.int32)
        if not input.ndim:
            return input.astype(output.dtype), segments
        if not input.size:
            return output, segments
        length = input.shape[-1]
        rows, means, numbers = (one.reshape(-1, length) for one in (input, output, segments))
        step = max(_AT_ONCE // length, 1)
        for start in in_time(range(0, len(rows), step), array_work(max(length, _AT_ONCE), 32)):
            part = slice(start, start + step)
            wide = np.ascontiguousarray(rows[part], np.float64)
            means[part], numbers[part] = algorithm(wide)
        return output, segments

    for type_, result in _RESULT.items():
        types = {"T": [type_], "output_dtype": [result]}
        register_kernel(ISOTONIC_REGRESSION, types=types, registry=registry)(isotonic_regression)


_RESULT = {
    **{dtype: dtype for dtype in FLOATS},
    **dict.fromkeys((DataType.DT_INT8, DataType.DT_INT16), DataType.DT_FLOAT),
    **dict.fromkeys(INDEX, DataType.DT_DOUBLE),
}

register_isotonic_regression(segments_by_numpy)


@g.register_gradient("IsotonicRegression")
def isotonic_regression_gradient(op: g.Operation, grad: g.Tensor, _: g.Tensor) -> g.Gradients:
    segments = op.outputs[1]
    if segments.shape.rank == 0:
        return grad
    shape = g.nodes.Shape(segments)
    length = g.nodes.StridedSlice(shape, [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    count = g.nodes.Size(segments)
    # Segments of a row are numbered from the place of its first element on.
    places = g.nodes.Range(0, count, 1)
    starts = g.nodes.Sub(places, g.nodes.FloorMod(places, length))
    numbers = g.nodes.Add(starts, g.nodes.Reshape(segments, [-1]))
    flat = g.nodes.Reshape(grad, [-1])
    sums = g.nodes.UnsortedSegmentSum(flat, numbers, count)
    sizes = g.nodes.UnsortedSegmentSum(g.ones_like(flat), numbers, count)
    means = g.nodes.DivNoNan(sums, sizes)
    found = g.nodes.Reshape(g.nodes.GatherV2(means, numbers, 0), shape)
    return g.nodes.Cast(found, DstT=op.inputs[0].dtype)
