"""Sparse tensors cut into those of each row, and put together again: the batches of serialization and maps.

Source: TensorFlow core/kernels/serialize_sparse_op.cc, deserialize_sparse_string_op.cc, sparse_tensors_map_ops.cc.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.ops.sparse.tensors import check_entries, check_indices, check_sparse, runs
from opkernel.types import DataType, TensorShape

__all__ = ["SparseParts", "check_parts_of", "rows_of", "stacked"]


class SparseParts(NamedTuple):
    """The three tensors of a sparse tensor."""

    indices: Any
    values: Any
    shape: Any


def rows_of(whole: SparseParts) -> tuple[int, Iterator[tuple[int, SparseParts]]]:
    """How many rows a sparse tensor has, and each with its number: as they come, then the empty ones.

    Raises:
        InvalidArgumentError: the three tensors do not fit together, the rank is below 2, or the
            indices are not sorted, each once, within the shape.
    """
    shape = check_sparse(*whole)
    if len(shape) < 2:
        raise InvalidArgumentError(
            f"Rank of input SparseTensor should be > 1, but saw rank: {len(shape)}"
        )
    check_allocation((shape[0], 3), DataType.DT_VARIANT)
    check_indices(whole.indices, shape)
    return shape[0], _rows(whole)


def _rows(whole: SparseParts) -> Iterator[tuple[int, SparseParts]]:
    is_missing = np.ones(int(whole.shape[0]), bool)
    rest, row_shape = whole.indices[:, 1:], whole.shape[1:]
    for start, end in in_time(runs(whole.indices[:, :1])):
        number = int(whole.indices[start, 0])
        is_missing[number] = False
        yield number, SparseParts(rest[start:end], whole.values[start:end], row_shape)
    for missing in in_time(np.flatnonzero(is_missing)):
        yield int(missing), SparseParts(rest[:0], whole.values[:0], row_shape)


def check_parts_of(parts: SparseParts, found: DataType, wanted: DataType, number: int) -> None:
    """Raise InvalidArgumentError unless the parts make a sparse tensor of a type.

    Args:
        parts: What was stored.
        found: The type that the values have.
        wanted: The type that they must have.
        number: The number of the sparse tensor, for the error.
    """
    indices, values, shape = parts
    name = f"SparseTensor[{number}]"
    if indices.ndim != 2 or indices.dtype != np.int64:
        raise InvalidArgumentError(
            f"Expected {name}.indices to be a matrix of int64, but it has shape "
            f"{TensorShape(indices.shape)}"
        )
    if found is not wanted:
        raise InvalidArgumentError(
            f"Requested SparseTensor of type {wanted.string} but {name}.values.dtype() == "
            f"{found.string}"
        )
    if values.ndim != 1 or shape.ndim != 1 or shape.dtype != np.int64:
        raise InvalidArgumentError(f"Expected {name}.values and {name}.shape to be vectors")
    if len(indices) != len(values) or indices.shape[1] != len(shape):
        raise InvalidArgumentError(
            f"Expected the rows of {name}.indices to match its values, and the columns its shape; got "
            f"{TensorShape(indices.shape)}, {len(values)} and {len(shape)}"
        )


def stacked(tensors: Sequence[SparseParts], batch: tuple[int, ...], dtype: DataType) -> SparseParts:
    """One sparse tensor of all, with dimensions `batch` before theirs, as large as the largest of them.

    Raises:
        InvalidArgumentError: their ranks differ, or their shapes are none.
    """
    rank = len(tensors[0].shape)
    for number, tensor in enumerate(tensors):
        if len(tensor.shape) != rank:
            raise InvalidArgumentError(
                f"Inconsistent shape across SparseTensors: rank prior to SparseTensor[{number}] was: "
                f"{rank} but rank of SparseTensor[{number}] is: {len(tensor.shape)}"
            )
    largest = np.max([tensor.shape for tensor in tensors], axis=0)
    shape = TensorShape([*batch, *largest.tolist()])
    counts = [len(tensor.values) for tensor in tensors]
    check_entries(sum(counts), len(shape), dtype)
    numbers = np.repeat(np.arange(len(tensors)), counts)
    places = np.stack(np.unravel_index(numbers, batch), axis=1)
    indices = np.concatenate([tensor.indices for tensor in tensors])
    values = np.concatenate([tensor.values for tensor in tensors])
    return SparseParts(np.hstack((places, indices)), values, np.array(shape, np.int64))
