"""Operations on sets: DenseToDenseSetOperation, DenseToSparseSetOperation, SparseToSparseSetOperation, SetSize.

The last dimension of a tensor holds the members of a set; the dimensions before tell the sets apart.

Source: TensorFlow core/ops/set_ops.cc, core/kernels/set_kernels.cc.
"""

import math
from collections.abc import Callable
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import (
    DimensionHandle,
    InferenceContext,
    register_op,
    unknown_shape,
    validate_sparse_tensor,
)
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.ops.input_checks import require, require_equal, require_rank_at_least, require_vector
from opkernel.ops.registration import SIGNED_INTEGERS, register_kernel
from opkernel.ops.set_algebra import (
    Sets,
    combined_integers,
    combined_strings,
    sizes_of_integers,
    sizes_of_strings,
)
from opkernel.ops.sparse.tensors import check_indices
from opkernel.types import DataType, TensorShape


def _set_result(c: InferenceContext, rank: DimensionHandle) -> None:
    """The outputs are a sparse tensor of this rank."""
    set_outputs(c, [c.matrix(None, rank), c.vector(None), c.vector(rank)])


def dense_to_dense_shape(c: InferenceContext) -> None:
    """A sparse tensor of the rank of the inputs."""
    first = c.with_rank_at_least(c.input(0), 2)
    if c.rank_known(first):
        rank = c.rank(first)
        second = c.with_rank(c.input(1), rank)
        c.merge(c.subshape(first, 0, rank - 1), c.subshape(second, 0, rank - 1))
    else:
        rank = c.rank(c.with_rank_at_least(c.input(1), 2))
    _set_result(c, c.make_dim(rank))


def dense_to_sparse_shape(c: InferenceContext) -> None:
    """A sparse tensor of the rank of the inputs."""
    shape_of_second = c.input(3)
    validate_sparse_tensor(c, c.input(1), c.input(2), shape_of_second)
    rank = c.dim(shape_of_second, 0)
    first = c.with_rank_at_least(c.input(0), 2)
    if c.rank_known(first):
        c.with_value(rank, c.rank(first))
        rank = c.make_dim(c.rank(first))
    _set_result(c, rank if c.value_known(rank) else c.unknown_dim())


def sparse_to_sparse_shape(c: InferenceContext) -> None:
    """A sparse tensor of the rank of the inputs."""
    ranks = []
    for index in (0, 3):
        shape = c.input(index + 2)
        validate_sparse_tensor(c, c.input(index), c.input(index + 1), shape)
        ranks.append(c.dim(shape, 0))
    known = [i for i, rank in enumerate(ranks) if c.value_known(rank)]
    if not known:
        _set_result(c, c.unknown_dim())
        return
    rank = ranks[known[0]]
    if rank.value < 2:
        raise InvalidArgumentError(f"Input {known[0]}, expected rank >= 2, got {rank.value}.")
    c.with_value(ranks[1], rank.value)
    _set_result(c, rank)


_ATTRS = [
    "set_operation: string",
    "validate_indices: bool = true",
    "T: {int8, int16, int32, int64, uint8, uint16, string}",
]

_SPARSE = "set{0}_indices: int64, set{0}_values: T, set{0}_shape: int64"

for _name, _inputs, _shape_fn, _doc in (
    (
        "DenseToDenseSetOperation",
        "set1: T, set2: T",
        dense_to_dense_shape,
        "The sorted union, intersection or difference of each two sets, as a sparse tensor.",
    ),
    (
        "DenseToSparseSetOperation",
        f"set1: T, {_SPARSE.format(2)}",
        dense_to_sparse_shape,
        "DenseToDenseSetOperation whose second sets are a sparse tensor.",
    ),
    (
        "SparseToSparseSetOperation",
        f"{_SPARSE.format(1)}, {_SPARSE.format(2)}",
        sparse_to_sparse_shape,
        "DenseToDenseSetOperation whose sets are sparse tensors.",
    ),
):
    register_op(
        f"{_name}({_inputs}) -> result_indices: int64, result_values: T, result_shape: int64",
        attrs=_ATTRS,
        shape_fn=_shape_fn,
        doc=_doc,
    )

SET_SIZE = register_op(
    "SetSize(set_indices: int64, set_values: T, set_shape: int64) -> size: int32",
    attrs=_ATTRS[1:],
    shape_fn=unknown_shape,
    doc="How many different members each set has.",
)

_OPERATIONS = ("a-b", "b-a", "intersection", "union")
_TYPES = {"T": (*SIGNED_INTEGERS, DataType.DT_UINT8, DataType.DT_UINT16, DataType.DT_STRING)}


_OF_MEMBER = 48
"""The bytes that a member takes while sets are combined."""


def _of_dense(tensor: Any) -> Sets:
    require_rank_at_least(tensor, 2, f"Input rank {tensor.ndim} must be at least 2")
    shape = tensor.shape[:-1]
    rows = math.prod(shape)
    return Sets(shape, np.arange(rows)[:, None], tensor.reshape(rows, tensor.shape[-1]))


def _of_sparse(indices: Any, values: Any, shape: Any, validate: bool) -> Sets:
    sizes = _checked_sparse(indices, values, shape)
    if validate:
        check_indices(indices, sizes)
    _check_bounds(indices, sizes)
    groups = np.zeros(values.size, np.int64)
    for column, size in zip(indices.T[:-1], sizes[:-1], strict=True):
        groups = groups * size + column
    return Sets(sizes[:-1], groups, values)


def _last_of_each(sets: Sets) -> Sets:
    """Without the members of a set whose others stand further behind, those of other sets between.

    TensorFlow's SetSize takes unsorted indices so, where it does not validate them.
    """
    runs = np.cumsum(np.diff(sets.groups, prepend=-1) != 0)
    last = np.zeros(sets.count, np.int64)
    np.maximum.at(last, sets.groups, runs)
    kept = runs == last[sets.groups]
    return Sets(sets.shape, sets.groups[kept], sets.members[kept])


def _check_bounds(indices: Any, sizes: tuple[int, ...]) -> None:
    """Refuse indices out of the shape with TensorFlow's code for those that it did not validate."""
    places = np.argwhere(indices >= np.array(sizes, np.int64))
    if places.size:
        row, column = places[0].tolist()
        raise InternalError(
            f"indices[{row}, {column}] expected < {sizes[column]}, got {indices[row, column]}"
        )
    if (indices[:, :-1] < 0).any():
        raise InvalidArgumentError(f"Sparse indices are out of the shape {list(sizes)}")


def _checked_sparse(indices: Any, values: Any, shape: Any) -> tuple[int, ...]:
    """The sizes of a sparse tensor whose parts fit together."""
    require_vector(shape, "Shape must be a 1D tensor.")
    sizes: list[int] = shape.tolist()
    if any(size < 0 for size in sizes):
        raise InvalidArgumentError(f"Expected shape dimensions to be non-negative, got {sizes}")
    if indices.ndim != 2 or values.ndim != 1 or indices.shape[0] != values.size:
        raise InvalidArgumentError(
            f"Sparse indices {TensorShape(indices.shape)} do not fit the values "
            f"{TensorShape(values.shape)}"
        )
    require_equal(
        indices.shape[1], len(sizes), "Sparse indices have {} columns, but the shape has {} sizes"
    )
    require(len(sizes) >= 2, f"Invalid rank {len(sizes)}.")
    require(max(accumulate(sizes, mul)) < 1 << 63, f"The elements of {sizes} overflow an int64.")
    check_allocation(sizes[:-1], DataType.DT_INT32)
    return tuple(sizes)


def _combined(first: Sets, second: Sets, operation: str) -> tuple[Any, Any, Any]:
    """The sets of the result as a sparse tensor, their members in order."""
    require_equal(first.shape, second.shape, "Mismatched group shapes: {} vs {}")
    with making_bytes("sets", (first.members.size + second.members.size) * _OF_MEMBER):
        combine = combined_strings if first.members.dtype == object else combined_integers
        groups, members = combine(first, second, operation)
        check_allocation((members.size, len(first.shape) + 1), DataType.DT_INT64)
        sizes = np.bincount(groups, minlength=1)
        places = np.arange(members.size) - (np.cumsum(sizes) - sizes)[groups]
        columns = (
            [*np.unravel_index(groups, first.shape)]
            if members.size
            else [groups] * len(first.shape)
        )
        indices = np.stack([*columns, places], axis=1).astype(np.int64, copy=False)
        shape = np.array([*first.shape, sizes.max() if members.size else 0], np.int64)
    return indices, members, shape


def _set_operation(size_of_first: int) -> Callable[..., Callable[..., Any]]:
    """A kernel for two inputs of sets, one tensor or the three of a sparse tensor each; so many are the first."""

    def make(*, set_operation: str, validate_indices: bool) -> Callable[..., Any]:
        operation = set_operation.lower()
        require(operation in _OPERATIONS, f"Invalid set_operation {operation}.")

        def compute(*inputs: Any) -> tuple[Any, Any, Any]:
            first, second = (
                _of_sparse(*part, validate_indices) if len(part) == 3 else _of_dense(*part)
                for part in (inputs[:size_of_first], inputs[size_of_first:])
            )
            return _combined(first, second, operation)

        return compute

    return make


for _name, _size in (("DenseToDense", 1), ("DenseToSparse", 1), ("SparseToSparse", 3)):
    register_kernel(f"{_name}SetOperation", types=_TYPES, factory=True)(_set_operation(_size))


@register_kernel(SET_SIZE, types=_TYPES)
def set_size(indices: Any, values: Any, shape: Any, *, validate_indices: bool) -> Any:
    sets = _of_sparse(indices, values, shape, validate_indices)
    sets = sets if validate_indices else _last_of_each(sets)
    with making_bytes("sets", sets.members.size * _OF_MEMBER):
        count = sizes_of_strings if values.dtype == object else sizes_of_integers
        return count(sets).astype(np.int32).reshape(sets.shape)
