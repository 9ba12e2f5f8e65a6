"""RaggedCross: each combination of one value of each feature, row by row.

Source: TensorFlow core/ops/ragged_array_ops.cc, core/kernels/ragged_cross_op.cc.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import joining, map_strings, string_tensor
from opkernel.device.work_clock import in_time, parts_work
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.ops.input_checks import require_equal, require_rank
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.ragged.rows import check_splits, lengths_to_splits, ranges
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.hashes import concatenated, fingerprints
from opkernel.types import DataType

_SEPARATOR = b"_X_"
_ARRAYS = 7
"""The arrays of integers that combinations are hashed with."""
_OF_TEXT = 1 << 9
"""The work of making text of a number."""


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
    "RaggedCross",
    inputs=[
        "ragged_values: ragged_values_types",
        "ragged_row_splits: ragged_splits_types",
        "sparse_indices: Nsparse * int64",
        "sparse_values: sparse_values_types",
        "sparse_shape: Nsparse * int64",
        "dense_inputs: dense_types",
    ],
    outputs=["output_values: out_values_type", "output_row_splits: out_row_splits_type"],
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

Feature = tuple[Any, Any]
"""Values, one row after the other, and the splits of the rows."""


@register_kernel(RAGGED_CROSS, types={"out_row_splits_type": INDEX}, factory=True)
def ragged_cross(
    *,
    input_order: str,
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
    out_values_type: DataType,
    out_row_splits_type: DataType,
) -> Callable[..., tuple[Any, Any]]:
    def compute(
        ragged_values: list[Any],
        ragged_splits: list[Any],
        sparse_indices: list[Any],
        sparse_values: list[Any],
        sparse_shapes: list[Any],
        dense_inputs: list[Any],
    ) -> tuple[Any, Any]:
        kinds = {
            "R": _ragged_features(ragged_values, ragged_splits),
            "S": _sparse_features(sparse_indices, sparse_values, sparse_shapes),
            "D": _dense_features(dense_inputs),
        }
        features = _in_order(kinds, input_order)
        sizes = {splits.size for _, splits in features}
        if len(sizes) > 1:
            raise InvalidArgumentError("inputs must all have the same batch dimension size.")
        if not features:
            rows = lengths_to_splits(np.zeros(0, np.int64), out_row_splits_type)
            return np.zeros(0, out_values_type.numpy_dtype), rows
        lengths = np.array([np.diff(splits) for _, splits in features], np.int64)
        counts = _counts(lengths, out_values_type)
        if hashed_output:
            values = _hashed(features, lengths, counts, hash_key, num_buckets)
        else:
            values = _joined(features, int(counts.sum()))
        if (out_values_type is DataType.DT_STRING) == hashed_output:
            raise InvalidArgumentError(
                f"out_values_type {out_values_type.string} does not fit hashed_output"
            )
        return values, lengths_to_splits(counts, out_row_splits_type)

    return compute


def _ragged_features(values: list[Any], splits: list[Any]) -> list[Feature]:
    require_equal(len(values), len(splits), "ragged values and splits must have the same length")
    for flat, rows in zip(values, splits, strict=True):
        if flat.ndim != 1 or rows.ndim != 1:
            raise InvalidArgumentError("tf.ragged.cross only supports inputs with rank=2.")
        check_splits(rows, flat.size)
    return list(zip(values, splits, strict=True))


def _sparse_features(indices: list[Any], values: list[Any], shapes: list[Any]) -> list[Feature]:
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
        features.append((flat, lengths_to_splits(np.bincount(numbers, minlength=rows))))
    return features


def _dense_features(inputs: list[Any]) -> list[Feature]:
    features = []
    for tensor in inputs:
        require_rank(tensor, 2, "tf.ragged.cross only supports inputs with rank=2.")
        rows, columns = tensor.shape
        features.append((tensor.reshape(-1), np.arange(rows + 1) * columns))
    return features


def _in_order(kinds: dict[str, list[Feature]], order: str) -> list[Feature]:
    if len(order) != sum(map(len, kinds.values())):
        raise InvalidArgumentError("Invalid length for input_order")
    left = {kind: iter(features) for kind, features in kinds.items()}
    found = [next(left[kind], None) if kind in left else None for kind in order]
    if not all(found):
        raise InvalidArgumentError(f"input_order {order!r} does not fit the inputs")
    return [feature for feature in found if feature is not None]


def _counts(lengths: Any, dtype: DataType) -> Any:
    """How many combinations each row has."""
    counts = lengths.astype(np.float64).prod(axis=0)
    check_allocation((int(min(counts.sum(), 2.0**62)),), dtype)
    return lengths.prod(axis=0)


def _joined(features: Sequence[Feature], count: int) -> Any:
    columns = [
        (flat if flat.dtype == object else map_strings(_text, flat, _OF_TEXT), splits.tolist())
        for flat, splits in features
    ]
    rows = range(len(columns[0][1]) - 1) if columns else range(0)
    found = (
        row
        for i in in_time(rows)
        for row in itertools.product(*[flat[splits[i] : splits[i + 1]] for flat, splits in columns])
    )
    return string_tensor((count,), map(joining(_SEPARATOR), in_time(found, parts_work)))


def _text(number: Any) -> bytes:
    return b"%d" % number


def _hashed(
    features: Iterable[Feature], lengths: Any, counts: Any, hash_key: int, num_buckets: int
) -> Any:
    """The hash of each combination: the last feature changes fastest."""
    with making_bytes("combinations of features", _ARRAYS * 8 * int(counts.sum())):
        number = ranges(np.zeros(counts.size, np.int64), counts)
        rows = np.repeat(np.arange(counts.size), counts)
        inner = counts.copy()
        hashes = np.full(number.size, np.uint64(hash_key & (2**64 - 1)))
        for (flat, splits), length in zip(features, lengths, strict=True):
            prints = fingerprints(flat) if flat.dtype == object else flat.astype(np.uint64)
            inner = inner // np.maximum(length, 1)
            digit = number // inner[rows] % length[rows]
            hashes = concatenated(hashes, prints[splits[rows] + digit])
            check_time("combining features")
    modulus = num_buckets if num_buckets > 0 else 2**63 - 1
    return (hashes % np.uint64(modulus)).astype(np.int64)
