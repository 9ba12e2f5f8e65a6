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


SETS = {
    "close": lambda x: x,
    "far": lambda x: (x - 50) << 40,
    "of 64 bits": lambda x: (x - 50) << 57,
    "strings": lambda x: np.array([b"%03d" % one for one in x.flat], object).reshape(x.shape),
}


@pytest.mark.parametrize("kind", sorted(SETS))
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_sets_of_members_that_are_close_far_and_strings(kind: str, operation: str) -> None:
    rng = np.random.default_rng(0)
    dense = SETS[kind](rng.integers(0, 100, (4, 70)))
    indices = np.argwhere(rng.random((4, 90)) < 0.5)
    values = SETS[kind](rng.integers(0, 100, len(indices)))
    second = {"set2_indices": indices, "set2_values": values, "set2_shape": [4, 90]}
    padded = np.concatenate([dense, dense[:, :1]], axis=1)
    found = [
        raw_ops.DenseToSparseSetOperation(set1=dense, **second, set_operation=operation),
        raw_ops.SparseToSparseSetOperation(
            set1_indices=np.argwhere(np.ones(padded.shape)),
            set1_values=padded.ravel(),
            set1_shape=padded.shape,
            **second,
            set_operation=operation,
        ),
    ]
    wanted = [
        sorted(OPERATIONS[operation](set(dense[i].tolist()), set(values[indices[:, 0] == i])))
        for i in range(4)
    ]
    for rows, members, shape in found:
        assert [members[rows[:, 0] == i].tolist() for i in range(4)] == wanted
        assert shape.tolist() == [4, max(map(len, wanted))]
    sizes = raw_ops.SetSize(set_indices=indices, set_values=values, set_shape=[4, 90])
    assert sizes.tolist() == [len(set(values[indices[:, 0] == i])) for i in range(4)]


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


@pytest.mark.parametrize("factor", [1, 1 << 20, 1 << 59])
@pytest.mark.parametrize("dtype", [None, np.int32, np.float32])
def test_counts_of_close_and_of_far_values(factor: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 8, (50, 20)) * factor
    weights = np.zeros(0) if dtype is None else rng.integers(0, 1000, rows.shape)
    indices, found, shape = raw_ops.DenseCountSparseOutput(
        values=rows, weights=weights.astype(dtype or np.int64), binary_output=False
    )
    wanted: dict[tuple[int, int], int] = {}
    each = np.ones(rows.shape, np.int64) if dtype is None else weights
    for i, row in enumerate(zip(rows.tolist(), each.tolist(), strict=True)):
        for value, count in zip(*row, strict=True):
            wanted[i, value] = wanted.get((i, value), 0) + count
    assert dict(zip(map(tuple, indices.tolist()), found.tolist(), strict=True)) == wanted
    assert indices.tolist() == sorted(map(list, wanted))
    assert shape.tolist() == [50, 7 * factor + 1]
    assert found.dtype == (dtype or np.int64)


def test_empty_values_have_no_counts() -> None:
    for sizes, wanted in (((0,), [1]), ((3, 0), [3, 1])):
        indices, found, shape = counts(np.zeros(sizes, np.int64))
        assert (indices.shape, found.shape) == ((0, len(sizes)), (0,))
        assert shape.tolist() == wanted
    with pytest.raises(InvalidArgumentError, match="cannot be 0"):
        counts(np.zeros((0, 3), np.int64))


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
