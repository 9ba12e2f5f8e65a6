"""Ragged tensors made dense, filled up with a default value, or sparse: RaggedTensorToTensor, RaggedTensorToSparse.

Source: TensorFlow core/ops/ragged_conversion_ops.cc, core/kernels/ragged_tensor_to_tensor_op.cc,
core/util/ragged_to_dense_util.cc, core/kernels/ragged_tensor_to_sparse_kernel.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import DimensionHandle, InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes.rules import check_input_ranks, set_outputs
from opkernel.ops.input_checks import require, require_equal, require_rank_at_most
from opkernel.ops.ragged.gather_range import VALUE_TYPES, ranges
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.ops.sparse.tensors import run_starts
from opkernel.types import DataType

__all__ = ["PARTITION_TYPES", "ragged_tensor_to_tensor_shape"]


PARTITION_TYPES = (
    "FIRST_DIM_SIZE",
    "VALUE_ROWIDS",
    "ROW_LENGTHS",
    "ROW_SPLITS",
    "ROW_LIMITS",
    "ROW_STARTS",
)
_SUPPORTED_TYPES = ("FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS")


def ragged_tensor_to_tensor_shape(c: InferenceContext) -> None:
    """Shape function of RaggedTensorToTensor."""
    asked = c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(0)
    partitions: list[str] = c.get_attr("row_partition_types")
    for name in partitions:
        require(name in PARTITION_TYPES, f"Unknown string for partition info type: {name}")
    _check_partition_types(partitions)
    _check_partition_tensors(c, partitions)
    values, default = c.input(1), c.input(2)
    _check_default_value(default, values)
    ragged_rank = len(partitions) - (partitions[0] == "FIRST_DIM_SIZE")
    c.set_output(0, _combine(c, ragged_rank, asked, values))


def _check_partition_types(partitions: Sequence[str]) -> None:
    for name in partitions:
        require(name in _SUPPORTED_TYPES, f"Unsupported partition type: {name}")
    require(partitions, "Partition info types should not be empty")
    require("FIRST_DIM_SIZE" not in partitions[1:], "FIRST_DIM_SIZE must be first")
    if partitions[0] == "FIRST_DIM_SIZE" and list(partitions[1:2]) != ["VALUE_ROWIDS"]:
        raise InvalidArgumentError("FIRST_DIM_SIZE must be followed by VALUE_ROWIDS")
    require(partitions[0] != "VALUE_ROWIDS", "VALUE_ROWIDS cannot be first")


def _check_partition_tensors(c: InferenceContext, partitions: Sequence[str]) -> None:
    count = c.get_attr("num_row_partition_tensors")
    if count != len(partitions):
        raise InvalidArgumentError(
            f"Number of row partition tensors ({count}) does not equal the number of row "
            f"partition types({len(partitions)})."
        )
    for i, name in enumerate(partitions):
        rank = c.rank(c.input(3 + i))
        require(name != "FIRST_DIM_SIZE" or rank <= 0, "FIRST_DIM_SIZE must be a scalar.")
        if name != "FIRST_DIM_SIZE" and c.rank_known(c.input(3 + i)) and rank != 1:
            raise InvalidArgumentError("Row partition must be a vector.")


def _check_default_value(default: ShapeHandle, values: ShapeHandle) -> None:
    """The default value must broadcast to a row of the flat values."""
    if default.dims is None or values.dims is None:
        return
    shapes = f"default_value.shape={default} and rt_input.flat_values.shape={values}"
    if len(default.dims) >= len(values.dims):
        raise InvalidArgumentError(
            f"{shapes} are incompatible: default_value.rank = {len(default.dims)}  must be less "
            f"than rt_input.flat_values.rank = {len(values.dims)}"
        )
    for i, (own, row) in enumerate(zip(default.dims, values.dims[1:], strict=False)):
        if own.value >= 0 and row.value >= 0 and own.value not in (1, row.value):
            index = i - len(default.dims)
            raise InvalidArgumentError(
                f"{shapes} are incompatible: default_value.shape[{index}] = {own} but "
                f"rt_input.flat_values.shape[{index}] = {row}"
            )


def _combine(
    c: InferenceContext, ragged_rank: int, asked: ShapeHandle, values: ShapeHandle
) -> ShapeHandle:
    """The result's shape, as new dimensions: those asked for, else the inner ones of the values."""
    if asked.dims is None and values.dims is None:
        return c.unknown_shape()
    if values.dims is None:
        return _copy(c, asked.dims or ())
    rank = ragged_rank + len(values.dims)
    sizes = [DimensionHandle()] * rank if asked.dims is None else list(asked.dims)
    incompatible = f"rt_input.shape and shape={asked} are incompatible: "
    require_equal(rank, len(sizes), f"{incompatible}rt_input.rank = {{}} but shape.rank = {{}}")
    for i, dim in enumerate(values.dims[1:], start=ragged_rank + 1):
        if dim.value >= 0 and sizes[i].value >= 0 and dim.value != sizes[i].value:
            raise InvalidArgumentError(
                f"{incompatible}rt_input.shape[{i}] = {dim} but shape[{i}] = {sizes[i]}"
            )
        if sizes[i].value < 0:
            sizes[i] = dim
    return _copy(c, sizes)


def _copy(c: InferenceContext, dims: Sequence[DimensionHandle]) -> ShapeHandle:
    return c.make_shape([dim.value for dim in dims])


RAGGED_TENSOR_TO_TENSOR = register_op(
    "RaggedTensorToTensor(shape: Tshape, values: T, default_value: T, "
    "row_partition_tensors: num_row_partition_tensors * Tindex) -> result: T",
    attrs=[
        "T: type",
        "Tindex: {int64, int32}",
        "Tshape: {int64, int32}",
        "num_row_partition_tensors: int >= 1",
        "row_partition_types: list(string)",
    ],
    shape_fn=ragged_tensor_to_tensor_shape,
    doc="A ragged tensor as a dense one of `shape`, with `default_value` where it has no values.",
)


_OF_ROW, _OF_VALUE = 24, 48
"""The bytes of the arrays that tell the place of a row, and of a value."""


@register_kernel(RAGGED_TENSOR_TO_TENSOR, types={"T": VALUE_TYPES, "Tindex": INDEX}, factory=True)
def ragged_tensor_to_tensor(
    *, T: DataType, row_partition_types: list[str]
) -> Callable[[Any, Any, Any, list[Any]], Any]:
    for name in row_partition_types:
        require(name in PARTITION_TYPES, f"Unknown string for partition info type: {name}")
    has_size = row_partition_types[:1] == ["FIRST_DIM_SIZE"]
    kinds = row_partition_types[has_size:]

    def compute(shape: Any, values: Any, default_value: Any, partitions: list[Any]) -> Any:
        rows = _first_size(row_partition_types, partitions)
        flat = [one.reshape(-1) for one in partitions[has_size:]]
        require(len(flat) >= len(kinds), "There are fewer row partition tensors than types")
        _check_default(default_value.shape, values.shape)
        sizes = _combined_shape(len(kinds), _asked_shape(shape), values.shape)
        if sizes[0] < 0:
            sizes[0] = rows
        for i, (kind, partition) in enumerate(zip(kinds, flat, strict=False), 1):
            if sizes[i] < 0:
                sizes[i] = _max_width(kind, partition)
        output_shape = check_allocation(sizes, T)
        inner = output_shape[len(kinds) + 1 :]
        fill = np.broadcast_to(default_value, inner)
        output = np.empty((int(np.prod(output_shape[: len(kinds) + 1])), *inner), values.dtype)
        output[...] = fill
        if output.shape[0]:
            with making_bytes(
                "places of values", _OF_ROW * max(rows, 0) + _OF_VALUE * values.shape[0]
            ):
                places = _places(kinds, flat, output_shape, rows)
            if len(places) > values.shape[0]:
                raise InvalidArgumentError(
                    f"The row partitions tell of {len(places)} values, but there are "
                    f"{values.shape[0]}"
                )
            is_kept = places >= 0
            output[places[is_kept]] = values[: len(places)][is_kept]
        return output.reshape(output_shape)

    return compute


def _first_size(kinds: Sequence[str], partitions: list[Any]) -> int:
    """The number of rows."""
    if partitions[0].size == 0:
        raise InvalidArgumentError(
            "Invalid first partition input. Tensor requires at least one element."
        )
    require(kinds, "No row_partition_types given.")
    if kinds[0] == "FIRST_DIM_SIZE":
        require_equal(partitions[0].size, 1, "FIRST_DIM_SIZE must be a scalar")
        return int(partitions[0].reshape(())[()])
    if kinds[0] == "ROW_SPLITS":
        return (partitions[0].shape[0] if partitions[0].ndim else 1) - 1
    raise InvalidArgumentError(f"Cannot handle {kinds[0]} in first dimension.")


def _asked_shape(shape: Any) -> list[int] | None:
    """The sizes asked for, -1 for those that are free; None if all are."""
    if shape.ndim == 0:
        if shape != -1:
            raise InvalidArgumentError(
                "The only valid scalar shape tensor is the fully unknown shape specified as -1."
            )
        return None
    require_rank_at_most(shape, 1, "The shape must be a scalar or a vector")
    sizes: list[int] = shape.tolist()
    if any(size < -1 for size in sizes):
        raise InvalidArgumentError(f"Shape {sizes} must not have sizes below -1")
    return sizes


def _check_default(default: tuple[int, ...], values: tuple[int, ...]) -> None:
    """The default value must broadcast to a row of the flat values."""
    shapes = f"default_value.shape={list(default)} and flat_values.shape={list(values)}"
    if len(default) >= len(values):
        raise InvalidArgumentError(
            f"{shapes} are incompatible: default_value.rank = {len(default)} must be less than "
            f"flat_values.rank = {len(values)}"
        )
    # TensorFlow compares the first sizes with one another, though it broadcasts at the last.
    pairs = zip(default, values[1:], strict=False)
    fits = all(own in (1, row) for own, row in pairs)
    inner = values[len(values) - len(default) :]
    if not fits or any(own not in (1, row) for own, row in zip(default, inner, strict=True)):
        raise InvalidArgumentError(f"{shapes} are incompatible")


def _combined_shape(
    ragged_rank: int, asked: list[int] | None, values: tuple[int, ...]
) -> list[int]:
    """The sizes of the output, -1 for those that the rows decide."""
    rank = ragged_rank + len(values)
    sizes = [-1] * rank if asked is None else list(asked)
    if len(sizes) != rank:
        raise InvalidArgumentError(
            f"rt_input.shape and shape={sizes} are incompatible: rt_input.rank = {rank} but "
            f"shape.rank = {len(sizes)}"
        )
    for i, size in enumerate(values[1:], ragged_rank + 1):
        if sizes[i] not in (-1, size):
            raise InvalidArgumentError(
                f"rt_input.shape and shape={sizes} are incompatible: rt_input.shape[{i}] = {size} "
                f"but shape[{i}] = {sizes[i]}"
            )
        sizes[i] = size
    return sizes


def _max_width(kind: str, partition: Any) -> int:
    """The length of the longest row."""
    if kind == "ROW_SPLITS":
        return int(np.diff(partition).max(initial=0))
    if kind == "VALUE_ROWIDS":
        return int(_run_lengths(partition)[1].max(initial=0))
    raise InvalidArgumentError(f"Cannot handle partition type {kind}")


def _run_lengths(numbers: Any) -> tuple[Any, Any]:
    """Where runs of equal numbers begin, and how long they are."""
    starts = run_starts(numbers[:, None])
    return starts, np.diff(np.append(starts, numbers.size))


def _places(kinds: Sequence[str], partitions: list[Any], sizes: Sequence[int], rows: int) -> Any:
    """The place of each flat value in the flat output; -1 where there is none."""
    strides = [1]
    for size in reversed(sizes[1 : len(kinds) + 1]):
        strides.insert(0, strides[0] * size)
    places = np.arange(rows, dtype=np.int64) * strides[0]
    places[sizes[0] :] = -1
    for i, (kind, partition) in enumerate(zip(kinds, partitions, strict=False), 1):
        require(kind in _PARENTS, "Unsupported partition type")
        parents, columns = _PARENTS[kind](partition, places)
        places = np.where((parents >= 0) & (columns < sizes[i]), parents + columns * strides[i], -1)
    return places


def _of_splits(splits: Any, places: Any) -> tuple[Any, Any]:
    """The place of the row of each value, and the value's column."""
    if splits.size - 1 > places.size:
        raise InvalidArgumentError(
            f"Row partition size is greater than output size: {splits.size - 1} > {places.size}"
        )
    lengths = np.maximum(np.diff(splits), 0)  # a split below the one before ends an empty row
    if splits.size and lengths.sum() != splits[-1]:
        raise InvalidArgumentError("Invalid row split size.")
    check_allocation((int(lengths.sum()),), DataType.DT_INT64)
    columns = ranges(0, lengths)
    return np.repeat(places[: lengths.size], lengths), columns


def _of_row_ids(row_ids: Any, places: Any) -> tuple[Any, Any]:
    if row_ids.size and not 0 <= row_ids.min() <= row_ids.max() < places.size:
        raise InvalidArgumentError(
            f"Each value's row must be in [0, {places.size}), but rows are "
            f"{row_ids.min()} ... {row_ids.max()}"
        )
    _, lengths = _run_lengths(row_ids)
    return places[row_ids], ranges(0, lengths)


_PARENTS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "ROW_SPLITS": _of_splits,
    "VALUE_ROWIDS": _of_row_ids,
}


@g.register_gradient("RaggedTensorToTensor")
def ragged_tensor_to_tensor_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    values, default, partitions = op.inputs[1], op.inputs[2], list(op.inputs[3:])
    kinds = op.get_attr("row_partition_types")
    ragged_rank = sum(kind not in ("FIRST_DIM_SIZE", b"FIRST_DIM_SIZE") for kind in kinds)
    count = g.nodes.GatherV2(g.nodes.Shape(values), 0, 0)
    numbers = g.nodes.RaggedTensorToTensor(
        g.nodes.Slice(g.nodes.Shape(grad), [0], [ragged_rank + 1]),
        g.nodes.Range(0, count, 1),
        -1,
        partitions,
        row_partition_types=kinds,
    )
    places = g.nodes.Reshape(numbers, [-1])
    inner = g.nodes.Slice(g.nodes.Shape(values), [1], [-1])
    rows = g.nodes.Reshape(grad, g.nodes.ConcatV2([[-1], inner], 0))
    by_values = g.nodes.UnsortedSegmentSum(rows, places, count)
    no_value = g.nodes.Less(places, 0)
    mask = g.nodes.Reshape(
        no_value, g.nodes.ConcatV2([[-1], g.nodes.Fill(g.nodes.Shape(inner), 1)], 0)
    )
    unused = g.nodes.SelectV2(mask, rows, g.zeros_like(rows))
    _, by_default = g.sum_to_operands(rows, default, None, unused)
    return None, by_values, by_default, *[None] * len(partitions)


def splits_and_values(c: InferenceContext, ragged_rank: int) -> ShapeHandle:
    """The shape of the flat values, the input after the splits; all splits are vectors."""
    values = c.with_rank_at_least(c.input(ragged_rank), 1)
    check_input_ranks(c, *[1] * ragged_rank)
    return values


def ragged_tensor_to_sparse_shape(c: InferenceContext) -> None:
    """An index and a value for each of the flat values."""
    ragged_rank = c.get_attr("RAGGED_RANK")
    values = splits_and_values(c, ragged_rank)
    rank = c.make_dim(c.rank(values) + ragged_rank if c.rank_known(values) else None)
    count = c.num_elements(values)
    set_outputs(c, [c.matrix(count, rank), c.vector(count), c.vector(rank)])


RAGGED_TENSOR_TO_SPARSE = register_op(
    "RaggedTensorToSparse(rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T) "
    "-> sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64",
    attrs=["RAGGED_RANK: int >= 1", "T: type", "Tsplits: {int32, int64} = DT_INT64"],
    shape_fn=ragged_tensor_to_sparse_shape,
    doc="The values of a ragged tensor with their indices.",
)


@register_kernel(RAGGED_TENSOR_TO_SPARSE, types={"Tsplits": INDEX})
def ragged_tensor_to_sparse(nested_splits: list[Any], values: Any) -> tuple[Any, Any, Any]:
    splits = [one.reshape(-1) for one in nested_splits]
    _check(splits, values)
    columns, sizes = [np.arange(splits[0].size - 1)], [splits[0].size - 1]
    for level in splits:
        lengths = np.diff(level)
        columns = [np.repeat(column, lengths) for column in columns]
        columns.append(ranges(0, lengths))
        sizes.append(int(lengths.max(initial=0)))
    inner = values.shape[1:]
    check_allocation((values.size, len(sizes) + len(inner)), DataType.DT_INT64)
    count = int(np.prod(inner))
    columns = [np.repeat(column, count) for column in columns]
    columns += [np.tile(one.reshape(-1), values.shape[0]) for one in np.indices(inner)]
    indices = np.stack(columns, axis=1).astype(np.int64)
    return indices, values.reshape(-1).copy(), np.array([*sizes, *inner], np.int64)


def _check(splits: list[Any], values: Any) -> None:
    """Raise InvalidArgumentError unless the splits fit one another and the values."""
    sizes = [level.size - 1 for level in splits[1:]]
    sizes.append(values.shape[0] if values.ndim else -1)
    for level, size in zip(splits, sizes, strict=True):
        require(level.size, "ragged splits may not be empty.")
        require(level[0] == 0, "First value of ragged splits must be 0.")
        falls = np.flatnonzero(level[1:] < level[:-1])
        if falls.size:
            raise InvalidArgumentError(
                f"Ragged splits should be non decreasing, but we got {level[falls[0]]} followed "
                f"by {level[falls[0] + 1]}"
            )
        if level[-1] != size:
            raise InvalidArgumentError(
                "Final value of ragged splits must match the length the corresponding ragged array"
            )


@g.register_gradient("RaggedTensorToSparse")
def ragged_tensor_to_sparse_gradient(
    op: g.Operation, _indices: Any, grad: g.Tensor, _shape: Any
) -> g.Gradients:
    values = op.inputs[-1]
    return *[None] * (len(op.inputs) - 1), g.nodes.Reshape(grad, g.nodes.Shape(values))
