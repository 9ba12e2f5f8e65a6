"""Reductions by segment of rows that indices pick, and their gradients.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/segment_reduction_ops_impl.h.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.shapes.shape_handles import DimensionHandle
from opkernel.ops.input_checks import (
    require,
    require_equal,
    require_rank_at_least,
    require_scalar,
    require_vector,
)
from opkernel.ops.math.segment import Runs, check_sorted_ids
from opkernel.ops.registration import FLOATS, INDEX, NARROW_FLOATS, REAL_NUMBERS, register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.types import Array, DataType, as_dtype

Mean = Literal["Sum", "Mean", "SqrtN"]
"""The divisor of a segment's sum: none, the number of its rows, or the root of that."""

_MAX_SEGMENT = 2**31 - 1


def _dim_of_input_3(c: InferenceContext, name: str) -> DimensionHandle:
    tensor = c.input_tensor(3)
    if tensor is None:
        return c.unknown_dim()
    size = int(tensor)
    if size < 0:
        raise InvalidArgumentError(f"Cannot specify a negative value for {name}")
    return c.make_dim(size)


def sparse_segment_shape(c: InferenceContext) -> None:
    """[rows, rest...] -> [?, rest...], or [num_segments, rest...] where input 3 is that."""
    data = c.with_rank_at_least(c.input(0), 1)
    c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1))
    segments = c.unknown_dim()
    if c.num_inputs() > 3:
        c.with_rank(c.input(3), 0)
        segments = _dim_of_input_3(c, "num_segments")
    c.set_output(0, c.concatenate(c.vector(segments), c.subshape(data, 1)))


def sparse_segment_grad_shape(c: InferenceContext) -> None:
    """[segments, rest...] -> [output_dim0, rest...], or [?, rest...] and [?]."""
    data = c.with_rank_at_least(c.input(0), 1)
    c.merge(c.input(2), c.with_rank(c.input(1), 1))
    c.with_rank(c.input(3), 0)
    is_whole = c.num_outputs() == 1
    rows = _dim_of_input_3(c, "output_dim0") if is_whole else c.unknown_dim()
    c.set_output(0, c.concatenate(c.vector(rows), c.subshape(data, 1)))
    if not is_whole:
        c.set_output(1, c.vector(c.unknown_dim()))


_FLOATING = "bfloat16, half, float, double"
_INDEX = "{int32, int64} = DT_INT32"
_WHAT: dict[Mean, str] = {
    "Sum": "The sums",
    "Mean": "The means",
    "SqrtN": "The sums, divided by the roots of the numbers of rows,",
}


def _declare(kind: Mean, *, counted: bool) -> OpHandle:
    name, num_segments, attrs = f"SparseSegment{kind}", "", []
    if counted:
        name, num_segments = f"{name}WithNumSegments", ", num_segments: Tnumsegments"
        attrs = [f"Tnumsegments: {_INDEX}"]
    return register_op(
        f"{name}(data: T, indices: Tidx, segment_ids: Tsegmentids{num_segments}) -> output: T",
        attrs=[
            f"T: {{{'realnumbertype' if kind == 'Sum' else _FLOATING}}}",
            f"Tidx: {_INDEX}",
            *attrs,
            f"Tsegmentids: {_INDEX}",
            "sparse_gradient: bool = false",
        ],
        shape_fn=sparse_segment_shape,
        doc=f"{_WHAT[kind]} of the rows `indices` of `data`, by the sorted `segment_ids`.",
    )


def _declare_grad(name: str, more: str, doc: str) -> OpHandle:
    return register_op(
        f"{name}(grad: T, indices: Tidx, segment_ids: Tsegmentids, {more}",
        attrs=[f"T: {{{_FLOATING}}}", f"Tidx: {_INDEX}", f"Tsegmentids: {_INDEX}"],
        shape_fn=sparse_segment_grad_shape,
        doc=doc,
    )


def _summed(
    data: Any, indices: Any, segment_ids: Any, segments: int | None, kind: Mean, T: DataType
) -> Array:
    """The reduction; half and bfloat16 accumulate in float, segments without rows are 0."""
    _check_vectors(indices, segment_ids)
    require(segments is None or segments >= 0, "segment ids must be >= 0")
    require_rank_at_least(data, 1, "Shape must be at least rank 1")
    last = int(segment_ids[-1]) if segment_ids.size else -1
    if last >= _MAX_SEGMENT:
        raise InvalidArgumentError(
            f"Last segment id must be < kintmax, got {last} limit {_MAX_SEGMENT}"
        )
    require(segments is None or last < segments, "segment ids must be < num_segments")
    check_sorted_ids(segment_ids)
    shape = check_allocation((last + 1 if segments is None else segments, *data.shape[1:]), T)
    output = np.zeros(shape, T.numpy_dtype)
    _check_indices(indices, data.shape[0])
    if not indices.size:
        return output
    rows = data[indices]
    rows = rows.astype(np.float32) if T in NARROW_FLOATS else rows
    runs = Runs.of(segment_ids)
    counts = runs.counts(indices.size).reshape(-1, *(1 for _ in data.shape[1:]))
    sums = runs.reduce(rows, "Sum")
    output[runs.segments] = sums if kind == "Sum" else sums / _divisor(counts, kind, rows.dtype)
    return output


def _check_vectors(indices: Any, segment_ids: Any) -> None:
    for name, tensor in (("indices", indices), ("segment_ids", segment_ids)):
        require_vector(tensor, f"{name} should be a vector.")
    require_equal(indices.size, segment_ids.size, "segment_ids and indices should have same size.")


def _check_indices(indices: Any, rows: int) -> None:
    outside = (indices < 0) | (indices >= rows)
    if outside.any():
        place = int(outside.argmax())
        raise InvalidArgumentError(
            f"Bad: indices[{place}] == {indices[place]} out of range [0, {rows})"
        )


def _divisor(counts: Array, kind: Mean, dtype: np.dtype[Any]) -> Array:
    root: Array = np.sqrt(counts) if kind == "SqrtN" else counts
    return root.astype(dtype)


def _kernel(kind: Mean) -> Callable[..., Array]:
    def reduced(data: Any, indices: Any, segment_ids: Any, *, T: DataType) -> Array:
        return _summed(data, indices, segment_ids, None, kind, T)

    return reduced


def _counted_kernel(kind: Mean) -> Callable[..., Array]:
    def reduced(
        data: Any, indices: Any, segment_ids: Any, num_segments: Any, *, T: DataType
    ) -> Array:
        require_scalar(num_segments, "num_segments should be a scalar, not shape {}")
        return _summed(data, indices, segment_ids, int(num_segments), kind, T)

    return reduced


def _spread(
    grad: Any, indices: Any, segment_ids: Any, rows: Any, kind: Mean, T: DataType
) -> tuple[Array, Array]:
    """The sums of the segments' gradients for each index that is there, and these, ascending."""
    _check_vectors(indices, segment_ids)
    require_rank_at_least(grad, 1, "Index must be less than 0, got 0")
    if rows < 0:
        raise InvalidArgumentError(f"Expected a non-negative size, got {rows}")
    if rows == 0 or indices.size == 0:
        return np.zeros((0, *grad.shape[1:]), T.numpy_dtype), indices[:0].copy()
    segments = grad.shape[0]
    require(segment_ids[-1] < segments, "Invalid number of segments")
    _check_range("Segment id", segment_ids, segments)
    _check_range("Index", indices, int(rows))
    parts = grad.astype(np.float32) if T in NARROW_FLOATS else grad
    if kind != "Sum":
        counts = np.maximum(np.bincount(segment_ids, minlength=segments), 1)
        counts = counts.reshape(-1, *(1 for _ in grad.shape[1:]))
        parts = parts * (1 / _divisor(counts, kind, parts.dtype))
    check_allocation((indices.size, *grad.shape[1:]), T)  # the rows to add up
    check_allocation((indices.size,), as_dtype(indices.dtype))
    order = stable_order(indices)
    runs = Runs.of(indices[order])
    return runs.reduce(parts[segment_ids[order]], "Sum").astype(T.numpy_dtype), runs.segments


def _check_range(what: str, values: Array, limit: int) -> None:
    outside = (values < 0) | (values >= limit)
    if outside.any():
        raise InvalidArgumentError(
            f"{what} {values[int(outside.argmax())]} out of range [0, {limit})."
        )


def _grad_kernel(kind: Mean, *, whole: bool) -> Callable[..., Any]:
    name = "output_dim0" if whole else "dense_output_dim0"

    def gradient(grad: Any, indices: Any, segment_ids: Any, rows: Any, *, T: DataType) -> Any:
        require_scalar(rows, f"{name} should be a scalar.")
        sums, places = _spread(grad, indices, segment_ids, rows, kind, T)
        if not whole:
            return sums, places
        output = np.zeros(check_allocation((int(rows), *grad.shape[1:]), T), T.numpy_dtype)
        output[places] = sums
        return output

    return gradient


for _kind in _WHAT:
    _name, _indexed = f"SparseSegment{_kind}", {"Tidx": INDEX, "Tsegmentids": INDEX}
    _types = {"T": REAL_NUMBERS if _kind == "Sum" else FLOATS, **_indexed}
    register_kernel(_declare(_kind, counted=False), types=_types)(_kernel(_kind))
    register_kernel(_declare(_kind, counted=True), types=_types)(_counted_kernel(_kind))
    _grad = _declare_grad(
        f"{_name}Grad",
        "output_dim0: int32) -> output: T",
        f"The gradient of {_name} with respect to its data, of `output_dim0` rows.",
    )
    _grad_v2 = _declare_grad(
        f"{_name}GradV2",
        "dense_output_dim0: int32) -> output: T, sorted_unique_indices: Tidx",
        f"The rows of the gradient of {_name} that need not be 0, and their indices.",
    )
    _types = {"T": FLOATS, **_indexed}
    register_kernel(_grad, types=_types)(_grad_kernel(_kind, whole=True))
    register_kernel(_grad_v2, types=_types)(_grad_kernel(_kind, whole=False))


def _gradient(kind: str) -> g.GradientFunction:
    """The gradient function of a reduction, by the ops that give it whole and as rows."""

    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        data, indices, segment_ids, *others = op.inputs
        shape = g.nodes.Shape(data)
        rows = g.nodes.StridedSlice(shape, [0], [1], [1], shrink_axis_mask=1)
        constants = [None] * (2 + len(others))
        if not op.get_attr("sparse_gradient"):
            dense = getattr(g.nodes, f"SparseSegment{kind}Grad")
            return [dense(grad, indices, segment_ids, rows), *constants]
        sparse = getattr(g.nodes, f"SparseSegment{kind}GradV2")
        values, used = sparse(grad, indices, segment_ids, rows)
        return [g.IndexedSlices(values, used, shape), *constants]

    return gradient


for _kind in _WHAT:
    _name = f"SparseSegment{_kind}"
    g.register_gradient(_name, f"{_name}WithNumSegments")(_gradient(_kind))
