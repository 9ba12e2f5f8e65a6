"""Ragged tensors made and changed.

Source: TensorFlow python/ops/ragged/ragged_factory_ops.py, ragged_math_ops.py, ragged_array_ops.py,
ragged_concat_ops.py, ragged_functional_ops.py, segment_id_ops.py.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.array import choosing
from opkernel.endpoints.math.reductions import reduce_max
from opkernel.endpoints.ragged._rows import (
    as_ragged,
    as_rows,
    from_tensor,
    is_ragged,
    rows_of,
    splits_of_lengths,
    splits_of_rows,
)
from opkernel.endpoints.ragged.tensor import RaggedTensor
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    like,
)
from opkernel.graph import constant as dense
from opkernel.types import DataType, as_dtype


def _depth(value: Any) -> int:
    """How deep lists are nested."""
    if isinstance(value, np.ndarray):
        return value.ndim
    if not isinstance(value, list | tuple):
        return 0
    return 1 + max((_depth(item) for item in value), default=0)


def constant(
    pylist: Any,
    dtype: DTypeLike | None = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = DataType.DT_INT64,
) -> Any:
    """A ragged tensor of nested lists.

    Args:
        pylist: nested lists of numbers or text.
        dtype: the type of the elements.
        ragged_rank: how many levels have rows of different lengths; all but the innermost if None.
        inner_shape: the shape of the innermost values, after the ragged levels.
        name: a name for nodes in a graph.
        row_splits_dtype: int32 or int64.

    Returns:
        A RaggedTensor; an array, in a graph a tensor, where no level is ragged.

    Raises:
        ValueError: the lists are not nested evenly, or not deep enough.
    """
    depth = _depth(pylist)
    inner = len(tuple(inner_shape)) if inner_shape is not None else None
    levels = ragged_rank if ragged_rank is not None else max(depth - 1 - (inner or 0), 0)
    if inner is not None and ragged_rank is None:
        levels = max(depth - inner, 0)
    if levels > max(depth - 1, 0):
        raise ValueError(
            f"ragged_rank is less than the depth of the lists, {depth}, and not {levels}"
        )
    values, splits = _flattened([*pylist] if depth else pylist, levels)
    shape = None if inner_shape is None else (len(values), *inner_shape)
    try:
        found = dense(values, dtype, shape, name or "values")
    except Exception as error:
        raise ValueError(f"The lists are not nested evenly: {error}") from error
    kind = as_dtype(row_splits_dtype)
    for ends in reversed(splits):
        found = RaggedTensor(found, dense(ends, kind))
    return found


def _flattened(rows: Any, levels: int) -> tuple[Any, list[list[int]]]:
    """The values of nested lists, and the row splits of each level."""
    splits: list[list[int]] = []
    for _ in builtins.range(levels):
        if any(not isinstance(row, list | tuple | np.ndarray) for row in rows):
            raise ValueError("The lists are not nested evenly")
        ends = [0]
        for row in rows:
            ends.append(ends[-1] + len(row))
        splits.append(ends)
        rows = [item for row in rows for item in row]
    return rows, splits


@composed
def range(
    starts: TensorLike,
    limits: TensorLike | None = None,
    deltas: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = DataType.DT_INT64,
) -> RaggedTensor:
    """Rows of numbers from `starts` up to, and without, `limits`, `deltas` apart.

    Args:
        starts: the first numbers; with one argument the limits, and rows begin at 0.
        limits: the limits.
        deltas: the steps.
        dtype: the type of the numbers.
        name: a name for the scope of nodes in a graph.
        row_splits_dtype: int32 or int64.
    """
    begin, end = (0, starts) if limits is None else (starts, limits)
    wanted = None if dtype is None else as_dtype(dtype)
    given = [convert(part) for part in (begin, end, deltas)]
    kind = wanted or _widest(given)
    parts = [cast_to(part, kind) for part in given]
    splits, values = raw_ops.RaggedRange(
        starts=parts[0], limits=parts[1], deltas=parts[2], Tsplits=as_dtype(row_splits_dtype)
    )
    return RaggedTensor(values, splits)


_ORDER = (DataType.DT_INT32, DataType.DT_INT64, DataType.DT_FLOAT, DataType.DT_DOUBLE)


def _widest(parts: Sequence[Any]) -> DataType:
    return max(
        (dtype_of(part) for part in parts), key=lambda dtype: _ORDER.index(dtype) if dtype in _ORDER else 4
    )  # fmt: skip


@composed
def row_splits_to_segment_ids(
    splits: TensorLike, name: str | None = None, out_type: DTypeLike | None = None
) -> Any:
    """The row of each value, from where rows begin."""
    given = like(splits, DataType.DT_INT64)
    rows = rows_of(RaggedTensor(None, given))
    return cast_to(rows, dtype_of(given) if out_type is None else out_type)


@composed
def segment_ids_to_row_splits(
    segment_ids: TensorLike,
    num_segments: TensorLike | None = None,
    out_type: DTypeLike | None = None,
    name: str | None = None,
) -> Any:
    """Where rows begin, from the row of each value, in order; int64 unless `out_type` says otherwise."""
    rows = cast_to(convert(segment_ids), DataType.DT_INT32)
    if num_segments is None:
        highest = raw_ops.Maximum(x=reduce_max(rows), y=np.int32(-1))
        num_segments = raw_ops.AddV2(x=highest, y=np.int32(1))
    splits = splits_of_rows(rows, cast_to(num_segments, DataType.DT_INT32))
    return splits if out_type is None else cast_to(splits, out_type)


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function of the innermost values of ragged tensors, with the rows as they were.

    Args:
        op: the function.
        args: its arguments; ragged ones have the same rows.
        kwargs: its keywords.

    Returns:
        A RaggedTensor; what the function gives where no argument is ragged.
    """
    ragged = [as_ragged(value) for value in [*args, *kwargs.values()] if is_ragged(value)]
    found = op(
        *(as_ragged(value).flat_values if is_ragged(value) else value for value in args),
        **{
            key: as_ragged(value).flat_values if is_ragged(value) else value
            for key, value in kwargs.items()
        },
    )
    return ragged[0].with_flat_values(found) if ragged else found


@composed
def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The elements of `data` where `mask` is true, in their rows.

    Args:
        data: a tensor or a ragged tensor with one ragged level.
        mask: bools of the same kind; or a vector that chooses rows.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: the mask is a scalar.
    """
    values, chosen = as_ragged(data), as_ragged(mask)
    if not is_ragged(chosen):
        rank = known_rank(chosen, "boolean_mask")
        if rank == 0:
            raise ValueError("The mask of boolean_mask has to have an axis")
        if rank == 1:
            return _chosen_rows(values, chosen)
        chosen = from_tensor(chosen)
    if not is_ragged(values):
        values = as_rows(values)
    kept = raw_ops.Where(condition=chosen.flat_values)
    places = raw_ops.Squeeze(input=kept, axis=[1])
    rows = raw_ops.GatherV2(params=rows_of(chosen), indices=places, axis=0)
    count = raw_ops.Sub(x=raw_ops.Size(input=chosen.row_splits), y=np.int32(1))
    found = raw_ops.GatherV2(params=values.values, indices=places, axis=0)
    return RaggedTensor(found, splits_of_rows(rows, count))


def _chosen_rows(values: Any, chosen: Any) -> Any:
    if not is_ragged(values):
        return choosing.boolean_mask(values, chosen)
    rows = rows_of(values)
    kept = raw_ops.GatherV2(params=chosen, indices=rows, axis=0)
    lengths = values.row_splits[1:] - values.row_splits[:-1]
    return RaggedTensor(
        choosing.boolean_mask(values.values, kept),
        splits_of_lengths(choosing.boolean_mask(lengths, chosen)),
    )


@composed
def stack(values: Sequence[Any], axis: int = 0, name: str | None = None) -> RaggedTensor:
    """Tensors, or ragged tensors with one ragged level, as rows of a new first axis.

    Args:
        values: vectors of different lengths, or ragged tensors.
        axis: 0.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: `axis` is another, or there is no tensor.
    """
    if axis != 0 or not values:
        raise ValueError(f"ragged.stack takes axis 0 and one tensor or more, and got axis {axis}")
    parts = [as_ragged(value) for value in values]
    if not any(map(is_ragged, parts)):
        lengths = raw_ops.Pack(values=[raw_ops.Shape(input=part)[0] for part in parts])
        return RaggedTensor(_joined(parts), splits_of_lengths(lengths, DataType.DT_INT32))
    rows = [part if is_ragged(part) else as_rows(part) for part in parts]
    counts = [raw_ops.Size(input=row.row_splits) - np.int32(1) for row in rows]
    lengths = _joined([row.row_splits[1:] - row.row_splits[:-1] for row in rows])
    inner = RaggedTensor(_joined([row.values for row in rows]), splits_of_lengths(lengths))
    return RaggedTensor(inner, splits_of_lengths(raw_ops.Pack(values=counts)))


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else raw_ops.ConcatV2(values=parts, axis=0)


@composed
def stack_dynamic_partitions(
    data: TensorLike, partitions: TensorLike, num_partitions: TensorLike, name: str | None = None
) -> RaggedTensor:
    """The entries of `data` in rows by their number in `partitions`, a vector.

    Args:
        data: a tensor.
        partitions: the row of each entry.
        num_partitions: how many rows there are.
        name: a name for the scope of nodes in a graph.
    """
    rows = cast_to(convert(partitions), DataType.DT_INT32)
    order = choosing.argsort(rows, stable=True)
    count = cast_to(num_partitions, DataType.DT_INT32)
    found = raw_ops.GatherV2(params=convert(data), indices=order, axis=0)
    ordered = raw_ops.GatherV2(params=rows, indices=order, axis=0)
    return RaggedTensor(found, splits_of_rows(ordered, count, DataType.DT_INT32))
