"""SparseCross, SparseCrossV2 and SparseCrossHashed: all combinations of the features of a row.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_cross_op.cc, tsl/platform/fingerprint.h.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.intra_op import cut, shard
from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import joining, map_strings, string_tensor
from opkernel.device.work_clock import in_time, parts_work
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require, require_equal
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import check_rank
from opkernel.ops.strings.hash_columns import concatenated
from opkernel.ops.strings.hashes import BY_COLUMNS, StringHashes
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
    return [*columns, *map(dense_column, dense)]


def column_of(values: Any, splits: Any) -> Column:
    """The features of an input, from its values, one row after the other, and the splits of the rows."""
    return Column(values, splits[:-1], np.diff(splits))


def dense_column(matrix: Any) -> Column:
    """The features of a dense input `[rows, features]`."""
    rows, width = matrix.shape
    return column_of(matrix.reshape(-1), np.arange(rows + 1) * width)


def _check_inputs(
    indices: list[Any], values: list[Any], shapes: list[Any], dense: list[Any]
) -> int:
    """The number of rows, if all inputs have it and make sparse tensors and matrices of rank 2."""
    require_equal(len(indices), len(values), "Expected {} input values, got {}")
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


def fingerprints_of(hashes: StringHashes, values: Any) -> Any:
    """Of strings the fingerprints, of numbers themselves."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.astype(np.uint64)
    return hashes.fingerprints(np.asarray(values, object))


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


def _sparse_cross(
    hashes: StringHashes,
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
        crossed_values = values_of(hashes, crosses, columns, out_type, num_buckets, hash_key)
        return crosses.indices, crossed_values, crosses.shape


def values_of(
    hashes: StringHashes,
    crosses: Crosses,
    columns: Sequence[Column],
    dtype: DataType,
    num_buckets: int,
    hash_key: int,
) -> Any:
    """The value of each combination: text joined by _X_, or the number of its bucket."""
    if dtype is DataType.DT_STRING:
        return joined_texts(crosses, columns, b"_X_")
    of_columns = [fingerprints_of(hashes, column.values) for column in columns]
    return buckets_of(of_columns, crosses, num_buckets, hash_key % 2**64)


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


def _sparse_cross_hashed(
    hashes: StringHashes,
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
        of_columns = []
        for number, column in enumerate(columns):
            is_dense = number >= len(indices)
            if strong_hash:
                texts = _bytes(column.values)
                of_columns.append(hashes.sip_hashes(texts, (first, second)))
            else:  # numbers of dense inputs are not hashed
                of_column = column.values if is_dense else _bytes(column.values)
                of_columns.append(fingerprints_of(hashes, of_column))
        crosses = crossed(columns)
        return crosses.indices, buckets_of(of_columns, crosses, int(num_buckets)), crosses.shape


def register_crosses(hashes: StringHashes, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of SparseCross and SparseCrossHashed with hashes of strings."""
    types = {"out_type": _INT64_OR_STRING, "internal_type": _INT64_OR_STRING}
    register_kernel(SPARSE_CROSS, types=types, registry=registry)(MethodType(_sparse_cross, hashes))
    register_kernel(SPARSE_CROSS_HASHED, registry=registry)(
        MethodType(_sparse_cross_hashed, hashes)
    )


register_crosses(BY_COLUMNS)
