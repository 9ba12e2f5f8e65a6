"""Words find their old numbers, and matrices of checkpoints their new order. Codes of errors are TensorFlow's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, raw_ops
from opkernel.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    UnimplementedError,
)

MATRIX = np.arange(15, dtype=np.float32).reshape(5, 3)


def text(value: object) -> Any:
    return np.array(str(value).encode(), object)


def remapped(folder: Path, new: str = "a b c d e", old: str = "c x a e", **attrs: int) -> Any:
    for name, words in (("new", new), ("old", old)):
        (folder / name).write_text(
            "".join(f"{word}\n" for word in words.split(" ")) if words else ""
        )
    return raw_ops.GenerateVocabRemapping(
        new_vocab_file=text(folder / "new"),
        old_vocab_file=text(folder / "old"),
        **{"new_vocab_offset": 0, "num_new_vocab": 5, **attrs},
    )


@pytest.mark.parametrize(
    ("attrs", "wanted", "present"),
    [
        ({}, [2, -1, 0, -1, 3], 3),
        ({"new_vocab_offset": 2, "num_new_vocab": 3}, [0, -1, 3], 2),
        ({"old_vocab_size": 2}, [-1, -1, 0, -1, -1], 1),
        ({"num_new_vocab": 0}, [], 0),
        ({"new_vocab_offset": 5, "num_new_vocab": 0}, [], 0),
    ],
)
def test_words_find_their_old_numbers(
    tmp_path: Path, attrs: dict[str, int], wanted: list[int], present: int
) -> None:
    remapping, num_present = remapped(tmp_path, **attrs)
    assert (remapping.tolist(), int(num_present)) == (wanted, present)
    assert (remapping.dtype, num_present.dtype) == (np.int64, np.int32)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"num_new_vocab": 6}, InvalidArgumentError, "lookup table size"),
        ({"new_vocab_offset": 6, "num_new_vocab": 0}, InvalidArgumentError, "lookup table size"),
        ({"old_vocab_size": 9}, InvalidArgumentError, "expected 9 but got 4"),
        ({"old_vocab_size": 0}, OutOfRangeError, "0 of lines"),
        ({"old": ""}, OutOfRangeError, "0 of lines"),
        ({"old": "a b a"}, FailedPreconditionError, "different value for same key"),
        ({"old": "a  b"}, InvalidArgumentError, "empty line"),
    ],
)
def test_bad_vocabularies_are_refused(
    tmp_path: Path, given: dict[str, Any], error: type[OpError], message: str
) -> None:
    with pytest.raises(error, match=message):
        remapped(tmp_path, **given)


def loaded(folder: Path, **changed: Any) -> Any:
    raw_ops.SaveV2(
        prefix=text(folder / "checkpoint"),
        tensor_names=np.array([b"m", b"vector", b"double"], object),
        shape_and_slices=np.array([b"", b"", b""], object),
        tensors=[MATRIX, MATRIX[0], MATRIX.astype(np.float64)],
    )
    given: dict[str, Any] = {
        "ckpt_path": text(folder / "checkpoint"),
        "old_tensor_name": text("m"),
        "row_remapping": np.int64([2, -1, 0]),
        "col_remapping": np.int64([1, -1]),
        "initializing_values": np.float32([100, 101, 102, 103]),
        **changed,
    }
    rows, columns = given["row_remapping"].size, given["col_remapping"].size
    return raw_ops.LoadAndRemapMatrix(**{"num_rows": rows, "num_cols": columns, **given})


@pytest.mark.parametrize("rows_in_memory", [-1, 0, 1, 2, 3, 100])
def test_rows_and_columns_come_in_a_new_order(tmp_path: Path, rows_in_memory: int) -> None:
    found = loaded(tmp_path, max_rows_in_memory=rows_in_memory)
    assert found.tolist() == [[7, 100], [101, 102], [1, 103]]
    whole = loaded(
        tmp_path,
        row_remapping=np.int64([4, 1, 3, 0, 2]),
        col_remapping=np.zeros(0, np.int64),
        initializing_values=np.zeros(0, np.float32),
        num_cols=3,
        max_rows_in_memory=rows_in_memory,
    )
    np.testing.assert_array_equal(whole, MATRIX[[4, 1, 3, 0, 2]])


def test_a_matrix_may_be_new_as_a_whole(tmp_path: Path) -> None:
    values = np.arange(4, dtype=np.float32)
    found = loaded(tmp_path, row_remapping=np.int64([-1, -7]), initializing_values=values)
    assert found.tolist() == [[0, 1], [2, 3]]
    none = loaded(
        tmp_path, row_remapping=np.zeros(0, np.int64), initializing_values=np.zeros(0, np.float32)
    )
    assert none.shape == (0, 2)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"initializing_values": np.zeros(3, np.float32)}, InvalidArgumentError, "more missing"),
        ({"initializing_values": np.zeros(5, np.float32)}, InvalidArgumentError, "only 4 elements"),
        ({"row_remapping": np.int64([1, 1, 0])}, UnimplementedError, "Old ID 1 is mapped"),
        ({"col_remapping": np.int64([0, 0])}, UnimplementedError, "Old ID 0 is mapped"),
        ({"num_rows": 4}, InvalidArgumentError, "Size of row_remapping is 3"),
        ({"num_cols": 3}, InvalidArgumentError, "Size of col_remapping is 2"),
        ({"row_remapping": np.int64([[2], [0]])}, InvalidArgumentError, "must be 1-D"),
        ({"col_remapping": np.int64([[1, 0]])}, InvalidArgumentError, "must be 1-D"),
        ({"row_remapping": np.int64([5, 0, 1])}, InternalError, "out of bounds"),
        ({"col_remapping": np.int64([3, 0])}, InvalidArgumentError, "col_remapping has 3"),
        (
            {"col_remapping": np.zeros(0, np.int64), "num_cols": 2},
            InvalidArgumentError,
            "num_cols=2",
        ),
        ({"old_tensor_name": text("nothing")}, NotFoundError, "nothing not found"),
        ({"old_tensor_name": text("vector")}, InvalidArgumentError, "invalid rank 1"),
        ({"old_tensor_name": text("double")}, InvalidArgumentError, "invalid type double"),
        (
            {"ckpt_path": np.array([b"a", b"b"], object)},
            InvalidArgumentError,
            "exactly one element",
        ),
        ({"ckpt_path": text("nowhere")}, NotFoundError, "nowhere"),
    ],
)
def test_bad_calls_are_refused(
    tmp_path: Path, changed: dict[str, Any], error: type[OpError], message: str
) -> None:
    with pytest.raises(error, match=message):
        loaded(tmp_path, **changed)


def test_files_are_read_as_permissions_say(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("a\n")
    graph = Graph()
    with graph.as_default():
        remapping, _ = raw_ops.GenerateVocabRemapping(
            new_vocab_file=text(tmp_path / "words"),
            old_vocab_file=text(tmp_path / "words"),
            new_vocab_offset=0,
            num_new_vocab=1,
        )
        matrix = raw_ops.LoadAndRemapMatrix(
            ckpt_path=text(tmp_path / "checkpoint"),
            old_tensor_name=text("m"),
            row_remapping=np.int64([0]),
            col_remapping=np.int64([0]),
            initializing_values=np.zeros(0, np.float32),
            num_rows=1,
            num_cols=1,
        )
    for fetch in (remapping, matrix):
        with Session(graph) as session, pytest.raises(PermissionDeniedError):
            session.run(fetch)
    with Session(graph, permissions=opkernel.Permissions(read=tmp_path)) as session:
        assert session.run(remapping).tolist() == [0]
