"""Batches of sequences of different lengths. Literals are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.data import Dataset, SparseTensorSpec

SEQUENCES = [
    *([0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20], [21, 22]),
]
SOURCE = Dataset.from_generator(
    lambda: SEQUENCES, output_signature=opkernel.TensorSpec([None], opkernel.int64)
)
BUCKETS = [
    [[1, 2, 3, 4], [5, 6, 7, 0]],
    [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]],
    [[0, 0], [21, 22]],
]


def values(dataset: Any) -> Any:
    return [np.asarray(one).tolist() for one in dataset]


def length(sequence: Any) -> Any:
    return opkernel.shape(sequence)[0]


def test_buckets() -> None:
    batches = SOURCE.bucket_by_sequence_length(length, [3, 5], [2, 2, 2])
    assert values(batches) == BUCKETS
    assert batches.element_spec == opkernel.TensorSpec([None, None], opkernel.int64)
    assert values(SOURCE.bucket_by_sequence_length(lambda _: -1, [3, 5], [6, 2, 2]).take(1)) == [
        [[*one, *[0] * (6 - len(one))] for one in SEQUENCES]
    ]


def test_smaller_last_batches() -> None:
    batches = SOURCE.take(5).bucket_by_sequence_length(length, [3, 5], [2, 2, 2])
    assert values(batches) == [*BUCKETS[:2], [[0]]]
    whole = SOURCE.take(5).bucket_by_sequence_length(length, [3, 5], [2, 2, 2], drop_remainder=True)
    assert values(whole) == BUCKETS[:2]


def test_padding_to_the_end_of_the_bucket() -> None:
    batches = SOURCE.bucket_by_sequence_length(
        length, [3, 5, 8], [2, 2, 2, 2], pad_to_bucket_boundary=True
    )
    assert values(batches) == [
        [[1, 2, 3, 4], [5, 6, 7, 0]],
        [[7, 8, 9, 10, 11, 0, 0], [13, 14, 15, 16, 19, 20, 0]],
        [[0, 0], [21, 22]],
    ]
    too_long = SOURCE.bucket_by_sequence_length(
        length, [3, 5], [2, 2, 2], pad_to_bucket_boundary=True
    )
    with pytest.raises(errors.InvalidArgumentError, match="When pad_to_bucket_boundary=True"):
        values(too_long)


def test_shapes_and_values_to_pad_with() -> None:
    pairs = SOURCE.map(lambda x: {"a": x, "b": (x[0], x)})
    batches = pairs.bucket_by_sequence_length(
        lambda x: length(x["a"]),
        [3, 5],
        [2, 2, 2],
        {"a": [8], "b": ([], [None])},
        {"a": np.int64(-1), "b": (np.int64(0), np.int64(5))},
    )
    first = next(iter(batches))
    assert first["a"].tolist() == [[1, 2, 3, 4, *[-1] * 4], [5, 6, 7, *[-1] * 5]]
    assert first["b"][1].tolist() == [[1, 2, 3, 4], [5, 6, 7, 5]]


def test_no_padding() -> None:
    rows = Dataset.from_tensor_slices([[1, 2], [3, 4], [5, 6]])
    batches = rows.bucket_by_sequence_length(length, [3], [2, 2], no_padding=True)
    assert values(batches) == [[[1, 2], [3, 4]], [[5, 6]]]
    with pytest.raises(errors.InvalidArgumentError):
        values(SOURCE.bucket_by_sequence_length(length, [3, 5], [2, 2, 2], no_padding=True))


def test_wrong_buckets() -> None:
    with pytest.raises(ValueError, match="must equal"):
        SOURCE.bucket_by_sequence_length(length, [3, 5], [2, 2])
    with pytest.raises(TypeError):
        SOURCE.bucket_by_sequence_length(
            lambda x: opkernel.cast(length(x), opkernel.int64), [3, 5], [2, 2, 2]
        )


ROWS = Dataset.range(1, 4).map(lambda x: opkernel.fill([x], x))
FIRST = ([[0, 0], [1, 0], [1, 1]], [1, 2, 2])
SECOND = ([[0, 0], [0, 1], [0, 2]], [3, 3, 3])


@pytest.mark.parametrize(
    ("row_shape", "expected"),
    [
        ([4], [(*FIRST, [2, 4]), (*SECOND, [1, 4])]),
        ([None], [(*FIRST, [2, 2]), (*SECOND, [1, 3])]),
        ([-1], [(*FIRST, [2, 2]), (*SECOND, [1, 3])]),
    ],
)
def test_sparse_batches(row_shape: Any, expected: Any) -> None:
    batches = ROWS.sparse_batch(2, row_shape)
    assert [tuple(part.tolist() for part in batch) for batch in batches] == expected
    assert isinstance(next(iter(batches)), opkernel.sparse.SparseTensor)
    size = None if row_shape == [-1] else row_shape[0]
    assert batches.element_spec == SparseTensorSpec([None, size], opkernel.int64)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((2, [1]), errors.DataLossError),
        ((2, [1, 1]), errors.InvalidArgumentError),
        ((0, [1]), errors.InvalidArgumentError),
    ],
)
def test_wrong_sparse_batches(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        values(ROWS.sparse_batch(*arguments))


def test_sparse_batches_of_pairs() -> None:
    with pytest.raises(TypeError):
        Dataset.from_tensors((1, 2)).sparse_batch(2, [1])
