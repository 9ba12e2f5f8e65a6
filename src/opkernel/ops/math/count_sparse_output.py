"""Counts of values as sparse tensors: DenseCountSparseOutput, RaggedCountSparseOutput, SparseCountSparseOutput.

Source: TensorFlow core/ops/sparse_ops.cc (count_ops.cc), core/kernels/count_ops.cc.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation, from_attrs
from opkernel.opdef import InferenceContext, OpHandle, OpShapeInferenceFn, register_op
from opkernel.opdef.common_shapes.rules import set_outputs, shape_rule
from opkernel.ops.input_checks import require, require_rank, require_vector
from opkernel.ops.math.bincount import rows_of_splits
from opkernel.ops.registration import INDEX, INTEGERS, register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType, TensorShape


def _set_counts(c: InferenceContext, rank: int) -> None:
    set_outputs(c, [c.matrix(None, rank), c.vector(None), c.vector(rank)])


def dense_count_shape(c: InferenceContext) -> None:
    """A sparse tensor of the values' rank."""
    values, weights = c.input(0), c.input(1)
    if c.num_elements(weights).value != 0:
        values = c.merge(weights, values)
    _set_counts(c, c.rank(values))


def ragged_count_shape(c: InferenceContext) -> None:
    """A sparse tensor of one rank more than the flat values."""
    rank = c.rank(c.input(1))
    _set_counts(c, rank + 1 if c.rank_known(c.input(1)) else rank)


_ATTRS = [
    "T: {int32, int64}",
    "minlength: int >= -1 = -1",
    "maxlength: int >= -1 = -1",
    "binary_output: bool",
    "output_type: {int32, int64, float, double}",
]


def _declare(signature: str, shape_fn: OpShapeInferenceFn, where: str) -> OpHandle:
    return register_op(
        f"{signature} -> output_indices: int64, output_values: output_type, output_dense_shape: int64",
        attrs=_ATTRS,
        shape_fn=shape_fn,
        doc=f"How often each value is in {where}.",
    )


DENSE_COUNT_SPARSE_OUTPUT = _declare(
    "DenseCountSparseOutput(values: T, weights: output_type)",
    dense_count_shape,
    "a vector, or in each row of a matrix",
)
RAGGED_COUNT_SPARSE_OUTPUT = _declare(
    "RaggedCountSparseOutput(splits: int64, values: T, weights: output_type)",
    ragged_count_shape,
    "each row of a ragged matrix",
)
SPARSE_COUNT_SPARSE_OUTPUT = _declare(
    "SparseCountSparseOutput(indices: int64, values: T, dense_shape: int64, weights: output_type)",
    shape_rule("[?, rank] -> [?, rank], [?], [rank]"),
    "a sparse vector, or in each row, or higher part, of a sparse matrix or tensor",
)


_TYPES = {
    "T": INDEX,
    # As TensorFlow registers them; the op allows fewer.
    "output_type": (*INTEGERS, DataType.DT_FLOAT, DataType.DT_DOUBLE),
}


@dataclass(frozen=True, slots=True)
class _Counter:
    """Counts values below `maxlength`, or all if that is negative."""

    minlength: int
    maxlength: int
    binary_output: bool
    output_type: DataType

    def count(self, values: Any, weights: Any, rows: Any, num_rows: int | None) -> Any:
        """Indices, counts and shape; the counts of a vector if `num_rows` is None."""
        flat = values.reshape(-1).astype(np.int64)
        require(not flat.size or flat.min() >= 0, "Input values must all be non-negative")
        kept = flat < self.maxlength if self.maxlength >= 0 else np.ones(flat.size, np.bool_)
        flat = flat[kept]
        row = np.zeros(flat.size, np.int64) if rows is None else rows[kept]
        order = stable_order(row, flat)
        pairs = np.stack([row[order], flat[order]], axis=1)
        is_first = np.ones(len(pairs), np.bool_)
        is_first[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
        check_allocation((int(is_first.sum()), 2), DataType.DT_INT64)
        counts = self._sums(weights.reshape(-1)[kept][order] if weights.size else None, is_first)
        width = (
            self.maxlength
            if self.maxlength >= 0
            else max(self.minlength, int(flat.max(initial=0)) + 1)
        )
        indices = pairs[is_first]
        if num_rows is None:
            return indices[:, 1:], counts, np.array([width], np.int64)
        return indices, counts, np.array([num_rows, width], np.int64)

    def _sums(self, weights: Any, is_first: Any) -> Any:
        dtype = self.output_type.numpy_dtype
        starts = np.flatnonzero(is_first)
        if self.binary_output:
            return np.ones(starts.size, dtype)
        if weights is None:
            return np.diff(np.append(starts, is_first.size)).astype(dtype)
        groups = np.cumsum(is_first) - 1
        sums = np.zeros(starts.size, dtype)
        np.add.at(sums, groups, weights)
        return sums


def _check_weights(values: Any, weights: Any) -> None:
    if weights.size and weights.shape != values.shape:
        raise InvalidArgumentError(
            "Weights and values must have the same shape. Weight shape: "
            f"{TensorShape(weights.shape)}; values shape: {TensorShape(values.shape)}"
        )


@register_kernel(DENSE_COUNT_SPARSE_OUTPUT, types=_TYPES)
@from_attrs(counter=_Counter)
def dense_count(values: Any, weights: Any, *, counter: _Counter) -> Any:
    if values.ndim not in (1, 2):
        raise InvalidArgumentError(
            f"Input must be a 1 or 2-dimensional tensor. Got: {TensorShape(values.shape)}"
        )
    _check_weights(values, weights)
    require(0 not in values.shape, "Invalid input: Shapes dimension cannot be 0.")
    if values.ndim == 1:
        return counter.count(values, weights, None, None)
    rows = np.repeat(np.arange(values.shape[0]), values.shape[1])
    return counter.count(values, weights, rows, values.shape[0])


@register_kernel(RAGGED_COUNT_SPARSE_OUTPUT, types=_TYPES)
@from_attrs(counter=_Counter)
def ragged_count(splits: Any, values: Any, weights: Any, *, counter: _Counter) -> Any:
    _check_weights(values, weights)
    ends = splits.reshape(-1)
    require(ends.size >= 2, "Must provide at least 2 elements for the splits argument")
    return counter.count(values, weights, rows_of_splits(ends, values.size), ends.size - 1)


@register_kernel(SPARSE_COUNT_SPARSE_OUTPUT, types=_TYPES)
@from_attrs(counter=_Counter)
def sparse_count(
    indices: Any, values: Any, dense_shape: Any, weights: Any, *, counter: _Counter
) -> Any:
    _check_sparse(indices, values, dense_shape)
    _check_weights(values, weights)
    if dense_shape.size == 1:
        return counter.count(values, weights, None, None)
    return counter.count(values, weights, indices[:, 0], int(dense_shape[0]))


def _check_sparse(indices: Any, values: Any, dense_shape: Any) -> None:
    require_rank(indices, 2, "Input indices must be a 2-dimensional tensor. Got: {}")
    require_vector(values, "Input values must be a vector. Got: {}")
    require_vector(dense_shape, "Input shape must be a vector. Got: {}")
    if values.size != indices.shape[0]:
        raise InvalidArgumentError(
            f"Number of values must match first dimension of indices. Got {values.size} values, "
            f"indices shape: {TensorShape(indices.shape)}"
        )
    if dense_shape.size != indices.shape[1]:
        raise InvalidArgumentError(
            "Number of dimensions must match second dimension of indices. Got "
            f"{dense_shape.size} dimensions, indices shape: {TensorShape(indices.shape)}"
        )
    if not dense_shape.size or (dense_shape < 0).any():
        raise InvalidArgumentError(f"The shape {dense_shape.tolist()} must have sizes, from 0 on")
    outside = ((indices < 0) | (indices >= dense_shape)).any(axis=1)
    if outside.any():
        at = int(outside.argmax())
        raise InvalidArgumentError(
            f"Invalid index value at {at}: {indices[at].tolist()} is not in the dense shape {dense_shape.tolist()}"
        )
