"""RaggedCross: all combinations of the ragged, sparse and dense features of a row.

Source: TensorFlow core/ops/ragged_array_ops.cc, core/kernels/ragged_cross_op.cc.
"""

from types import MethodType
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.ops.input_checks import require, require_equal, require_rank
from opkernel.ops.ragged.gather_range import check_splits, lengths_to_splits
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.ops.sparse.cross import (
    Column,
    column_of,
    crossed,
    dense_column,
    making_crosses,
    values_of,
)
from opkernel.ops.strings.hashes import BY_COLUMNS, StringHashes
from opkernel.types import DataType


def _merge_batch_size(c: InferenceContext, splits: ShapeHandle, other: ShapeHandle) -> ShapeHandle:
    try:
        return c.merge(splits, other)
    except InvalidArgumentError:
        raise InvalidArgumentError("inputs must all have the same batch dimension size.") from None


def ragged_cross_shape(c: InferenceContext) -> None:
    """Values of unknown number, and splits for the rows that all features have."""
    ragged, sparse = len(c.get_attr("ragged_values_types")), c.get_attr("Nsparse")
    if ragged != len(c.get_attr("ragged_splits_types")):
        raise InvalidArgumentError("Parameters `values` and `row_splits` must be the same length")
    if sparse != len(c.get_attr("sparse_values_types")):
        raise InvalidArgumentError("sparse indices and values must have the same length")
    splits = c.vector(None)
    for i in range(ragged, 2 * ragged):
        splits = _merge_batch_size(c, splits, c.input(i))
    for i in range(2 * ragged + 3 * sparse, c.num_inputs()):
        if c.rank_known(c.input(i)) and c.rank(c.input(i)) != 2:
            raise InvalidArgumentError("tf.ragged.cross only supports inputs with rank=2")
        batch = c.dim(c.input(i), 0)
        if c.value_known(batch):
            splits = _merge_batch_size(c, splits, c.vector(batch.value + 1))
    set_outputs(c, [c.vector(None), splits])


RAGGED_CROSS = register_op(
    "RaggedCross(ragged_values: ragged_values_types, ragged_row_splits: ragged_splits_types, "
    "sparse_indices: Nsparse * int64, sparse_values: sparse_values_types, "
    "sparse_shape: Nsparse * int64, dense_inputs: dense_types) -> output_values: out_values_type, "
    "output_row_splits: out_row_splits_type",
    attrs=[
        "Nsparse: int >= 0",
        "input_order: string",
        "hashed_output: bool",
        "num_buckets: int >= 0",
        "hash_key: int",
        "ragged_values_types: list({int64, string}) >= 0",
        "ragged_splits_types: list({int32, int64}) >= 0",
        "sparse_values_types: list({int64, string}) >= 0",
        "dense_types: list({int64, string}) >= 0",
        "out_values_type: {int64, string}",
        "out_row_splits_type: {int32, int64}",
    ],
    shape_fn=ragged_cross_shape,
    doc="The combinations of values of the features in each row: joined by _X_, or hashed.",
)


def _ragged_cross(  # `out_values_type` decides whether values are hashed, and nothing asks `hashed_output`
    hashes: StringHashes,
    ragged_values: list[Any],
    ragged_splits: list[Any],
    sparse_indices: list[Any],
    sparse_values: list[Any],
    sparse_shapes: list[Any],
    dense_inputs: list[Any],
    *,
    input_order: str,
    num_buckets: int,
    hash_key: int,
    out_values_type: DataType,
    out_row_splits_type: DataType,
) -> tuple[Any, Any]:
    for tensor in dense_inputs:
        require_rank(tensor, 2, "tf.ragged.cross only supports inputs with rank=2.")
    kinds = {
        "R": _ragged_features(ragged_values, ragged_splits),
        "S": _sparse_features(sparse_indices, sparse_values, sparse_shapes),
        "D": [*map(dense_column, dense_inputs)],
    }
    columns = _in_order(kinds, input_order)
    sizes = {column.counts.size for column in columns}
    require(len(sizes) <= 1, "inputs must all have the same batch dimension size.")
    with making_crosses(columns, out_values_type):
        crosses = crossed(columns)
        values = values_of(hashes, crosses, columns, out_values_type, num_buckets, hash_key)
        rows = sizes.pop() if sizes else 0
        counts = np.bincount(crosses.indices[:, 0], minlength=rows)
        return values, lengths_to_splits(counts, out_row_splits_type)


def _ragged_features(values: list[Any], splits: list[Any]) -> list[Column]:
    require_equal(len(values), len(splits), "ragged values and splits must have the same length")
    for flat, rows in zip(values, splits, strict=True):
        if flat.ndim != 1 or rows.ndim != 1:
            raise InvalidArgumentError("tf.ragged.cross only supports inputs with rank=2.")
        check_splits(rows, flat.size)
    return list(map(column_of, values, splits))


def _sparse_features(indices: list[Any], values: list[Any], shapes: list[Any]) -> list[Column]:
    if not len(indices) == len(values) == len(shapes):
        raise InvalidArgumentError("sparse indices and values must have the same length")
    features = []
    for places, flat, shape in zip(indices, values, shapes, strict=True):
        if places.ndim != 2 or flat.ndim != 1 or places.shape[0] != flat.size:
            raise InvalidArgumentError("sparse indices and values must have the same length")
        if shape.ndim != 1 or shape.size != 2 or places.shape[1] != 2:
            raise InvalidArgumentError("tf.ragged.cross only supports inputs with rank=2.")
        (rows,) = check_allocation(shape[:1], DataType.DT_INT64)
        numbers = places[:, 0]
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < rows:
            raise InvalidArgumentError("sparse indices must be within the sparse shape")
        if (np.diff(numbers) < 0).any():
            raise InvalidArgumentError("sparse indices must be in the order of their rows")
        splits = lengths_to_splits(np.bincount(numbers, minlength=rows))
        features.append(column_of(flat, splits))
    return features


def _in_order(kinds: dict[str, list[Column]], order: str) -> list[Column]:
    require(len(order) == sum(map(len, kinds.values())), "Invalid length for input_order")
    left = {kind: iter(features) for kind, features in kinds.items()}
    found = [next(left[kind], None) if kind in left else None for kind in order]
    if not all(found):
        raise InvalidArgumentError(f"input_order {order!r} does not fit the inputs")
    return [feature for feature in found if feature is not None]


def register_ragged_cross(hashes: StringHashes, registry: KernelRegistry | None = None) -> None:
    """Register the kernel of RaggedCross with hashes of strings."""
    types = {"out_row_splits_type": INDEX}
    register_kernel(RAGGED_CROSS, types=types, registry=registry)(MethodType(_ragged_cross, hashes))


register_ragged_cross(BY_COLUMNS)
