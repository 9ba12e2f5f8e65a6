"""Checkpoints are found by each of their names; open readers are kept, and answer as mappings do."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel.checkpoint import BundleWriter, TensorSlice
from opkernel.checkpoint.checkpoint_reader import CheckpointReader
from opkernel.checkpoint.loading import checkpoint_exists
from opkernel.checkpoint.reader_cache import CheckpointReaderCache
from opkernel.checkpoint.slices import SlicesWriter
from opkernel.errors import NotFoundError


def write(prefix: Path, value: float = 0.0) -> None:
    prefix.parent.mkdir(exist_ok=True, parents=True)
    with BundleWriter(prefix) as writer:
        writer.add("x", np.array([value]))


def write_v1(path: Path, row: int) -> None:
    writer = SlicesWriter(path)
    writer.add("x", [2, 1], TensorSlice.parse(f"{row},1:-"), np.array([[float(row)]]))
    writer.finish()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Two checkpoints with a state file, one of them beside a directory of its name, and a SavedModel's variables."""
    write(tmp_path / "run/ckpt-1", 1.0)
    write(tmp_path / "run/ckpt-2", 2.0)
    write(tmp_path / "run/ckpt-2/ckpt-3", 3.0)
    (tmp_path / "run/checkpoint").write_text('model_checkpoint_path: "ckpt-2"\n')
    write(tmp_path / "model/variables/variables", 4.0)
    (tmp_path / "model/variables/checkpoint").write_text('model_checkpoint_path: "none"\n')
    return tmp_path


PLACES = {
    "run": 2.0,
    "run/": 2.0,
    "run/ckpt-1": 1.0,
    "run/ckpt-1.index": 1.0,
    "run/ckpt-1.data-00000-of-00001": 1.0,
    "run/ckpt-2": 2.0,
    "model": 4.0,
    "model/variables": 4.0,
    "model/variables/variables": 4.0,
}


@pytest.mark.parametrize("place", PLACES)
def test_each_name_of_a_checkpoint_leads_to_it(saved: Path, place: str) -> None:
    with opkernel.load_checkpoint(os.path.join(saved, place)) as checkpoint:
        assert checkpoint.get("x").tolist() == [PLACES[place]]


@pytest.mark.parametrize("count", range(5))
def test_a_directory_without_a_state_file_names_what_lies_there(tmp_path: Path, count: int) -> None:
    for number in range(count):
        write(tmp_path / f"c{number}")
    with pytest.raises(NotFoundError) as refusal:
        opkernel.load_checkpoint(tmp_path)
    named = ", ".join(f"{tmp_path}/c{number}" for number in range(min(count, 3)))
    there = ("", f"; there is {named}", *[f"; there are {named}"] * 2, f"; there are {named}, ...")
    assert refusal.value.message.endswith(f"that names a checkpoint{there[count]}")


def test_a_checkpoint_of_several_files_of_v1(tmp_path: Path) -> None:
    prefix = tmp_path / "[a]*"  # its characters mean themselves
    for row in range(2):
        write_v1(tmp_path / f"[a]*-0000{row}-of-00002", row)
    write_v1(tmp_path / "ab-00000-of-00001", 0)
    assert checkpoint_exists(str(prefix))
    assert not checkpoint_exists(str(tmp_path / "b"))
    with opkernel.load_checkpoint(prefix) as checkpoint:
        assert checkpoint.get("x").tolist() == [[0.0], [1.0]]
        assert [str(one) for one in checkpoint.slices("x")] == ["0,1:-", "1,1:-"]


def test_a_reader_is_a_mapping_with_the_names_of_tensorflow(saved: Path) -> None:
    with opkernel.load_checkpoint(saved / "run/ckpt-1") as checkpoint:
        assert ("x" in checkpoint, "y" in checkpoint, 3 in checkpoint) == (True, False, False)
        assert (checkpoint.has_tensor("x"), checkpoint.has_tensor("y")) == (True, False)
        assert ([*checkpoint], len(checkpoint)) == (["x"], 1)
        assert checkpoint.get_tensor("x").tolist() == [1.0]
        assert checkpoint.get_variable_to_shape_map() == {"x": [1]}
        assert checkpoint.get_variable_to_dtype_map() == {"x": opkernel.float64}
        assert repr(checkpoint) == f"<opkernel.BundleReader of {saved / 'run/ckpt-1'}>"


def opener(prefix: Path, opened: list[str]) -> Callable[[], CheckpointReader]:
    def open_reader() -> CheckpointReader:
        opened.append(prefix.name)
        return opkernel.load_checkpoint(prefix)

    return open_reader


def test_readers_are_kept_while_their_files_are_the_same(tmp_path: Path) -> None:
    """Eight of them; the one that was not asked for the longest goes first."""
    cache, opened = CheckpointReaderCache(), list[str]()

    def get(number: int) -> float:
        prefix = tmp_path / f"c{number}"
        files = [f"{prefix}.index", f"{prefix}.absent"]
        return float(cache.get(number, files, opener(prefix, opened)).get("x")[0])

    for number in range(9):
        write(tmp_path / f"c{number}", float(number))
    assert [get(number) for number in range(8)] == [*range(8)]
    assert [get(number) for number in range(8)] == [*range(8)]
    assert len(opened) == 8
    assert get(0) == 0
    assert get(8) == 8  # reader 1 goes
    del opened[:]
    assert [get(number) for number in (0, 2, 8, 1)] == [0, 2, 8, 1]
    assert opened == ["c1"]
    write(tmp_path / "c0", 7.0)
    assert (get(0), opened) == (7.0, ["c1", "c0"])
