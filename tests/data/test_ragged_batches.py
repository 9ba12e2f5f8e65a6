"""Batches of tensors of different shapes as ragged tensors. Literals are TensorFlow's."""

import itertools
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.data import Dataset, RaggedTensorSpec

SOURCE = Dataset.range(5).map(lambda x: opkernel.fill([x], x))


def rows(value: Any) -> Any:
    """A batch as nested lists."""
    if not isinstance(value, opkernel.ragged.RaggedTensor):
        return value.tolist()
    values, splits = rows(value.values), value.row_splits.tolist()
    return [values[start:end] for start, end in itertools.pairwise(splits)]


def test_vectors() -> None:
    batches = SOURCE.ragged_batch(2)
    assert [rows(one) for one in batches] == [[[], [1]], [[2, 2], [3, 3, 3]], [[4, 4, 4, 4]]]
    assert batches.element_spec == RaggedTensorSpec([None, None], opkernel.int64)


def test_splits_of_a_type_and_whole_batches() -> None:
    batches = [*SOURCE.ragged_batch(2, drop_remainder=True, row_splits_dtype=opkernel.int32)]
    assert [rows(one) for one in batches] == [[[], [1]], [[2, 2], [3, 3, 3]]]
    assert {one.row_splits.dtype for one in batches} == {np.dtype(np.int32)}


def test_rows_of_rows() -> None:
    source = Dataset.range(3).map(
        lambda n: opkernel.reshape(
            opkernel.range(opkernel.cast(n, opkernel.int32) * 6),
            opkernel.stack([2, opkernel.cast(n, opkernel.int32), 3]),
        )
    )
    assert source.element_spec == opkernel.TensorSpec([2, None, 3], opkernel.int32)
    (batch,) = source.ragged_batch(3)
    assert rows(batch) == [
        [[], []],
        [[[0, 1, 2]], [[3, 4, 5]]],
        [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]],
    ]


def test_structures() -> None:
    source = SOURCE.map(lambda x: {"a": x, "b": (x[:1] + 5, np.ones(2, np.int32))})
    first, second = source.ragged_batch(3)
    assert (rows(first["a"]), rows(first["b"][0])) == ([[], [1], [2, 2]], [[], [6], [7]])
    assert (rows(second["a"]), rows(second["b"][0])) == ([[3, 3, 3], [4, 4, 4, 4]], [[8], [9]])
    assert rows(second["b"][1]) == [[1, 1], [1, 1]]


def test_known_shapes_are_batched_as_they_are() -> None:
    batches = Dataset.range(3).ragged_batch(2)
    assert [rows(one) for one in batches] == [[0, 1], [2]]
    assert batches.element_spec == opkernel.TensorSpec([None], opkernel.int64)


def test_wrong_splits() -> None:
    with pytest.raises(ValueError, match="int32 or int64"):
        SOURCE.ragged_batch(2, row_splits_dtype=opkernel.float32)
