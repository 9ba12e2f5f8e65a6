"""SparseCross, SparseCrossV2, SparseCrossHashed and RaggedCross: all combinations of the features of a row.

Source: TensorFlow core/ops/sparse_ops.cc, core/ops/ragged_array_ops.cc, core/kernels/sparse_cross_op.cc,
ragged_cross_op.cc, tsl/platform/fingerprint.h.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.intra_op import cut, shard
from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import joining, map_strings, string_tensor
from opkernel.device.work_clock import in_time, parts_work
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes.rules import set_outputs, shape_rule
from opkernel.ops.input_checks import require, require_equal, require_rank
from opkernel.ops.ragged.gather_range import check_splits, lengths_to_splits
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.ops.sparse.tensors import check_rank
from opkernel.ops.strings.hashes import concatenated, fingerprints, sip_hashes
from opkernel.types import DataType, TensorShape

_AT_ONCE = 1 << 16
"""So many combinations are made values at once."""
_ARRAYS = 6
"""The arrays of integers that combinations are made with, beside one for each column."""
_OF_TEXT = 1 << 9
"""The work of making text of a number."""

_SHAPES = shape_rule("-> [?, 2], [?], [2]")
_FEATURES = "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types"
_COUNT = "N: int >= 0"
_TYPES = ["sparse_types: list({int64, string}) >= 0", "dense_types: list({int64, string}) >= 0"]
_INT64_OR_STRING = (DataType.DT_INT64, DataType.DT_STRING)

SPARSE_CROSS = register_op(
    f"SparseCross({_FEATURES}) "
    "-> output_indices: int64, output_values: out_type, output_shape: int64",
    attrs=[
        _COUNT,
        "hashed_output: bool",
        "num_buckets: int >= 0",
        "hash_key: int",
        *_TYPES,
        "out_type: {int64, string}",
        "internal_type: {int64, string}",
    ],
    shape_fn=_SHAPES,
    doc="The combinations of the features of each row, joined by _X_ or hashed.",
)
SPARSE_CROSS_V2 = register_op(
    f"SparseCrossV2({_FEATURES}, sep: string) "
    "-> output_indices: int64, output_values: string, output_shape: int64",
    attrs=[_COUNT, *_TYPES],
    shape_fn=_SHAPES,
    doc="The combinations of the features of each row, joined by `sep`.",
)
SPARSE_CROSS_HASHED = register_op(
    f"SparseCrossHashed({_FEATURES}, num_buckets: int64, strong_hash: bool, salt: int64) "
    "-> output_indices: int64, output_values: int64, output_shape: int64",
    attrs=[_COUNT, *_TYPES],
    shape_fn=_SHAPES,
    doc="The hashes of the combinations of the features of each row, modulo `num_buckets` unless 0.",
)


class Column(NamedTuple):
    """The features of one input.

    Attributes:
        values: All of them, row by row.
        starts: Where each row begins.
        counts: How many each row has.
    """

    values: Any
    starts: Any
    counts: Any


class Crosses(NamedTuple):
    """The combinations of all rows.

    Attributes:
        indices: Row and number of each.
        places: For each column the place of the feature among its values.
        shape: How many rows, and how many combinations at most.
    """

    indices: Any
    places: list[Any]
    shape: Any


def _columns(
    indices: list[Any], values: list[Any], shapes: list[Any], dense: list[Any]
) -> list[Column]:
    """The features of the sparse inputs, then of the dense ones."""
    size = _check_inputs(indices, values, shapes, dense)
    columns = []
    for rows, features in zip(indices, values, strict=True):
        numbers = rows[:, 0]
        falls = np.flatnonzero(np.diff(numbers, prepend=0) < 0)  # what comes after is not reached
        ends = np.searchsorted(numbers[: falls[0] if len(falls) else None], np.arange(size + 1))
        columns.append(Column(features, ends[:-1], np.diff(ends)))
    return [*columns, *map(_dense_column, dense)]


def _dense_column(matrix: Any) -> Column:
    rows, width = matrix.shape
    return _column(matrix.reshape(-1), np.arange(rows + 1) * width)


def _check_inputs(
    indices: list[Any], values: list[Any], shapes: list[Any], dense: list[Any]
) -> int:
    """The number of rows, if all inputs have it and make sparse tensors and matrices of rank 2."""
    for number, parts in enumerate(zip(indices, values, shapes, strict=True)):
        rows, features, shape = parts
        check_rank(2, **{f"indices[{number}]": rows})
        check_rank(1, **{f"values[{number}]": features, f"shapes[{number}]": shape})
        if rows.shape != (len(features), 2):
            raise InvalidArgumentError(
                f"Expected indices[{number}] to have the shape [{len(features)},2] for "
                f"{len(features)} values, got {TensorShape(rows.shape)}"
            )
        if len(shape) != 2:
            raise InvalidArgumentError(
                f"shapes[{number}] should imply a 2D tensor, but got {shape.tolist()}"
            )
    for number, matrix in enumerate(dense):
        check_rank(2, **{f"dense_inputs[{number}]": matrix})
    sizes = [int(shape[0]) for shape in shapes] + [len(matrix) for matrix in dense]
    if any(size != sizes[0] for size in sizes):
        raise InvalidArgumentError(f"All inputs must have the same number of rows, got {sizes}")
    size = sizes[0] if sizes else 0
    require(size >= 0, f"The number of rows must not be negative, got {size}")
    check_allocation((size, 1 + len(sizes)), DataType.DT_INT64)
    return size


def crossed(columns: Sequence[Column]) -> Crosses:
    """The combinations, of which those of the last column change fastest."""
    if not columns:
        return Crosses(np.zeros((0, 2), np.int64), [], np.zeros(2, np.int64))
    counts = _product([column.counts for column in columns])
    rows = np.repeat(np.arange(len(counts)), counts)
    numbers = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    rest, places = numbers, []
    for column in reversed(columns):
        rest, at = np.divmod(rest, column.counts[rows])
        places.append(column.starts[rows] + at)
    shape = np.array([len(counts), counts.max(initial=0)])
    return Crosses(np.stack((rows, numbers), axis=1), places[::-1], shape)


def making_crosses(columns: Sequence[Column], dtype: DataType) -> AbstractContextManager[object]:
    """Counts the memory of the combinations, and of the arrays that they are made with.

    Raises:
        ResourceExhaustedError: they are too many.
    """
    counts = _product([column.counts for column in columns]) if columns else np.zeros(0)
    total = sum(counts.tolist())
    check_allocation((total, 2), DataType.DT_INT64)
    check_allocation((total,), dtype)
    return making_bytes("combinations of features", total * (len(columns) + _ARRAYS) * 8)


def _product(counts: list[Any]) -> Any:
    """How many combinations each row has.

    Raises:
        ResourceExhaustedError: they are too many.
    """
    estimate = np.prod([count.astype(np.float64) for count in counts], axis=0)
    largest = int(min(estimate.max(initial=0), 2.0**62))
    check_allocation((largest,), DataType.DT_INT64)
    return np.prod(counts, axis=0)


def joined_texts(crosses: Crosses, columns: Sequence[Column], separator: bytes) -> Any:
    """The values of each combination, as text."""
    texts = [
        values if values.dtype == object else map_strings(b"%d".__mod__, values, _OF_TEXT)
        for values, *_ in columns
    ]

    def rows() -> Iterator[tuple[bytes, ...]]:
        for some in cut(len(crosses.indices), 1 + len(crosses.indices) // _AT_ONCE):
            yield from zip(*_chosen(texts, crosses, some), strict=True)

    return string_tensor(
        (len(crosses.indices),), map(joining(separator), in_time(rows(), parts_work))
    )


def fingerprints_of(values: Any) -> Any:
    """Of strings the fingerprints, of numbers themselves."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.astype(np.uint64)
    return fingerprints(np.asarray(values, object))


def _bytes(values: Any) -> Any:
    """What SparseCrossHashed hashes: strings, and as in TensorFlow only the lower half of a number."""
    if values.dtype == object:
        return values
    return map_strings(lambda number: number.tobytes()[:4], values, _OF_TEXT)


def buckets_of(
    hashes: Sequence[Any], crosses: Crosses, num_buckets: int, start: int | None = None
) -> Any:
    """The number of the bucket of each combination: the hashes of its values, concatenated after `start`."""
    modulus = np.uint64(num_buckets if num_buckets > 0 else np.iinfo(np.int64).max)
    buckets = np.empty(len(crosses.indices), np.int64)

    def fill(some: slice) -> None:
        chosen = _chosen(hashes, crosses, some)
        if start is not None:
            chosen.insert(0, np.full(some.stop - some.start, start, np.uint64))
        buckets[some] = reduce(concatenated, chosen) % modulus

    shard(fill, cut(len(buckets), 1 + len(buckets) // _AT_ONCE))
    return buckets


@register_kernel(
    SPARSE_CROSS, types={"out_type": _INT64_OR_STRING, "internal_type": _INT64_OR_STRING}
)
def sparse_cross(
    indices: list[Any],
    values: list[Any],
    shapes: list[Any],
    dense_inputs: list[Any],
    *,
    num_buckets: int,
    hash_key: int,
    sparse_types: list[DataType],
    dense_types: list[DataType],
    out_type: DataType,
    internal_type: DataType,
) -> tuple[Any, Any, Any]:
    for name, types in (("Input values", sparse_types), ("Dense inputs", dense_types)):
        for given in types:
            if internal_type is DataType.DT_STRING is not given:
                raise InvalidArgumentError(
                    f"{name} should be of internal type string but received {given.string}"
                )
    columns = _columns(indices, values, shapes, dense_inputs)
    with making_crosses(columns, out_type):
        crosses = crossed(columns)
        crossed_values = _values_of(crosses, columns, out_type, num_buckets, hash_key)
        return crosses.indices, crossed_values, crosses.shape


def _values_of(
    crosses: Crosses, columns: Sequence[Column], dtype: DataType, num_buckets: int, hash_key: int
) -> Any:
    """The value of each combination: text joined by _X_, or the number of its bucket."""
    if dtype is DataType.DT_STRING:
        return joined_texts(crosses, columns, b"_X_")
    hashes = [fingerprints_of(column.values) for column in columns]
    return buckets_of(hashes, crosses, num_buckets, hash_key % 2**64)


def _chosen(values: Sequence[Any], crosses: Crosses, some: slice) -> list[Any]:
    """For each column those of its values that some of the combinations have."""
    return [one[at[some]] for one, at in zip(values, crosses.places, strict=True)]


@register_kernel(SPARSE_CROSS_V2)
def sparse_cross_v2(
    indices: list[Any], values: list[Any], shapes: list[Any], dense_inputs: list[Any], sep: Any
) -> tuple[Any, Any, Any]:
    check_rank(0, sep=sep)
    columns = _columns(indices, values, shapes, dense_inputs)
    with making_crosses(columns, DataType.DT_STRING):
        crosses = crossed(columns)
        return crosses.indices, joined_texts(crosses, columns, sep[()]), crosses.shape


@register_kernel(SPARSE_CROSS_HASHED)
def sparse_cross_hashed(
    indices: list[Any],
    values: list[Any],
    shapes: list[Any],
    dense_inputs: list[Any],
    num_buckets: Any,
    strong_hash: Any,
    salt: Any,
) -> tuple[Any, Any, Any]:
    check_rank(0, num_buckets=num_buckets, strong_hash=strong_hash)
    require_equal(salt.size, 2, 'Input "salt" must have length 2 but has length {}')
    columns = _columns(indices, values, shapes, dense_inputs)
    first, second = salt.reshape(-1).tolist()
    with making_crosses(columns, DataType.DT_INT64):
        hashes = []
        for number, column in enumerate(columns):
            is_dense = number >= len(indices)
            if strong_hash:
                hashes.append(sip_hashes(_bytes(column.values), (first, second)))
            else:  # numbers of dense inputs are not hashed
                hashes.append(fingerprints_of(column.values if is_dense else _bytes(column.values)))
        crosses = crossed(columns)
        return crosses.indices, buckets_of(hashes, crosses, int(num_buckets)), crosses.shape


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


@register_kernel(RAGGED_CROSS, types={"out_row_splits_type": INDEX})
def ragged_cross(  # `out_values_type` decides whether values are hashed, and nothing asks `hashed_output`
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
        "D": [*map(_dense_column, dense_inputs)],
    }
    columns = _in_order(kinds, input_order)
    sizes = {column.counts.size for column in columns}
    require(len(sizes) <= 1, "inputs must all have the same batch dimension size.")
    with making_crosses(columns, out_values_type):
        crosses = crossed(columns)
        values = _values_of(crosses, columns, out_values_type, num_buckets, hash_key)
        rows = sizes.pop() if sizes else 0
        counts = np.bincount(crosses.indices[:, 0], minlength=rows)
        return values, lengths_to_splits(counts, out_row_splits_type)


def _ragged_features(values: list[Any], splits: list[Any]) -> list[Column]:
    require_equal(len(values), len(splits), "ragged values and splits must have the same length")
    for flat, rows in zip(values, splits, strict=True):
        if flat.ndim != 1 or rows.ndim != 1:
            raise InvalidArgumentError("tf.ragged.cross only supports inputs with rank=2.")
        check_splits(rows, flat.size)
    return list(map(_column, values, splits))


def _column(values: Any, splits: Any) -> Column:
    """The features of an input, from its values, one row after the other, and the splits of the rows."""
    return Column(values, splits[:-1], np.diff(splits))


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
        features.append(_column(flat, splits))
    return features


def _in_order(kinds: dict[str, list[Column]], order: str) -> list[Column]:
    require(len(order) == sum(map(len, kinds.values())), "Invalid length for input_order")
    left = {kind: iter(features) for kind, features in kinds.items()}
    found = [next(left[kind], None) if kind in left else None for kind in order]
    if not all(found):
        raise InvalidArgumentError(f"input_order {order!r} does not fit the inputs")
    return [feature for feature in found if feature is not None]
