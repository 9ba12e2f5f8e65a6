"""IsotonicRegression.

The gradient of IsotonicRegression: the mean of the gradients of each segment.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/isotonic_regression_op.cc.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import array_work, in_time
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import outputs_as_inputs
from opkernel.ops.registration import FLOATS, INDEX, register_kernel
from opkernel.types import DataType

ISOTONIC_REGRESSION = register_op(
    "IsotonicRegression(input: T) -> output: output_dtype, segments: int32",
    attrs=["T: realnumbertype", "output_dtype: {half, bfloat16, float, double} = DT_FLOAT"],
    shape_fn=outputs_as_inputs(0, 0),
    doc="The numbers closest to those of the last dimension that do not rise (least squares); and which "
    "of them are the mean of the same segment.",
)


_OF_VALUE = 1 << 9
"""The work of a value."""


def isotonic_regression(input: Any, *, output_dtype: DataType) -> tuple[Any, Any]:
    output = np.zeros(input.shape, output_dtype.numpy_dtype)
    segments = np.zeros(input.shape, np.int32)
    if not input.ndim:
        return input.astype(output.dtype), segments
    length = input.shape[-1]
    rows = input.astype(np.float64).reshape(-1, length) if input.size else []
    for number, row in enumerate(in_time(rows, array_work(length))):
        means, counts = _segments(row.tolist())
        output.reshape(-1, length)[number] = np.repeat(means, counts)
        segments.reshape(-1, length)[number] = np.repeat(np.arange(len(counts)), counts)
    return output, segments


def _segments(row: Sequence[float]) -> tuple[list[float], list[int]]:
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


_RESULT = {
    **{dtype: dtype for dtype in FLOATS},
    **dict.fromkeys((DataType.DT_INT8, DataType.DT_INT16), DataType.DT_FLOAT),
    **dict.fromkeys(INDEX, DataType.DT_DOUBLE),
}
for _type, _result in _RESULT.items():
    register_kernel(ISOTONIC_REGRESSION, types={"T": [_type], "output_dtype": [_result]})(
        isotonic_regression
    )


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
