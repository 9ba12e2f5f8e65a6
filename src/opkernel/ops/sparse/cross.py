"""SparseCross, SparseCrossV2 and SparseCrossHashed: all combinations of the features of a row.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_cross_op.cc, tsl/platform/fingerprint.h.
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
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_equal
from opkernel.ops.registration import register_kernel
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
_FEATURES = [
    "indices: N * int64",
    "values: sparse_types",
    "shapes: N * int64",
    "dense_inputs: dense_types",
]
_COUNT = "N: int >= 0"
_TYPES = ["sparse_types: list({int64, string}) >= 0", "dense_types: list({int64, string}) >= 0"]
_INT64_OR_STRING = (DataType.DT_INT64, DataType.DT_STRING)

SPARSE_CROSS = register_op(
    "SparseCross",
    inputs=_FEATURES,
    outputs=["output_indices: int64", "output_values: out_type", "output_shape: int64"],
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
    "SparseCrossV2",
    inputs=[*_FEATURES, "sep: string"],
    outputs=["output_indices: int64", "output_values: string", "output_shape: int64"],
    attrs=[_COUNT, *_TYPES],
    shape_fn=_SHAPES,
    doc="The combinations of the features of each row, joined by `sep`.",
)
SPARSE_CROSS_HASHED = register_op(
    "SparseCrossHashed",
    inputs=[*_FEATURES, "num_buckets: int64", "strong_hash: bool", "salt: int64"],
    outputs=["output_indices: int64", "output_values: int64", "output_shape: int64"],
    attrs=[_COUNT, *_TYPES],
    shape_fn=_SHAPES,
    doc="The hashes of the combinations of the features of each row, modulo `num_buckets` unless 0.",
)


class _Column(NamedTuple):
    """The features of one input.

    Attributes:
        values: All of them, row by row.
        starts: Where each row begins.
        counts: How many each row has.
    """

    values: Any
    starts: Any
    counts: Any


class _Crosses(NamedTuple):
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
) -> list[_Column]:
    """The features of the sparse inputs, then of the dense ones."""
    size = _check_inputs(indices, values, shapes, dense)
    columns = []
    for rows, features in zip(indices, values, strict=True):
        numbers = rows[:, 0]
        falls = np.flatnonzero(np.diff(numbers, prepend=0) < 0)  # what comes after is not reached
        ends = np.searchsorted(numbers[: falls[0] if len(falls) else None], np.arange(size + 1))
        columns.append(_Column(features, ends[:-1], np.diff(ends)))
    for matrix in dense:
        width = matrix.shape[1]
        starts = np.arange(size) * width
        columns.append(_Column(matrix.reshape(-1), starts, np.full(size, width)))
    return columns


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
    if size < 0:
        raise InvalidArgumentError(f"The number of rows must not be negative, got {size}")
    check_allocation((size, 1 + len(sizes)), DataType.DT_INT64)
    return size


def _crosses(columns: Sequence[_Column]) -> _Crosses:
    """The combinations, of which those of the last column change fastest."""
    if not columns:
        return _Crosses(np.zeros((0, 2), np.int64), [], np.zeros(2, np.int64))
    counts = _product([column.counts for column in columns])
    rows = np.repeat(np.arange(len(counts)), counts)
    numbers = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    rest, places = numbers, []
    for column in reversed(columns):
        rest, at = np.divmod(rest, column.counts[rows])
        places.append(column.starts[rows] + at)
    shape = np.array([len(counts), counts.max(initial=0)])
    return _Crosses(np.stack((rows, numbers), axis=1), places[::-1], shape)


def _making_crosses(columns: Sequence[_Column], dtype: DataType) -> AbstractContextManager[object]:
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


def _joined(crosses: _Crosses, columns: Sequence[_Column], separator: bytes) -> Any:
    texts = [_texts(column.values) for column in columns]

    def rows() -> Iterator[tuple[bytes, ...]]:
        for some in cut(len(crosses.indices), 1 + len(crosses.indices) // _AT_ONCE):
            yield from zip(*_chosen(texts, crosses, some), strict=True)

    return string_tensor(
        (len(crosses.indices),), map(joining(separator), in_time(rows(), parts_work))
    )


def _texts(values: Any) -> Any:
    return values if values.dtype == object else map_strings(_text, values, _OF_TEXT)


def _text(number: Any) -> bytes:
    return b"%d" % number


def _fingerprints(values: Any) -> Any:
    """Of strings the fingerprints, of numbers themselves."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.astype(np.uint64)
    return fingerprints(np.asarray(values, object))


def _keyed_hashes(values: Any, key: tuple[int, int]) -> Any:
    """SipHash-2-4 of each value."""
    return sip_hashes(_bytes(values), key)


def _bytes(values: Any) -> Any:
    """What SparseCrossHashed hashes: strings, and as in TensorFlow only the lower half of a number."""
    if values.dtype == object:
        return values
    return map_strings(lambda number: number.tobytes()[:4], values, _OF_TEXT)


def _buckets(
    hashes: Sequence[Any], crosses: _Crosses, num_buckets: int, start: int | None = None
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
    with _making_crosses(columns, out_type):
        crosses = _crosses(columns)
        if out_type is DataType.DT_STRING:
            return crosses.indices, _joined(crosses, columns, b"_X_"), crosses.shape
        hashes = [_fingerprints(column.values) for column in columns]
        buckets = _buckets(hashes, crosses, num_buckets, hash_key % 2**64)
        return crosses.indices, buckets, crosses.shape


def _chosen(values: Sequence[Any], crosses: _Crosses, some: slice) -> list[Any]:
    """For each column those of its values that some of the combinations have."""
    return [one[at[some]] for one, at in zip(values, crosses.places, strict=True)]


@register_kernel(SPARSE_CROSS_V2)
def sparse_cross_v2(
    indices: list[Any], values: list[Any], shapes: list[Any], dense_inputs: list[Any], sep: Any
) -> tuple[Any, Any, Any]:
    check_rank(0, sep=sep)
    columns = _columns(indices, values, shapes, dense_inputs)
    with _making_crosses(columns, DataType.DT_STRING):
        crosses = _crosses(columns)
        return crosses.indices, _joined(crosses, columns, sep[()]), crosses.shape


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
    with _making_crosses(columns, DataType.DT_INT64):
        hashes = []
        for number, column in enumerate(columns):
            is_dense = number >= len(indices)
            if strong_hash:
                hashes.append(_keyed_hashes(column.values, (first, second)))
            else:  # numbers of dense inputs are not hashed
                hashes.append(_fingerprints(column.values if is_dense else _bytes(column.values)))
        crosses = _crosses(columns)
        return crosses.indices, _buckets(hashes, crosses, int(num_buckets)), crosses.shape
