"""Loops that read serialized sparse tensors."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import OpError
from opkernel.libraries import is_installed
from opkernel.ops.sparse.serialize import SparseParts
from opkernel.providers.loops import loops_run, sparse_messages
from opkernel.types import DataType

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]
TENSORS = [
    SparseParts(
        np.array([[0, 1], [2, 300]]), np.array([1.5, np.nan], np.float32), np.array([3, 400])
    ),
    SparseParts(np.zeros((0, 2), np.int64), np.array([], np.float32), np.array([7, 0])),
    SparseParts(np.array([[1, 1]]), np.array([-0.0], np.float32), np.array([2, 2])),
]


def serialized(tensors: list[SparseParts]) -> Any:
    return np.stack(
        [
            raw_ops.SerializeSparse(sparse_indices=a, sparse_values=b, sparse_shape=c)
            for a, b, c in tensors
        ]
    )


@pytest.mark.parametrize("form", FORMS)
def test_tensors_of_a_batch(form: Any) -> None:
    strings = serialized(TENSORS)
    with loops_run(form):
        found = raw_ops.DeserializeManySparse(serialized_sparse=strings, dtype=DataType.DT_FLOAT)
    assert found[0].tolist() == [[0, 0, 1], [0, 2, 300], [2, 1, 1]]
    np.testing.assert_array_equal(found[1], np.array([1.5, np.nan, 0], np.float32))
    assert found[2].tolist() == [3, 7, 400]


@pytest.mark.parametrize("form", FORMS)
def test_plain_messages_are_read_by_loops(form: Any) -> None:
    strings = serialized(TENSORS * 3000)
    with loops_run(form):
        found = sparse_messages.read_strings(strings, (9000,), DataType.DT_FLOAT)
    assert found.values.size == 9000
    assert (
        found.indices[:, 0].tolist()
        == np.flatnonzero(np.tile([1, 0, 1], 3000)).repeat(np.tile([2, 1], 3000)).tolist()
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_ranks(form: Any, rank: int) -> None:
    parts = SparseParts(np.ones((2, rank), np.int64), np.array([1, 2], np.int8), np.full(rank, 5))
    with loops_run(form):
        found = raw_ops.DeserializeSparse(
            serialized_sparse=serialized([parts] * 2)[None], dtype=DataType.DT_INT8
        )
    assert found[0].tolist() == [[0, row, *[1] * rank] for row in (0, 0, 1, 1)]
    assert found[1].tolist() == [1, 2, 1, 2]
    assert found[2].tolist() == [1, 2, *[5] * rank]


@pytest.mark.parametrize("form", FORMS)
def test_damaged_messages_raise_or_are_read_as_before(form: Any) -> None:
    strings = serialized(TENSORS)
    for at in range(len(strings[0, 0])):
        damaged = strings.copy()
        damaged[0, 0] = strings[0, 0][:at] + b"\xff" + strings[0, 0][at + 1 :]
        answers = []
        for one in ("numpy", form):
            with loops_run(one):
                try:
                    found = raw_ops.DeserializeManySparse(
                        serialized_sparse=damaged, dtype=DataType.DT_FLOAT
                    )
                    answers.append([part.tobytes() for part in found])
                except OpError as error:
                    answers.append([type(error), str(error)])
        assert answers[0] == answers[1]
