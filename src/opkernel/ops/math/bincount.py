"""Numbers sorted into bins, and counted: Bucketize, HistogramFixedWidth, Bincount, DenseBincount, SparseBincount.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/bincount_op.cc, core/kernels/bucketize_op.cc,
core/kernels/histogram_op.cc.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape, unknown_shape
from opkernel.ops.input_checks import (
    require,
    require_equal,
    require_rank,
    require_rank_at_most,
    require_scalar,
    require_vector,
)
from opkernel.ops.registration import INDEX, NUMBERS, REAL_NUMBERS, register_kernel
from opkernel.types import Array, DataType

BUCKETIZE = register_op(
    "Bucketize(input: T) -> output: int32",
    attrs=["T: {int32, int64, float, double}", "boundaries: list(float)"],
    shape_fn=unchanged_shape,
    doc="For each element how many of the `boundaries`, which are sorted, are not above it.",
)


@register_kernel(
    BUCKETIZE, types={"T": (*INDEX, DataType.DT_FLOAT, DataType.DT_DOUBLE)}, factory=True
)
def bucketize(*, boundaries: list[float], xp: Any) -> Callable[[Any], Any]:
    edges = np.array(boundaries, np.float32)
    require(not (edges[1:] < edges[:-1]).any(), "Expected sorted boundaries")
    edges = xp.asarray(edges)

    def bucket(tensor: Any) -> Any:
        # Integers are compared as float32, as C++ converts them.
        values = tensor if tensor.dtype.kind == "f" else tensor.astype(np.float32)
        return xp.searchsorted(edges, values, side="right").astype(np.int32)

    def bucket_by_comparisons(tensor: Any) -> Any:
        # NaN is below and above nothing: where a value goes is decided by the places that are looked at.
        values = np.asarray(tensor).astype(np.float64).reshape(-1)
        found = [bisect_right(boundaries, value) for value in in_time(values.tolist())]
        return np.array(found, np.int32).reshape(tensor.shape)

    return bucket_by_comparisons if np.isnan(boundaries).any() else bucket


def histogram_fixed_width_shape(c: InferenceContext) -> None:
    """[nbins], which is input 2."""
    value_range = c.with_rank(c.input(1), 1)
    c.with_rank(c.input(2), 0)
    c.with_value(c.dim(value_range, 0), 2)
    nbins = c.input_tensor(2)
    if nbins is None:
        c.set_output(0, c.unknown_shape_of_rank(1))
        return
    if int(nbins) <= 0:
        raise InvalidArgumentError(f"Requires nbins > 0: {int(nbins)}")
    c.set_output(0, c.vector(int(nbins)))


HISTOGRAM_FIXED_WIDTH = register_op(
    "HistogramFixedWidth(values: T, value_range: T, nbins: int32) -> out: dtype",
    attrs=["T: {int32, int64, float, double}", "dtype: {int32, int64} = DT_INT32"],
    shape_fn=histogram_fixed_width_shape,
    doc="""How many `values` lie in each of `nbins` equal parts of `value_range`, [2].

Values outside the range count in the first or in the last part.
""",
)


@register_kernel(HISTOGRAM_FIXED_WIDTH, types={"T": REAL_NUMBERS, "dtype": INDEX})
def histogram_fixed_width(values: Any, value_range: Any, nbins: Any, *, dtype: DataType) -> Any:
    _check(values, value_range, nbins)
    low, high = value_range.astype(np.float64)  # first, as integers may overflow
    (size,) = check_allocation((int(nbins),), dtype)
    places = (np.ravel(values).astype(np.float64) - low) / ((high - low) / size)
    bins = np.fmin(np.fmax(places, 0), size - 1)
    return np.bincount(bins.astype(np.int32), minlength=size).astype(dtype.numpy_dtype)


def _check(values: Any, value_range: Any, nbins: Any) -> None:
    require_vector(value_range, "value_range should be a vector.")
    require_equal(value_range.shape[0], 2, "value_range should be a vector of 2 elements.")
    require_scalar(nbins, "nbins should be a scalar.")
    low, high = value_range
    if not low < high:
        raise InvalidArgumentError(
            f"value_range should satisfy value_range[0] < value_range[1], but got '[{low:g}, {high:g}]'"
        )
    if nbins <= 0:
        raise InvalidArgumentError(f"nbins should be a positive number, but got '{nbins}'")
    require(not np.isnan(values).any(), "Histogram values must not contain NaN")


_COUNTS = "{int32, int64, float, double}"
_INDEXED = ["Tidx: {int32, int64}", f"T: {_COUNTS}", "binary_output: bool = false"]
_WEIGHTS = """
weights: one for each value, or an empty tensor where all are 1.
"""


def _check_size(size: int) -> int:
    if size < 0:
        raise InvalidArgumentError(f"size ({size}) must be non-negative")
    return size


def bincount_shape(c: InferenceContext) -> None:
    """[size]; the size is input 1."""
    c.with_rank(c.input(1), 0)
    size = c.input_tensor(1)
    c.set_output(0, c.vector(c.unknown_dim() if size is None else _check_size(int(size))))


def dense_bincount_shape(c: InferenceContext) -> None:
    """A vector or scalar -> [size], a matrix [rows, ...] -> [rows, size]; the size is input 1."""
    values = c.with_rank_at_most(c.input(0), 2)
    c.with_rank(c.input(1), 0)
    size = c.input_tensor(1)
    if size is not None:
        _check_size(int(size))
    if not c.rank_known(values):
        c.set_output(0, c.unknown_shape())
    elif size is None:
        c.set_output(0, c.unknown_shape_of_rank(c.rank(values)))
        if c.rank(values) == 0:  # kernels give a vector
            c.doubt_output(0)
    elif c.rank(values) == 2:
        c.set_output(0, c.matrix(c.dim(values, 0), int(size)))
    else:
        c.set_output(0, c.vector(int(size)))


def sparse_bincount_shape(c: InferenceContext) -> None:
    """[size], or [rows, size] for a sparse matrix; known where inputs 2 and 3 are."""
    size = c.input_tensor(3)
    if size is None:
        c.set_output(0, c.unknown_shape())
        return
    require_scalar(size, f"Shape must be rank 0 but is rank {size.ndim}")
    _check_size(int(size))
    dense_shape = c.input_tensor(2)
    if dense_shape is None:
        c.set_output(0, c.unknown_shape())
    elif dense_shape.size == 1:
        c.set_output(0, c.vector(int(size)))
    elif dense_shape.size == 2:
        c.set_output(0, c.matrix(int(dense_shape.reshape(-1)[0]), int(size)))
    else:
        raise InvalidArgumentError("Input must be less than rank 2")


BINCOUNT = register_op(
    "Bincount(arr: int32, size: int32, weights: T) -> bins: T",
    attrs=[f"T: {_COUNTS}"],
    shape_fn=bincount_shape,
    doc=f"The sum of the weights of each of the values 0 ... `size` - 1 in `arr`.\n{_WEIGHTS}",
    traits="cost=linear",
)

DENSE_BINCOUNT = register_op(
    "DenseBincount(input: Tidx, size: Tidx, weights: T) -> output: T",
    attrs=_INDEXED,
    shape_fn=dense_bincount_shape,
    doc=f"The sum of the weights of each value in a vector, or in each row of a matrix.\n{_WEIGHTS}",
)

RAGGED_BINCOUNT = register_op(
    "RaggedBincount(splits: int64, values: Tidx, size: Tidx, weights: T) -> output: T",
    attrs=_INDEXED,
    shape_fn=unknown_shape,
    doc=f"The sum of the weights of each value in each row of a ragged matrix.\n{_WEIGHTS}",
)

SPARSE_BINCOUNT = register_op(
    "SparseBincount(indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T) -> output: T",
    attrs=_INDEXED,
    shape_fn=sparse_bincount_shape,
    doc=f"The sum of the weights of each value of a sparse vector, or row of a matrix.\n{_WEIGHTS}",
)


@dataclass(frozen=True, slots=True)
class Bins:
    """Counts values 0 ... `size` - 1; greater ones are left out."""

    size: int
    dtype: DataType
    binary: bool = False
    """Only note whether a value is there."""

    @classmethod
    def of(cls, size: Any, dtype: DataType, binary: bool = False) -> "Bins":
        """Bins for the input `size`, which must be a scalar that is not negative."""
        require_scalar(size, f"Shape must be rank 0 but is rank {size.ndim}")
        return cls(_check_size(int(size)), dtype, binary)

    def check_weights(self, values: Any, weights: Any) -> None:
        """Raise InvalidArgumentError unless there is a weight for each value, or none."""
        if weights.size not in (0, values.size) and not self.binary:
            raise InvalidArgumentError("Input indices and weights must have the same size.")

    def count(self, values: Array, weights: Array, rows: Array | None, num_rows: int) -> Array:
        """The counts [num_rows, size].

        Args:
            values: the values, flat.
            weights: their weights, flat; or empty. Not looked at if `binary`.
            rows: the row of each value, or None for one row.
            num_rows: how many rows there are.

        Raises:
            InvalidArgumentError: a value is negative, or weights are missing.
        """
        require(not values.size or values.min() >= 0, "Input arr must be non-negative!")
        self.check_weights(values, weights)
        shape = check_allocation((num_rows, self.size), self.dtype)
        counts = np.zeros(shape, self.dtype.numpy_dtype)
        kept = values < self.size
        places = values[kept].astype(np.int64)
        if rows is not None:
            places += rows[kept] * self.size
        flat = counts.reshape(-1)
        if self.binary:
            flat[places] = 1
        elif weights.size:
            np.add.at(flat, places, weights[kept])
        else:
            np.add.at(flat, places, counts.dtype.type(1))
        return counts


@register_kernel(BINCOUNT, types={"T": NUMBERS})
def bincount(arr: Any, size: Any, weights: Any, *, T: DataType) -> Array:
    bins = Bins.of(size, T)
    return bins.count(np.ravel(arr), np.ravel(weights), None, 1).reshape(bins.size)


_TYPES = {"T": NUMBERS, "Tidx": INDEX}


@register_kernel(DENSE_BINCOUNT, types=_TYPES)
def dense_bincount(
    input: Any, size: Any, weights: Any, *, T: DataType, binary_output: bool
) -> Array:
    bins = dense_bins(input, size, weights, T, binary_output)
    rows, num_rows = None, 1
    if input.ndim == 2:
        num_rows = input.shape[0]
        rows = np.repeat(np.arange(num_rows), input.shape[1])
    counts = bins.count(np.ravel(input), np.ravel(weights), rows, num_rows)
    return counts if input.ndim == 2 else counts[0]


def dense_bins(input: Any, size: Any, weights: Any, T: DataType, binary_output: bool) -> Bins:
    """The bins of DenseBincount; raises InvalidArgumentError where the shapes do not fit."""
    require_rank_at_most(input, 2, f"Shape must be at most rank 2 but is rank {input.ndim}")
    bins = Bins.of(size, T, binary_output)
    if weights.shape != input.shape and weights.size > 0:
        raise InvalidArgumentError(
            "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it "
            f"acts as all weights equal to 1. Received {list(weights.shape)}"
        )
    return bins


@register_kernel(RAGGED_BINCOUNT, types=_TYPES)
def ragged_bincount(
    splits: Any, values: Any, size: Any, weights: Any, *, T: DataType, binary_output: bool
) -> Array:
    bins = Bins.of(size, T, binary_output)
    ends, flat = np.ravel(splits), np.ravel(values)
    require(ends.size, "Splits must be non-empty")
    return bins.count(flat, _as_many(weights, flat), rows_of_splits(ends, flat.size), ends.size - 1)


def rows_of_splits(ends: Any, size: int) -> Array:
    """The row of each of so many values: the first one that ends, as all later ones do, behind it.

    Raises:
        InvalidArgumentError: the splits do not begin with 0, or do not end with the number of values.
    """
    require_equal(ends[0], 0, "Splits must start with 0, not with {}")
    require_equal(ends[-1], size, "Splits must end with the number of values, got {} instead of {}")
    bounds = np.minimum(np.maximum.accumulate(ends), size)
    return np.repeat(np.arange(ends.size - 1), np.diff(bounds))


@register_kernel(SPARSE_BINCOUNT, types=_TYPES)
def sparse_bincount(
    indices: Any,
    values: Any,
    dense_shape: Any,
    size: Any,
    weights: Any,
    *,
    T: DataType,
    binary_output: bool,
) -> Array:
    bins = Bins.of(size, T, binary_output)
    _check_sparse(indices, values, dense_shape)
    require(dense_shape.size, "The shape argument requires at least one element.")
    if dense_shape.size == 1:
        return bins.count(values, np.ravel(weights), None, 1).reshape(bins.size)
    return bins.count(values, _as_many(weights, values), indices[:, 0], int(dense_shape[0]))


def _as_many(weights: Any, values: Array) -> Array:
    """The weights of the values; TensorFlow lets there be more where it counts by rows."""
    return np.ravel(weights)[: values.size]


def _check_sparse(indices: Any, values: Any, dense_shape: Any) -> None:
    """Raise InvalidArgumentError unless these are the parts of a sparse tensor."""
    for part, tensor, rank in (
        ("indices", indices, 2),
        ("values", values, 1),
        ("shape", dense_shape, 1),
    ):
        require_rank(tensor, rank, f"Sparse {part} must be rank {rank} but is rank {tensor.ndim}")
    if indices.shape[0] != values.shape[0]:
        raise InvalidArgumentError(
            f"Number of elements in indices ({indices.shape[0]}) and values ({values.shape[0]}) do not match"
        )
    require_equal(
        indices.shape[1], dense_shape.shape[0], "Index rank ({}) and shape rank ({}) do not match"
    )
    outside = ((indices < 0) | (indices >= dense_shape)).any(axis=1)
    if outside.any():
        where = int(outside.argmax())
        raise InvalidArgumentError(
            f"Sparse index tuple indices[{where}, :] = {indices[where].tolist()} is out of bounds"
        )
