"""What ops check of the three tensors of a sparse tensor, and how they compare its indices.

Source: TensorFlow core/util/sparse/sparse_tensor.h, sparse_tensor.cc, core/kernels/sparse_utils.cc.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.ops.input_checks import require, require_rank
from opkernel.ops.stable_order import stable_order
from opkernel.types import MAX_DIMENSIONS, DataType, TensorShape

_LARGEST_KEY = 2**62


def check_rank(rank: int, **tensors: Any) -> None:
    """Raise InvalidArgumentError unless all these tensors are matrices (2), vectors (1) or scalars (0)."""
    kind = ("a scalar", "a vector", "a matrix")[rank]
    for name, tensor in tensors.items():
        require_rank(tensor, rank, f"{name} should be {kind}, but has shape {{}}")


def check_parts(indices: Any, values: Any, shape: Any, name: str = "") -> None:
    """Check that one row of the indices belongs to each value, and one column to each dimension.

    Raises:
        InvalidArgumentError: they are not a matrix and two vectors, or their sizes differ.
    """
    check_rank(2, **{f"{name}indices": indices})
    check_rank(1, **{f"{name}values": values, f"{name}shape": shape})
    if len(shape) > MAX_DIMENSIONS:
        raise InvalidArgumentError(
            f"{name}shape has {len(shape)} dimensions; a tensor has {MAX_DIMENSIONS} at most"
        )
    if len(indices) != len(values):
        raise InvalidArgumentError(
            f"Number of {name}values must match the first dimension of {name}indices: got "
            f"{len(values)} values, indices of shape {TensorShape(indices.shape)}"
        )
    if indices.shape[1] != len(shape):
        raise InvalidArgumentError(
            f"Number of dimensions must match the second dimension of {name}indices: got {len(shape)} "
            f"dimensions, indices of shape {TensorShape(indices.shape)}"
        )


def check_sparse(indices: Any, values: Any, shape: Any, name: str = "") -> TensorShape:
    """The shape of a sparse tensor, if its three tensors fit together; the indices may be anything.

    Raises:
        InvalidArgumentError: a rank or size is wrong, or the shape has a negative dimension or too
            many elements.
    """
    check_parts(indices, values, shape, name)
    return TensorShape(shape.tolist())


def check_entries(count: int, rank: int, dtype: DataType) -> None:
    """Ask for the memory of a sparse tensor of so many entries, before it is taken.

    Raises:
        ResourceExhaustedError: its indices, values or shape are larger than the limit.
    """
    check_allocation((count, rank), DataType.DT_INT64)
    check_allocation((count,), dtype)
    check_allocation((rank,), DataType.DT_INT64)


def in_bounds(indices: Any, shape: Sequence[int]) -> Any:
    """Which rows of the indices lie within the shape."""
    sizes = np.array(shape, np.int64)
    if indices.size:
        lowest, highest = (_ends_of_columns(indices, one) for one in (np.minimum, np.maximum))
        if lowest.min() >= 0 and (highest < sizes).all():
            return np.ones(len(indices), np.bool_)
    return ((indices >= 0) & (indices < sizes)).all(axis=1)


def check_bounds(indices: Any, shape: Sequence[int]) -> None:
    """Raise InvalidArgumentError unless the rows of the indices lie within the shape."""
    inside = in_bounds(indices, shape)
    if not inside.all():
        row = int(np.argmin(inside))
        raise InvalidArgumentError(
            f"Sparse index tuple indices[{row}, :] = {_text(indices[row])} is out of bounds: need "
            f"0 <= index < {_text(shape)}"
        )


def check_indices(indices: Any, shape: Sequence[int]) -> None:
    """Raise InvalidArgumentError unless the rows lie within the shape, sorted, and each once."""
    inside = in_bounds(indices, shape)
    (keys,) = sparse_keys(indices)
    steps = keys[1:] > keys[:-1]
    if inside.all() and steps.all():
        return
    after = np.ones(len(indices), bool)
    after[1:] = steps
    row = int(np.argmin(inside & after))
    text = f"indices[{row}] = {_text(indices[row])}"
    if not inside[row]:
        raise InvalidArgumentError(f"{text} is out of bounds: need 0 <= index < {_text(shape)}")
    require(keys[row] != keys[row - 1], f"{text} is repeated")
    raise InvalidArgumentError(
        f"{text} is out of order. Many sparse ops require sorted indices.\n"
        "    Use `SparseReorder` to create a correctly ordered copy."
    )


def _text(sizes: Any) -> str:
    return f"[{','.join(map(str, sizes))}]"


def sparse_keys(*matrices: Any) -> list[Any]:
    """A number for each row of each matrix of indices; they compare as the rows do, first column first."""
    rows = np.concatenate(matrices) if len(matrices) > 1 else matrices[0]
    keys = _keys(rows)
    ends = np.cumsum([len(matrix) for matrix in matrices])[:-1]
    return np.split(keys, ends)


def _keys(rows: Any) -> Any:
    keys, space = np.zeros(len(rows), np.int64), 1
    if not rows.size:
        return keys
    lowest, highest = _ends_of_columns(rows, np.minimum), _ends_of_columns(rows, np.maximum)
    weights: list[int] = []  # of columns that are to be added, the last one first
    for column in reversed(range(len(lowest))):
        size = int(highest[column]) - int(lowest[column]) + 1
        if space * size > _LARGEST_KEY and space > 1:
            keys, space = _ranks(_with_columns(keys, rows, lowest, weights, column + 1))
            weights = []
        if space * size > _LARGEST_KEY:
            part, size = _ranks(rows[:, column])
            keys = _with_columns(keys, rows, lowest, weights, column + 1) + part * space
            weights = []
        else:
            weights.append(space)
        space *= size
    return _with_columns(keys, rows, lowest, weights, 0)


_WIDE = 8
"""Matrices of so many columns are reduced row by row."""


def _ends_of_columns(rows: Any, choose: np.ufunc) -> Any:
    if rows.shape[1] >= _WIDE:
        return choose.reduce(rows, axis=0)
    return np.array([choose.reduce(column) for column in in_time(rows.T, SLOW)])


def _with_columns(keys: Any, rows: Any, lowest: Any, weights: list[int], first: int) -> Any:
    """The keys, and some columns beginning with the `first`, less their lowest index, times weights."""
    check_time("comparing indices")
    columns, factors = slice(first, first + len(weights)), np.array(weights[::-1], np.int64)
    return keys + (rows[:, columns] @ factors - lowest[columns] @ factors)


def _ranks(keys: Any) -> tuple[Any, int]:
    """For each key the number of smaller ones, and how many different ones there are."""
    order = stable_order(keys)
    ordered = keys[order]
    ranks = np.zeros(len(keys), np.int64)
    ranks[order[1:]] = np.cumsum(ordered[1:] != ordered[:-1])
    return ranks, int(ranks[order[-1]]) + 1


def sorted_order(indices: Any) -> Any | None:
    """The permutation that sorts the rows, equal rows in the order that they have; None if sorted."""
    (keys,) = sparse_keys(indices)
    return None if (keys[1:] >= keys[:-1]).all() else stable_order(keys)


def runs(columns: Any) -> Iterator[tuple[int, int]]:
    """Where each run of equal rows begins and ends."""
    starts = run_starts(columns)
    return pairwise([*starts.tolist(), len(columns)]) if len(columns) else iter(())


def run_starts(columns: Any) -> Any:
    """Where each run of equal rows begins."""
    if not len(columns):
        return np.zeros(0, np.int64)
    changes = (columns[1:] != columns[:-1]).any(axis=1)
    return np.concatenate(([0], np.flatnonzero(changes) + 1))
