"""Elements that differ: Unique, UniqueWithCounts, ListDiff; and places in sorted rows: LowerBound, UpperBound.

Elements are equal as `==` says: each NaN is an element of its own, and 0 is -0. The 16-bit floats
are told apart by their bits, as TensorFlow's hashing of them does.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/unique_op.cc, listdiff_op.cc, searchsorted_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.work_clock import SLOW, array_work, check_seconds, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation, in_pieces
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes.rules import check_input_ranks, shape_rule
from opkernel.opdef.shapes.shape_handles import DimensionHandle
from opkernel.ops.input_checks import require, require_equal, require_rank, require_vector
from opkernel.ops.registration import INDEX, REAL_NUMBERS, register_kernel
from opkernel.types import DataType, as_dtype

_OUT_IDX = "out_idx: {int32, int64} = DT_INT32"
_NUMBERS_AND_STRINGS = (*REAL_NUMBERS, DataType.DT_STRING)
_UNIQUE_TYPES = (*_NUMBERS_AND_STRINGS, DataType.DT_BOOL)
_NANS_OF_16_BITS = 1 << 16


def unique_shape(c: InferenceContext) -> None:
    """An unknown number of elements, and an index for each of the input."""
    found = c.vector(None)
    c.set_output(0, found)
    c.set_output(1, c.input(0))
    if c.num_outputs() > 2:
        c.set_output(2, found)  # TensorFlow does not check the rank of this op's input
    else:
        c.with_rank(c.input(0), 1)


def unique_v2_shape(c: InferenceContext) -> None:
    """An unknown number of slices, and an index for each along `axis`."""
    c.set_output(0, c.unknown_shape_of_rank(c.rank(c.input(0))))
    if c.num_outputs() > 2:
        c.set_output(2, c.vector(None))
    c.set_output(1, c.vector(_number_of_slices(c)))


def _number_of_slices(c: InferenceContext) -> DimensionHandle | None:
    dims, axis = c.input(0).dims, c.input_tensor(1)
    if dims is None or axis is None:
        return None
    return dims[_checked_axis(axis, len(dims))]


def _checked_axis(axis: Any, rank: int) -> int:
    """The axis that the vector `axis` holds; an empty one is that of a vector."""
    require_vector(axis, "axis expects a 1D vector.")
    require(len(axis) <= 1, "axis does not support input tensors larger than 1 elements")
    if len(axis) == 0:
        require(rank == 1, "unique expects a 1D vector.")
        return 0
    value = int(axis[0])
    require(-rank <= value < rank, f"axis has to be between [0, {rank})")
    return value % rank


_AT_ONCE = 1 << 20
"""So many narrow integers are counted at once."""
_SECONDS_A_KEY = 3e-8
"""The time that sorting takes at least."""
_WIDE = 16
"""Slices of more elements are compared as strings of bytes."""


class _Groups(NamedTuple):
    """Elements in groups of equals, in the order in which the groups first appear."""

    first: Any
    """Where each group first appears."""
    member_of: Any
    """The group of each element."""
    counts: Any


def _groups(keys: Any, dtype: Any = np.int64) -> _Groups:
    """The groups of equal keys, as numbers of a type."""
    if keys.dtype.itemsize <= 2 and keys.dtype.kind in "iub":
        return _groups_of_narrow(keys, dtype)
    check_seconds(keys.size * _SECONDS_A_KEY, "finding equal elements")
    _, first, inverse, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first)
    rank = np.empty(len(order), dtype)
    rank[order] = np.arange(len(order))
    return _Groups(first[order], rank[inverse.reshape(-1)], counts[order])


def _groups_of_narrow(keys: Any, dtype: Any) -> _Groups:
    """The groups of integers of which there are few, counted in a table."""
    flat = keys.reshape(-1).view(f"u{keys.dtype.itemsize}")
    most = 1 << 8 * flat.dtype.itemsize
    counts, first = np.zeros(most, np.int64), np.full(most, flat.size)
    for start in in_time(range(0, flat.size, _AT_ONCE), SLOW):
        part = flat[start : start + _AT_ONCE]
        found, places = np.unique(part, return_index=True)
        first[found] = np.minimum(first[found], start + places)
        counts += np.bincount(part, minlength=most)
    order = np.argsort(first, kind="stable")[: np.count_nonzero(counts)]
    rank = np.zeros(most, dtype)
    rank[order] = np.arange(len(order))
    return _Groups(first[order], rank[flat].reshape(keys.shape), counts[order])


def _keys(values: Any) -> Any:
    """For a vector, values that NumPy finds equal where TensorFlow finds the elements equal."""
    if values.dtype.itemsize != 2 or values.dtype.kind in "iu":
        return values
    bits = values.view(np.uint16).astype(np.int64)
    nans = np.flatnonzero(np.isnan(values))
    bits[nans] = _NANS_OF_16_BITS + nans
    return bits


NumberRows = Callable[[Any], Any]
"""A function as `numbers_of_rows`."""


def numbers_of_rows(rows: Any) -> Any:
    """For each row of a matrix of unsigned integers a number that equal rows share, int64."""
    numbers: dict[bytes, int] = {}
    timed = in_time(rows, array_work(rows.shape[1]))
    found = (numbers.setdefault(row.tobytes(), len(numbers)) for row in timed)
    return np.fromiter(found, np.int64, len(rows))


def _bits(tensor: Any) -> Any:
    """Unsigned integers that are equal where the elements are; None for elements that have none of one size."""
    kind, itemsize = tensor.dtype.kind, tensor.dtype.itemsize
    if kind == "f" and itemsize > 2:
        if np.isnan(tensor).any():
            return None
        tensor = tensor + tensor.dtype.type(0)  # makes -0 the other 0
    elif kind not in "iub":
        return None
    return tensor.view(f"u{itemsize}")


def _slice_keys(tensor: Any, axis: int, number_rows: NumberRows) -> Any:
    """For each slice along `axis` a number that equal slices share."""
    slices = np.moveaxis(tensor, axis, 0)
    count = len(slices)
    keys = np.zeros(count, np.int64)
    if slices.size == 0:
        return keys
    is_wide = slices.size > _WIDE * count
    bits = _bits(slices) if is_wide else None
    if bits is None:
        bits = _groups(_keys(slices.reshape(-1))).member_of.view(np.uint64)
    elements = np.ascontiguousarray(bits.reshape(count, -1))
    if is_wide:
        return number_rows(elements)
    for column in in_time(elements.T, SLOW):
        keys = _groups(keys * (column.max(initial=0) + 1) + column).member_of
    return keys


def _of_vector(x: Any, out_idx: DataType, number_rows: NumberRows) -> tuple[Any, ...]:
    require_vector(x, "unique expects a 1D vector.")
    first, member_of, counts = _groups(_keys(x), out_idx.numpy_dtype)
    _check_found(x, 0, len(first), out_idx)
    return x[first], member_of, counts.astype(out_idx.numpy_dtype)


def _of_slices(x: Any, axis: Any, out_idx: DataType, number_rows: NumberRows) -> tuple[Any, ...]:
    chosen = _checked_axis(axis, x.ndim)
    first, member_of, counts = _groups(_slice_keys(x, chosen, number_rows))
    _check_found(x, chosen, len(first), out_idx)
    index_dtype = out_idx.numpy_dtype
    found = np.take(x, first, axis=chosen)
    return found, member_of.astype(index_dtype, copy=False), counts.astype(index_dtype)


def _check_found(x: Any, axis: int, count: int, out_idx: DataType) -> None:
    """Raise if the unique slices of `x` along an axis, or their indices, take too much memory."""
    check_allocation((*x.shape[:axis], count, *x.shape[axis + 1 :]), as_dtype(x.dtype))
    check_allocation((x.shape[axis],), out_idx)


def _declare(signature: str, doc: str) -> OpHandle:
    by_axis, counts = "Taxis" in signature, "count:" in signature
    return register_op(
        signature,
        attrs=["T: type", *(["Taxis: {int32, int64} = DT_INT64"] if by_axis else []), _OUT_IDX],
        shape_fn=unique_v2_shape if by_axis else unique_shape,
        traits=f"cost=sort {'' if counts else 'clustering=dynamic'}",
        doc=doc,
    )


UNIQUE = _declare(
    "Unique(x: T) -> y: T, idx: out_idx",
    "The elements of `x` that differ, in order, and for each element which it is.",
)
UNIQUE_V2 = _declare(
    "UniqueV2(x: T, axis: Taxis) -> y: T, idx: out_idx",
    "The slices of `x` along `axis` that differ, in order, and which each slice is.",
)
UNIQUE_WITH_COUNTS = _declare(
    "UniqueWithCounts(x: T) -> y: T, idx: out_idx, count: out_idx",
    "As Unique; also how often each of the elements appears.",
)
UNIQUE_WITH_COUNTS_V2 = _declare(
    "UniqueWithCountsV2(x: T, axis: Taxis) -> y: T, idx: out_idx, count: out_idx",
    "As UniqueV2; also how often each of the slices appears.",
)


def _register(
    op: OpHandle,
    unique: Callable[..., tuple[Any, ...]],
    outputs: int,
    number_rows: NumberRows,
    registry: KernelRegistry | None,
) -> None:
    def maker(*, out_idx: DataType) -> Callable[..., tuple[Any, ...]]:
        return lambda *inputs: unique(*inputs, out_idx, number_rows)[:outputs]

    types = {"T": _UNIQUE_TYPES, "out_idx": INDEX}
    register_kernel(op, types=types, factory=True, registry=registry)(maker)


def register_unique_slices(number_rows: NumberRows, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of UniqueV2 and UniqueWithCountsV2 with a function that numbers rows."""
    _register(UNIQUE_V2, _of_slices, 2, number_rows, registry)
    _register(UNIQUE_WITH_COUNTS_V2, _of_slices, 3, number_rows, registry)


_register(UNIQUE, _of_vector, 2, numbers_of_rows, None)
_register(UNIQUE_WITH_COUNTS, _of_vector, 3, numbers_of_rows, None)
register_unique_slices(numbers_of_rows)


LIST_DIFF = register_op(
    "ListDiff(x: T, y: T) -> out: T, idx: out_idx",
    attrs=["T: type", _OUT_IDX],
    shape_fn=shape_rule("[?], [?] -> [found], [found]"),
    doc="The elements of the vector `x` that are not in the vector `y`, and where they are.",
    traits="cost=sort clustering=dynamic",
)


@register_kernel(LIST_DIFF, types={"T": _NUMBERS_AND_STRINGS, "out_idx": INDEX})
def list_diff(x: Any, y: Any, *, out_idx: DataType) -> tuple[Any, Any]:
    for name, value in (("x", x), ("y", y)):
        require_vector(value, f"{name} should be a 1D vector.")
    places = np.flatnonzero(~_is_in(x, y))
    _check_found(x, 0, len(places), out_idx)
    return x[places], places.astype(out_idx.numpy_dtype)


def _is_in(x: Any, y: Any) -> Any:
    """For each element of a vector, whether another vector has it."""
    if x.dtype.kind in "iu":
        check_seconds((x.size + y.size) * _SECONDS_A_KEY, "finding equal elements")
        return np.isin(x, y)
    both = _groups(_keys(np.concatenate([x, y]))).member_of
    return np.isin(both[: len(x)], both[len(x) :])


_INT32_MAX = 2**31 - 1


def bound_shape(c: InferenceContext) -> None:
    """The shape of `values`, as it is given: where its rank is unknown, that stays so."""
    check_input_ranks(c, 2, 2)
    c.set_output(0, c.input(1))


LOWER_BOUND, UPPER_BOUND = (
    register_op(
        f"{name}(sorted_inputs: T, values: T) -> output: out_type",
        attrs=["T: type", "out_type: {int32, int64} = DT_INT32"],
        shape_fn=bound_shape,
        doc=f"For each value the first place in its row of `sorted_inputs` {doc}.",
    )
    for name, doc in (
        ("LowerBound", "where it is not too large"),
        ("UpperBound", "with something larger"),
    )
)
Search = Callable[[Any, Any, Any], Any]
"""A function of rows, of values for each row, and of `xp`, that gives the places."""


def register_bound(
    op: OpHandle,
    search: Search,
    types: Sequence[DataType] = REAL_NUMBERS,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernel of an op with a function that searches."""

    def bound(sorted_inputs: Any, values: Any, *, out_type: DataType, xp: Any) -> Any:
        _check_rows(sorted_inputs, values, out_type)
        return search(sorted_inputs, values, xp).astype(out_type.numpy_dtype)

    register_kernel(op, types={"T": types, "out_type": INDEX}, registry=registry)(bound)


def _check_rows(sorted_inputs: Any, values: Any, out_type: DataType) -> None:
    for name, tensor in (("sorted_inputs", sorted_inputs), ("values", values)):
        require_rank(
            tensor, 2, f"Shape must be rank 2 but is rank {tensor.ndim} for `{name}` argument"
        )
    require_equal(len(sorted_inputs), len(values), "Leading dim_size of both tensors must match.")
    if out_type == DataType.DT_INT32 and max(values.size, sorted_inputs.shape[1]) >= _INT32_MAX:
        raise InvalidArgumentError("values tensor size must less than INT_MAX")


def _bounds(rows: Any, values: Any, is_before: Callable[[Any, Any], Any], xp: Any) -> Any:
    """Binary search for all values at once.

    It takes the steps of the C++ library. So NaN, which has no order, ends up in the same places.
    """
    count = rows.shape[1]

    def search(row: Any, values: Any) -> Any:
        first = xp.full(values.shape, 0)
        length = xp.full(values.shape, count)
        for _ in range(count.bit_length()):
            half = length >> 1
            middle = first + half
            element = rows[row, xp.minimum(middle, count - 1)]
            behind = (length > 0) & is_before(element, values)
            first = xp.where(behind, middle + 1, first)
            length = xp.where(behind, length - half - 1, half)
        return first

    row = xp.arange(len(rows))[:, None]
    return in_pieces(search, row, values) if xp is np else search(row, values)


def lower_bounds(rows: Any, values: Any, xp: Any) -> Any:
    """For each value the place behind all that are smaller."""
    return _bounds(rows, values, lambda element, value: element < value, xp)


def upper_bounds(rows: Any, values: Any, xp: Any) -> Any:
    """For each value the place before all that are larger."""
    return _bounds(rows, values, lambda element, value: ~(value < element), xp)


register_bound(LOWER_BOUND, lower_bounds)
register_bound(UPPER_BOUND, upper_bounds)
