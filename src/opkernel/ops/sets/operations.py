"""Operations on sets: DenseToDenseSetOperation, DenseToSparseSetOperation, SparseToSparseSetOperation, SetSize.

The last dimension of a tensor holds the members of a set; the dimensions before tell the sets apart.

Source: TensorFlow core/ops/set_ops.cc, core/kernels/set_kernels.cc.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import check_seconds
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import (
    DimensionHandle,
    InferenceContext,
    register_op,
    unknown_shape,
    validate_sparse_tensor,
)
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.ops.input_checks import require_equal, require_rank_at_least, require_vector
from opkernel.ops.registration import register_kernel
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

DENSE_TO_DENSE_SET_OPERATION = register_op(
    "DenseToDenseSetOperation",
    inputs=["set1: T", "set2: T"],
    outputs=["result_indices: int64", "result_values: T", "result_shape: int64"],
    attrs=_ATTRS,
    shape_fn=dense_to_dense_shape,
    doc="The sorted union, intersection or difference of each two sets, as a sparse tensor.",
)

DENSE_TO_SPARSE_SET_OPERATION = register_op(
    "DenseToSparseSetOperation",
    inputs=["set1: T", "set2_indices: int64", "set2_values: T", "set2_shape: int64"],
    outputs=["result_indices: int64", "result_values: T", "result_shape: int64"],
    attrs=_ATTRS,
    shape_fn=dense_to_sparse_shape,
    doc="DenseToDenseSetOperation whose second sets are a sparse tensor.",
)

SPARSE_TO_SPARSE_SET_OPERATION = register_op(
    "SparseToSparseSetOperation",
    inputs=[
        "set1_indices: int64",
        "set1_values: T",
        "set1_shape: int64",
        "set2_indices: int64",
        "set2_values: T",
        "set2_shape: int64",
    ],
    outputs=["result_indices: int64", "result_values: T", "result_shape: int64"],
    attrs=_ATTRS,
    shape_fn=sparse_to_sparse_shape,
    doc="DenseToDenseSetOperation whose sets are sparse tensors.",
)

SET_SIZE = register_op(
    "SetSize",
    inputs=["set_indices: int64", "set_values: T", "set_shape: int64"],
    outputs=["size: int32"],
    attrs=[
        "validate_indices: bool = true",
        "T: {int8, int16, int32, int64, uint8, uint16, string}",
    ],
    shape_fn=unknown_shape,
    doc="How many different members each set has.",
)

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a-b": lambda a, b: np.setdiff1d(a, b, assume_unique=True),
    "b-a": lambda a, b: np.setdiff1d(b, a, assume_unique=True),
    "intersection": lambda a, b: np.intersect1d(a, b, assume_unique=True),
    "union": np.union1d,
}
_TYPES = {
    "T": (
        *(DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32, DataType.DT_INT64),
        *(DataType.DT_UINT8, DataType.DT_UINT16, DataType.DT_STRING),
    )
}


_OF_MEMBER, _SECONDS_A_MEMBER = 48, 1e-7
"""The bytes that a member takes while sets are combined, and the least seconds."""


@dataclass(frozen=True, slots=True)
class _Sets:
    """Sets: their shape, the number of the set of each member, and the members."""

    shape: tuple[int, ...]
    groups: Any
    members: Any

    @classmethod
    def of_dense(cls, tensor: Any) -> "_Sets":
        require_rank_at_least(tensor, 2, f"Input rank {tensor.ndim} must be at least 2")
        shape = tensor.shape[:-1]
        count = int(np.prod(shape))
        return cls(shape, np.repeat(np.arange(count), tensor.shape[-1]), tensor.reshape(-1))

    @classmethod
    def of_sparse(cls, indices: Any, values: Any, shape: Any, validate: bool) -> "_Sets":
        sizes = _checked_sparse(indices, values, shape)
        if validate:
            _check_indices(indices, sizes)
        groups = np.zeros(values.size, np.int64)
        for column, size in zip(indices.T[:-1], sizes[:-1], strict=True):
            groups = groups * size + column
        count = int(np.prod(sizes[:-1]))
        if groups.size and not 0 <= groups.min() <= groups.max() < count:
            raise InvalidArgumentError(f"Sparse indices are out of the shape {list(sizes)}")
        return cls(sizes[:-1], groups, values)


def _checked_sparse(indices: Any, values: Any, shape: Any) -> tuple[int, ...]:
    """The sizes of a sparse tensor whose parts fit together."""
    require_vector(shape, "Shape must be a 1D tensor.")
    sizes: list[int] = shape.tolist()
    if any(size < 0 for size in sizes):
        raise InvalidArgumentError(f"Expected shape dimensions to be non-negative, got {sizes}")
    check_allocation(sizes[:-1], DataType.DT_INT32)
    if indices.ndim != 2 or values.ndim != 1 or indices.shape[0] != values.size:
        raise InvalidArgumentError(
            f"Sparse indices {TensorShape(indices.shape)} do not fit the values "
            f"{TensorShape(values.shape)}"
        )
    require_equal(
        indices.shape[1], len(sizes), "Sparse indices have {} columns, but the shape has {} sizes"
    )
    if len(sizes) < 2:
        raise InvalidArgumentError(f"Invalid rank {len(sizes)}.")
    return tuple(sizes)


def _check_indices(indices: Any, sizes: tuple[int, ...]) -> None:
    """Raise InvalidArgumentError unless the indices are in the shape, in order and different."""
    outside = ((indices < 0) | (indices >= np.array(sizes))).any(axis=1)
    if outside.any():
        at = int(outside.argmax())
        raise InvalidArgumentError(f"indices[{at}] = {indices[at].tolist()} is out of bounds")
    steps = np.diff(indices, axis=0)
    first = (steps != 0).argmax(axis=1)
    falls = np.flatnonzero(steps[np.arange(len(steps)), first] <= 0)
    if falls.size:
        at = int(falls[0]) + 1
        raise InvalidArgumentError(
            f"indices[{at}] = {indices[at].tolist()} is out of order or repeated. Use SparseReorder"
        )


def _combined(first: _Sets, second: _Sets, operation: str) -> tuple[Any, Any, Any]:
    """The sets of the result as a sparse tensor, their members in order."""
    require_equal(first.shape, second.shape, "Mismatched group shapes: {} vs {}")
    total = first.members.size + second.members.size
    check_seconds(total * _SECONDS_A_MEMBER, "combining sets")
    with making_bytes("sets", total * _OF_MEMBER):
        return _of_groups(first, second, operation)


def _of_groups(first: _Sets, second: _Sets, operation: str) -> tuple[Any, Any, Any]:
    members, numbers = np.unique(
        np.concatenate([first.members, second.members]), return_inverse=True
    )
    check_time("combining sets")
    split, count = first.members.size, max(members.size, 1)
    keys = (
        np.unique(first.groups * count + numbers[:split]),
        np.unique(second.groups * count + numbers[split:]),
    )
    check_time("combining sets")
    found = _OPERATIONS[operation](*keys)
    check_allocation((found.size, len(first.shape) + 1), DataType.DT_INT64)
    groups, chosen = np.divmod(found.astype(np.int64), count)
    sizes = np.bincount(groups, minlength=1)
    places = np.arange(found.size) - (np.cumsum(sizes) - sizes)[groups]
    columns = (
        [*np.unravel_index(groups, first.shape)] if found.size else [groups] * len(first.shape)
    )
    indices = np.stack([*columns, places], axis=1).astype(np.int64)
    shape = np.array([*first.shape, sizes.max() if found.size else 0], np.int64)
    return indices, members[chosen], shape


def _operation(name: str) -> str:
    if name.lower() not in _OPERATIONS:
        raise InvalidArgumentError(f"Invalid set_operation {name.lower()}.")
    return name.lower()


@register_kernel(DENSE_TO_DENSE_SET_OPERATION, types=_TYPES, factory=True)
def dense_to_dense_set_operation(*, set_operation: str) -> Callable[[Any, Any], Any]:
    operation = _operation(set_operation)
    return lambda a, b: _combined(_Sets.of_dense(a), _Sets.of_dense(b), operation)


@register_kernel(DENSE_TO_SPARSE_SET_OPERATION, types=_TYPES, factory=True)
def dense_to_sparse_set_operation(
    *, set_operation: str, validate_indices: bool
) -> Callable[[Any, Any, Any, Any], Any]:
    operation = _operation(set_operation)

    def compute(set1: Any, indices: Any, values: Any, shape: Any) -> Any:
        second = _Sets.of_sparse(indices, values, shape, validate_indices)
        return _combined(_Sets.of_dense(set1), second, operation)

    return compute


@register_kernel(SPARSE_TO_SPARSE_SET_OPERATION, types=_TYPES, factory=True)
def sparse_to_sparse_set_operation(
    *, set_operation: str, validate_indices: bool
) -> Callable[[Any, Any, Any, Any, Any, Any], Any]:
    operation = _operation(set_operation)

    def compute(
        indices1: Any, values1: Any, shape1: Any, indices2: Any, values2: Any, shape2: Any
    ) -> Any:
        first = _Sets.of_sparse(indices1, values1, shape1, validate_indices)
        second = _Sets.of_sparse(indices2, values2, shape2, validate_indices)
        return _combined(first, second, operation)

    return compute


@register_kernel(SET_SIZE, types=_TYPES)
def set_size(indices: Any, values: Any, shape: Any, *, validate_indices: bool) -> Any:
    sets = _Sets.of_sparse(indices, values, shape, validate_indices)
    check_seconds(sets.members.size * _SECONDS_A_MEMBER, "counting sets")
    with making_bytes("sets", sets.members.size * _OF_MEMBER):
        members, numbers = np.unique(sets.members, return_inverse=True)
        check_time("counting sets")
        keys = np.unique(sets.groups * max(members.size, 1) + numbers)
        sizes = np.bincount(keys // max(members.size, 1), minlength=int(np.prod(sets.shape)))
    return sizes.astype(np.int32).reshape(sets.shape)
