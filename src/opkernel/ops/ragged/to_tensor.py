"""RaggedTensorToTensor: rows of a ragged tensor side by side, filled up with a default value.

Source: TensorFlow core/ops/ragged_conversion_ops.cc, core/kernels/ragged_tensor_to_tensor_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.ragged.rows import VALUE_TYPES, ranges
from opkernel.ops.ragged.to_tensor_shape import (
    PARTITION_TYPES,
    ragged_tensor_to_tensor_shape,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

RAGGED_TENSOR_TO_TENSOR = register_op(
    "RaggedTensorToTensor",
    inputs=[
        "shape: Tshape",
        "values: T",
        "default_value: T",
        "row_partition_tensors: num_row_partition_tensors * Tindex",
    ],
    outputs=["result: T"],
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


@register_kernel(
    RAGGED_TENSOR_TO_TENSOR, device="CPU", types={"T": VALUE_TYPES, "Tindex": INDEX}, factory=True
)
def ragged_tensor_to_tensor(
    *, T: DataType, row_partition_types: list[str]
) -> Callable[[Any, Any, Any, list[Any]], Any]:
    for name in row_partition_types:
        if name not in PARTITION_TYPES:
            raise InvalidArgumentError(f"Unknown string for partition info type: {name}")
    has_size = row_partition_types[:1] == ["FIRST_DIM_SIZE"]
    kinds = row_partition_types[has_size:]

    def compute(shape: Any, values: Any, default_value: Any, partitions: list[Any]) -> Any:
        rows = _first_size(row_partition_types, partitions)
        flat = [one.reshape(-1) for one in partitions[has_size:]]
        if len(flat) < len(kinds):
            raise InvalidArgumentError("There are fewer row partition tensors than types")
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
    if not kinds:
        raise InvalidArgumentError("No row_partition_types given.")
    if kinds[0] == "FIRST_DIM_SIZE":
        if partitions[0].size != 1:
            raise InvalidArgumentError("FIRST_DIM_SIZE must be a scalar")
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
    if shape.ndim > 1:
        raise InvalidArgumentError("The shape must be a scalar or a vector")
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
    changes = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    starts = np.concatenate([np.zeros(min(numbers.size, 1), np.int64), changes])
    return starts, np.diff(np.append(starts, numbers.size))


def _places(kinds: Sequence[str], partitions: list[Any], sizes: Sequence[int], rows: int) -> Any:
    """The place of each flat value in the flat output; -1 where there is none."""
    strides = [1]
    for size in reversed(sizes[1 : len(kinds) + 1]):
        strides.insert(0, strides[0] * size)
    places = np.arange(rows, dtype=np.int64) * strides[0]
    places[sizes[0] :] = -1
    for i, (kind, partition) in enumerate(zip(kinds, partitions, strict=False), 1):
        parents, columns = _PARENTS[kind](partition, places)
        places = np.where((parents >= 0) & (columns < sizes[i]), parents + columns * strides[i], -1)
    return places


def _of_splits(splits: Any, places: Any) -> tuple[Any, Any]:
    """The place of the row of each value, and the value's column."""
    if splits.size - 1 > places.size:
        raise InvalidArgumentError(
            f"Row partition size is greater than output size: {splits.size - 1} > {places.size}"
        )
    lengths = np.diff(splits)
    if splits.size and ((lengths < 0).any() or lengths.sum() != splits[-1]):
        raise InvalidArgumentError("Invalid row split size.")
    check_allocation((int(lengths.sum()),), DataType.DT_INT64)
    columns = ranges(np.zeros(lengths.size, np.int64), lengths)
    return np.repeat(places[: lengths.size], lengths), columns


def _of_row_ids(row_ids: Any, places: Any) -> tuple[Any, Any]:
    if row_ids.size and not 0 <= row_ids.min() <= row_ids.max() < places.size:
        raise InvalidArgumentError(
            f"Each value's row must be in [0, {places.size}), but rows are "
            f"{row_ids.min()} ... {row_ids.max()}"
        )
    starts, lengths = _run_lengths(row_ids)
    return places[row_ids], ranges(np.zeros(starts.size, np.int64), lengths)


def _of_other(partition: Any, places: Any) -> tuple[Any, Any]:
    raise InvalidArgumentError("Unsupported partition type")


_PARENTS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = dict.fromkeys(
    PARTITION_TYPES, _of_other
) | {"ROW_SPLITS": _of_splits, "VALUE_ROWIDS": _of_row_ids}
