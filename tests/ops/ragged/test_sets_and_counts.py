"""Operations on sets; counts of values as sparse tensors."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

ROWS = st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=4)
OPERATIONS: dict[Any, Any] = {
    "a-b": lambda a, b: a - b,
    "B-A": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}


@given(ROWS, st.data(), st.sampled_from(sorted(OPERATIONS)))
def test_dense_sets(rows: list[list[int]], data: Any, operation: Any) -> None:
    sets = st.lists(st.integers(0, 5), min_size=2, max_size=2)
    others = data.draw(st.lists(sets, min_size=len(rows), max_size=len(rows)))
    indices, values, shape = raw_ops.DenseToDenseSetOperation(
        set1=np.array(rows), set2=np.array(others), set_operation=operation
    )
    wanted = [
        sorted(OPERATIONS[operation](set(a), set(b))) for a, b in zip(rows, others, strict=True)
    ]
    for i, want in enumerate(wanted):
        assert values[indices[:, 0] == i].tolist() == want
    assert shape.tolist() == [len(rows), max(map(len, wanted))]


def test_sets_of_strings_and_sparse_sets() -> None:
    first = np.array([[b"b", b"a", b"b"]], object)
    parts = (np.array([[0, 0], [0, 1]]), np.array([b"c", b"a"], object), np.array([1, 2]))
    _, values, _ = raw_ops.DenseToSparseSetOperation(
        set1=first,
        set2_indices=parts[0],
        set2_values=parts[1],
        set2_shape=parts[2],
        set_operation="union",
    )
    assert values.tolist() == [b"a", b"b", b"c"]
    size = raw_ops.SetSize(
        set_indices=[[0, 0], [0, 1], [2, 0]], set_values=[1, 1, 2], set_shape=[3, 2]
    )
    assert (size.tolist(), size.dtype) == ([1, 0, 1], np.int32)


def test_wrong_sets_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Invalid set_operation xor"):
        raw_ops.DenseToDenseSetOperation(set1=[[1]], set2=[[1]], set_operation="XOR")
    with pytest.raises(InvalidArgumentError):
        raw_ops.DenseToDenseSetOperation(set1=[[1]], set2=[[1], [2]], set_operation="union")
    with pytest.raises(InvalidArgumentError, match="order"):
        raw_ops.SetSize(set_indices=[[1, 0], [0, 0]], set_values=[1, 1], set_shape=[2, 1])
    with pytest.raises(InvalidArgumentError, match="out of bounds"):
        raw_ops.SetSize(set_indices=[[5, 0]], set_values=[1], set_shape=[2, 1])
    with pytest.raises(InvalidArgumentError, match="overflow"):
        raw_ops.SetSize(set_indices=[[0, 0]], set_values=[1], set_shape=[2, 2**63 - 1])


def counts(values: Any, weights: Any = (), **attrs: Any) -> Any:
    return raw_ops.DenseCountSparseOutput(
        values=np.array(values),
        weights=np.array(weights, np.float32),
        binary_output=attrs.pop("binary_output", False),
        **attrs,
    )


def test_counts() -> None:
    indices, found, shape = counts([[3, 1, 3], [0, 0, 1]])
    assert indices.tolist() == [[0, 1], [0, 3], [1, 0], [1, 1]]
    assert (found.tolist(), shape.tolist()) == ([1, 2, 2, 1], [2, 4])
    assert counts([1, 1, 2], [0.5, 2, 4])[1].tolist() == [2.5, 4]
    assert counts([1, 1, 5], maxlength=3)[2].tolist() == [3]
    assert counts([1, 1], minlength=7)[2].tolist() == [7]
    assert counts([1, 1], binary_output=True)[1].tolist() == [1]
    with pytest.raises(InvalidArgumentError, match="non-negative"):
        counts([-1])
    with pytest.raises(InvalidArgumentError, match="same shape"):
        counts([1, 2], [1.0])


def test_counts_of_ragged_and_sparse_rows() -> None:
    none = np.zeros(0, np.int64)
    ragged = raw_ops.RaggedCountSparseOutput(
        splits=[0, 2, 2, 3], values=[4, 4, 1], weights=none, binary_output=False
    )
    sparse = raw_ops.SparseCountSparseOutput(
        indices=[[0, 0], [0, 5], [2, 1]],
        values=[4, 4, 1],
        dense_shape=[3, 6],
        weights=none,
        binary_output=False,
    )
    for indices, found, shape in (ragged, sparse):
        assert indices.tolist() == [[0, 4], [2, 1]]
        assert (found.tolist(), shape.tolist()) == ([2, 1], [3, 5])
    with pytest.raises(InvalidArgumentError, match="dense shape"):
        raw_ops.SparseCountSparseOutput(
            indices=[[3, 0]], values=[4], dense_shape=[3, 6], weights=none, binary_output=False
        )
