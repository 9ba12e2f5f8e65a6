"""The ops on checkpoint files do what TensorFlow's do."""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.ops.files.checkpoint_calls import CALLS, outcome_of, scalar, text, write_files

import opkernel
from opkernel import raw_ops
from opkernel.errors import PermissionDeniedError


@pytest.mark.parametrize("what", CALLS)
def test_calls(what: str, tmp_path: Path) -> None:
    write_files(raw_ops, tmp_path)
    found = outcome_of(raw_ops, CALLS[what], tmp_path, lambda name: getattr(opkernel, name))
    assert found == CALLS[what][2]


@pytest.mark.tensorflow
@pytest.mark.parametrize("what", CALLS)
def test_calls_of_tensorflow(what: str, tmp_path: Path, tf: ModuleType) -> None:
    write_files(tf.raw_ops, tmp_path)
    found = outcome_of(tf.raw_ops, CALLS[what], tmp_path, lambda name: getattr(tf, name))
    assert found == CALLS[what][2]


def files_below(folder: Path) -> list[str]:
    return sorted(os.path.relpath(one, folder) for one in folder.rglob("*"))


@pytest.mark.parametrize(("deletes", "left"), [(True, []), (False, ["p", "q"])])
def test_merging_leaves_one_checkpoint(tmp_path: Path, deletes: bool, left: list[str]) -> None:
    write_files(raw_ops, tmp_path)
    before = {*files_below(tmp_path)}
    raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=text(f"{tmp_path}/p/one", f"{tmp_path}/q/two"),
        destination_prefix=scalar(f"{tmp_path}/whole"),
        delete_old_dirs=deletes,
    )
    parts = {one for one in before if one[0] in "pq"}
    made = {f"whole.data-{i:05d}-of-00002" for i in range(2)} | {"whole.index"}
    assert {*files_below(tmp_path)} == before - parts | made | {*left}
    with opkernel.load_checkpoint(tmp_path / "whole") as checkpoint:
        assert checkpoint.get("b").tolist()[0] == [1, 2, 3]
        assert checkpoint.get("b").tolist()[3] == [5, 6, 7]


def test_a_failed_save_leaves_nothing(tmp_path: Path) -> None:
    for what in ("save: a name twice", "save: a slice of another shape"):
        outcome_of(raw_ops, CALLS[what], tmp_path, lambda name: getattr(opkernel, name))
        assert files_below(tmp_path) == []


def restoring(prefix: str) -> opkernel.Graph:
    with opkernel.Graph().as_default() as graph:
        raw_ops.RestoreV2(
            prefix=scalar(prefix),
            tensor_names=text("a"),
            shape_and_slices=text(""),
            dtypes=[opkernel.float32],
            name="restored",
        )
    return graph


def test_graphs_open_what_is_permitted(tmp_path: Path) -> None:
    write_files(raw_ops, tmp_path)
    (tmp_path / "in").mkdir()
    for file in ("c.index", "c.data-00000-of-00001"):
        (tmp_path / "in" / file).symlink_to(tmp_path / file)
    for prefix, allowed, is_open in (
        ("c", [], False),
        ("c", ["."], True),
        ("c", ["c.index"], False),
        ("c", ["c", "c.index", "c.data-00000-of-00001"], True),
        ("in/../c", ["in"], False),
        ("in/c", ["in"], False),  # the links lead out of it
        ("s-*", ["in"], False),
    ):
        permissions = opkernel.Permissions(read=[tmp_path / one for one in allowed])
        graph = restoring(f"{tmp_path}/{prefix}")
        with opkernel.Session(graph, permissions=permissions) as session:
            if is_open:
                assert session.run("restored:0").tolist() == [[1, 2, 3], [4, 5, 6]]
            else:
                with pytest.raises(PermissionDeniedError, match="--allow-read"):
                    session.run("restored:0")


def test_reading_does_not_permit_saving(tmp_path: Path) -> None:
    with opkernel.Graph().as_default() as graph:
        raw_ops.SaveV2(
            prefix=scalar(f"{tmp_path}/c"),
            tensor_names=text("a"),
            shape_and_slices=text(""),
            tensors=[np.zeros(2)],
            name="save",
        )
    permissions = opkernel.Permissions(read=[tmp_path])
    with (
        opkernel.Session(graph, permissions=permissions) as session,
        pytest.raises(PermissionDeniedError, match="--allow-write"),
    ):
        session.run(graph.get_operation_by_name("save"))
    assert files_below(tmp_path) == []


def test_readers_stay_open_until_the_files_change(tmp_path: Path) -> None:
    def saved(value: Any) -> None:
        with opkernel.BundleWriter(tmp_path / "c") as writer:
            writer.add("a", np.full(3, value, np.float32))

    saved(1)
    graph = restoring(f"{tmp_path}/c")
    with opkernel.Session(graph, permissions=opkernel.Permissions(read=tmp_path)) as session:
        for value in (1, 2, 3):
            saved(value)
            for _ in range(2):
                assert session.run("restored:0").tolist() == [value] * 3


@pytest.mark.parametrize("dtype", ["qint8", "quint8", "qint16", "quint16", "qint32"])
def test_quantized_types_keep_their_type(dtype: str, tmp_path: Path) -> None:
    quantized = getattr(opkernel.types, dtype)
    with opkernel.Graph().as_default() as graph:
        value = raw_ops.Bitcast(input=np.array([1, 3], quantized.numpy_dtype), type=quantized)
        raw_ops.SaveV2(
            prefix=scalar(f"{tmp_path}/c"),
            tensor_names=text("a"),
            shape_and_slices=text(""),
            tensors=[value],
            name="save",
        )
    with opkernel.Session(graph, permissions=opkernel.Permissions(write=tmp_path)) as session:
        session.run(graph.get_operation_by_name("save"))
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert checkpoint.dtype("a") is quantized
        assert checkpoint.get("a").tolist() == [1, 3]
