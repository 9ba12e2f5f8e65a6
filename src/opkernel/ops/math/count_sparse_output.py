"""Counts of values as sparse tensors: DenseCountSparseOutput, RaggedCountSparseOutput, SparseCountSparseOutput.

Source: TensorFlow core/ops/sparse_ops.cc (count_ops.cc), core/kernels/count_ops.cc.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.work_clock import check_seconds
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


_TABLE_SIZE = 4
"""A table of counts has at most so many places for each value."""
_SECONDS_OF_COUNTING = 2e-9
"""The least time that a value takes."""
_KEY_BITS = 63


@dataclass(frozen=True, slots=True)
class _Counter:
    """Counts values below `maxlength`, or all if that is negative."""

    minlength: int
    maxlength: int
    binary_output: bool
    output_type: DataType

    def count(self, values: Any, weights: Any, rows: Any, num_rows: int | None) -> Any:
        """Indices, counts and shape; the counts of a vector if `num_rows` is None.

        Args:
            values: Integers.
            weights: As many, or none.
            rows: The row of each value, or of each row of values, [rows, 1]; None for one row.
            num_rows: How many rows there are.
        """
        require(not values.size or values.min() >= 0, "Input values must all be non-negative")
        weights = weights.ravel() if weights.size and not self.binary_output else None
        rows = np.broadcast_to(0 if rows is None else rows, values.shape)
        if self.maxlength >= 0 and (values.size and values.max() >= self.maxlength):
            kept = values < self.maxlength
            values, rows = values[kept], rows[kept]
            weights = None if weights is None else weights[kept.ravel()]
        largest = int(values.max(initial=0))
        row, value, counts = self._counted(values, weights, rows, num_rows or 1, largest)
        check_allocation((value.size, 2), DataType.DT_INT64)
        width = self.maxlength if self.maxlength >= 0 else max(self.minlength, largest + 1)
        if num_rows is None:
            return value[:, None], counts, np.array([width], np.int64)
        return np.stack([row, value], axis=1), counts, np.array([num_rows, width], np.int64)

    def _counted(
        self, values: Any, weights: Any, rows: Any, num_rows: int, largest: int
    ) -> tuple[Any, Any, Any]:
        """The pairs of a row and a value that differ, in order, and how often each is there."""
        bits = largest.bit_length()
        if bits + num_rows.bit_length() > _KEY_BITS:
            (row, value), counts = self._counted_by_order(
                weights, rows.ravel(), values.ravel().astype(np.int64)
            )
            return row, value, counts
        keys = (values + (rows << bits)).ravel()
        if num_rows << bits <= _TABLE_SIZE * keys.size:
            found, counts = self._counted_in_table(weights, keys, num_rows << bits)
        else:
            (found,), counts = self._counted_by_order(weights, keys)
        return found >> bits, found & ((1 << bits) - 1), counts

    def _counted_in_table(self, weights: Any, keys: Any, size: int) -> tuple[Any, Any]:
        check_seconds(keys.size * _SECONDS_OF_COUNTING, "counting values")
        counts = np.bincount(keys, minlength=size)
        found = np.flatnonzero(counts)
        if weights is not None:
            return found, self._sums(keys, weights, size)[found]
        return found, self._ones_or(counts[found])

    def _counted_by_order(self, weights: Any, *keys: Any) -> tuple[list[Any], Any]:
        if weights is None and len(keys) == 1:
            check_seconds(keys[0].size * _SECONDS_OF_COUNTING, "counting values")
            keys = (np.sort(keys[0]),)
        else:
            order = stable_order(*keys)
            keys = tuple(key[order] for key in keys)
            weights = None if weights is None else weights[order]
        are_new = np.ones(keys[0].size, np.bool_)
        are_new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        starts = np.flatnonzero(are_new)
        found = [key[starts] for key in keys]
        if weights is not None:
            return found, self._sums(np.cumsum(are_new) - 1, weights, starts.size)
        return found, self._ones_or(np.diff(starts, append=keys[0].size))

    def _ones_or(self, counts: Any) -> Any:
        dtype = self.output_type.numpy_dtype
        return np.ones(counts.size, dtype) if self.binary_output else counts.astype(dtype)

    def _sums(self, places: Any, weights: Any, size: int) -> Any:
        """The sums of the weights by place, added one after the other."""
        sums = np.zeros(size, self.output_type.numpy_dtype)
        np.add.at(sums, places, weights)
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
    if values.ndim == 1:
        return counter.count(values, weights, None, None)
    require(len(values), "Invalid input: Shapes dimension cannot be 0.")
    rows = np.arange(values.shape[0])[:, None]
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
