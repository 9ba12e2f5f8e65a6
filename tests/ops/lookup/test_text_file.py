"""InitializeTableFromTextFileV2 fills tables as TensorFlow does."""

import uuid
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.ops.lookup.text_file_calls import CALLS, content_of

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError, PermissionDeniedError


@pytest.mark.parametrize("what", CALLS)
def test_calls(what: str, tmp_path: Path) -> None:
    assert content_of(opkernel, CALLS[what], tmp_path / "f", uuid.uuid4().hex) == CALLS[what][6]


@pytest.mark.tensorflow
@pytest.mark.parametrize("what", CALLS)
def test_calls_of_tensorflow(what: str, tmp_path: Path, tf: ModuleType) -> None:
    assert content_of(tf, CALLS[what], tmp_path / "f", uuid.uuid4().hex) == CALLS[what][6]


def fill(table: Any, name: Any) -> None:
    raw_ops.InitializeTableFromTextFileV2(
        table_handle=table, filename=name, key_index=-2, value_index=-1
    )


def new_table() -> Any:
    return raw_ops.HashTableV2(
        key_dtype=opkernel.types.string, value_dtype=opkernel.int64, shared_name=uuid.uuid4().hex
    )


def test_a_table_that_is_filled_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a\nb\n")
    (tmp_path / "other").write_text("c\n")
    table = new_table()
    for name in ("one", "other"):
        fill(table, np.array(f"{tmp_path}/{name}".encode(), object))
    assert raw_ops.LookupTableSizeV2(table_handle=table) == 2


def test_names_that_are_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        fill(new_table(), np.array(f"{tmp_path}/none".encode(), object))
    with pytest.raises(InvalidArgumentError, match="single string"):
        fill(new_table(), np.array([b"a"], object))


def test_graphs_read_what_is_permitted(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("a\nb\n")
    with opkernel.Graph().as_default() as graph:
        table = raw_ops.HashTableV2(key_dtype=opkernel.types.string, value_dtype=opkernel.int64)
        name = np.array(f"{tmp_path}/words".encode(), object)
        raw_ops.InitializeTableFromTextFileV2(
            table_handle=table, filename=name, key_index=-2, value_index=-1, name="fill"
        )
        raw_ops.LookupTableSizeV2(table_handle=table, name="size")
    fill_op = graph.get_operation_by_name("fill")
    with (
        opkernel.Session(graph) as session,
        pytest.raises(PermissionDeniedError, match="--allow-read"),
    ):
        session.run(fill_op)
    permissions = opkernel.Permissions(read=tmp_path / "words")
    with opkernel.Session(graph, permissions=permissions) as session:
        session.run(fill_op)
        assert session.run("size:0") == 2
