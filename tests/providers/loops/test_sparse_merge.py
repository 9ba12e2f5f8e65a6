"""The loops that walk through the entries of sparse tensors."""

from typing import Any

import numpy as np
import pytest

from opkernel.libraries import is_installed
from opkernel.ops.sparse import merge, merge_gradients
from opkernel.providers.loops import loops_run, sparse_merge

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]


@pytest.mark.parametrize("form", FORMS)
def test_entries_of_both_operands_come_in_order(form: Any) -> None:
    a = np.array([[0, 1], [0, 3], [2, 0]])
    b = np.array([[0, 3], [1, 9], [2, -1], [2, 0], [5, 5]])
    with loops_run(form):
        from_a, from_b = sparse_merge.merged_rows(a, b)
    assert from_a.tolist() == [0, 1, -1, -1, 2, -1]
    assert from_b.tolist() == [-1, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_sorted", [True, False])
def test_repeated_and_unordered_entries_as_by_keys(form: Any, is_sorted: bool) -> None:
    rng = np.random.default_rng(1)
    for rows in [(0, 0), (0, 5), (30, 40), (1, 0)]:
        a, b = (rng.integers(-2, 3, (count, 2)) for count in rows)
        if is_sorted:
            a, b = (one[np.lexsort(one.T[::-1])] for one in (a, b))
        with loops_run(form):
            found = sparse_merge.merged_rows(a, b)
        np.testing.assert_array_equal(found, merge.merged_rows(a, b))


@pytest.mark.parametrize("form", FORMS)
def test_many_entries_are_merged_in_parts(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_merge, "_AT_ONCE", 7)
    a, b = np.arange(0, 60, 2)[:, None], np.arange(0, 60, 3)[:, None]
    with loops_run(form):
        from_a, from_b = sparse_merge.merged_rows(a, b)
    union = np.union1d(a, b)
    assert from_a.tolist() == [x // 2 if x % 2 == 0 else -1 for x in union]
    assert from_b.tolist() == [x // 3 if x % 3 == 0 else -1 for x in union]


def found_one_by_one(a: Any, b: Any, total: Any) -> list[list[int]]:
    """TensorFlow's walk: a row that comes before that of the sum is passed, and the sum waits for it."""
    found = [[-1] * len(a), [-1] * len(b)]
    heads, at = [0, 0], 0
    while at < len(total):
        is_waiting = False
        for number, rows in enumerate((a, b)):
            head = heads[number]
            if head < len(rows) and tuple(rows[head]) <= tuple(total[at]):
                if tuple(rows[head]) == tuple(total[at]):
                    found[number][head] = at
                else:
                    is_waiting = True
                heads[number] += 1
        at += not is_waiting
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_sorted", [True, False])
def test_rows_are_found_in_a_sum(
    form: Any, is_sorted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_merge, "_AT_ONCE", 50)
    rng = np.random.default_rng(2)
    for counts in [(0, 0, 0), (0, 5, 3), (30, 40, 60), (1, 0, 2), (4, 3, 0)]:
        rows = [rng.integers(-2, 3, (count, 2)) for count in counts]
        if is_sorted:
            rows = [np.unique(one, axis=0) for one in rows]
        with loops_run(form):
            found = sparse_merge.found_in_sum(*rows)
        assert [one.tolist() for one in found] == found_one_by_one(*rows)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_sorted", [True, False])
def test_rows_are_followed(form: Any, is_sorted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_merge, "_AT_ONCE", 50)
    monkeypatch.setattr(merge_gradients, "_BLOCK", 16)
    rows = np.arange(60)[:, None] // [1 if is_sorted else 7, 1] % [100, 3]
    wanted = rows[[0, 1, 17, 40, 59]]
    with loops_run(form):
        found = sparse_merge.followed(rows, wanted)
        backwards = sparse_merge.followed(rows, wanted[[0, 4, 1]])
    expected: list[int] = []
    for one in wanted.tolist():
        start = expected[-1] + 1 if expected else 0
        expected.append(rows.tolist().index(one, start))
    assert found.tolist() == expected
    if is_sorted:
        assert backwards.tolist() == [0, 59]


@pytest.mark.parametrize("form", FORMS)
def test_rows_within_bounds(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_merge, "_AT_ONCE", 20)
    indices = np.random.default_rng(3).integers(-3, 9, (50, 3))
    for start, end in [([0, -3, 2], [5, 9, 9]), ([0, 0, 0], [9, 0, 9]), ([1, 1, 1], [9, -5, 9])]:
        with loops_run(form):
            found = sparse_merge.rows_within(indices, np.array(start), np.array(end))
        expected = ((indices >= start) & (indices < end)).all(axis=1)
        assert found.tolist() == np.flatnonzero(expected).tolist()
