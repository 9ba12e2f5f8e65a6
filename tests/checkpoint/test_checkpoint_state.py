"""CheckpointManager deletes its own checkpoints, whatever the file `checkpoint` names, and finds each that it saves."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Checkpoint, CheckpointManager, Variable
from opkernel.checkpoint import BundleWriter, TensorSlice, merge_bundles
from opkernel.checkpoint.bundle_writer import _write_index
from opkernel.checkpoint.slices import SlicesWriter
from opkernel.errors import InvalidArgumentError, NotFoundError


def write(prefix: str | Path, value: int = 0) -> None:
    with BundleWriter(prefix) as writer:
        writer.add("x", np.array(value))


def write_v1(path: str | Path) -> None:
    writer = SlicesWriter(str(path))
    writer.add("x", [], TensorSlice.whole(0), np.array(0))
    writer.finish()


def files(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if not one.is_dir()}


def saved(directory: Path, times: int = 4, **options: Any) -> CheckpointManager:
    """A manager that has saved, and deleted all that it deletes."""
    manager = CheckpointManager(directory, max_to_keep=1, **options)
    for number in range(100, 100 + times):
        manager.save(write, number)
    return manager


FOREIGN: dict[str, str] = {
    "of another directory": "{elsewhere}/ckpt-1",
    "above it": "../elsewhere/ckpt-1",
    "below it": "below/ckpt-1",
    "behind a link": "link/ckpt-1",
    "above a link": "link/../ckpt-9",
    "of another name": "model-1",
    "of a longer name": "my-ckpt-1",
    "with a number more": "ckpt-1-1",
    "with an end": "ckpt-1.old",
    "without a number": "ckpt",
    "of a number of other digits": "ckpt-\u0661",
    "no checkpoint": "ckpt-7",
    "a file of V1 that is none": "ckpt-8",
}
"""What the file `checkpoint` of the directory `run` may name, that its manager does not delete."""


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.parametrize("form", [write, write_v1], ids=["V2", "V1"])
def test_the_files_of_others_stay(
    tmp_path: Path, what: str, form: Callable[[str | Path], None]
) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    for folder in (run, run / "below", elsewhere / "deep"):
        folder.mkdir(parents=True)
    (run / "link").symlink_to(elsewhere / "deep")
    prefixes = [elsewhere / "ckpt-1", elsewhere / "ckpt-9", run / "below/ckpt-1"]
    prefixes += [elsewhere / "deep/ckpt-1", run / "ckpt", run / "ckpt-\u0661"]
    prefixes += [run / name for name in ("model-1", "my-ckpt-1", "ckpt-1-1", "ckpt-1.old")]
    for prefix in prefixes:
        form(prefix)
    (run / "ckpt-7.index").write_text("my notes")
    (run / "ckpt-7.data-00000-of-00001").write_text("more of them")
    (run / "ckpt-8").write_text("my notes")
    before = files(tmp_path)
    name = FOREIGN[what].format(elsewhere=elsewhere)
    state = f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
    (run / "checkpoint").write_text(state, "utf-8")
    before.add("run/checkpoint")
    manager = CheckpointManager(run, max_to_keep=1)
    assert len(manager.checkpoints) == 1  # it is found, if only to go on from it
    saved(run)
    assert files(tmp_path) - before == {
        "run/ckpt-103.index",
        "run/ckpt-103.data-00000-of-00001",
    }
    assert before - files(tmp_path) == set()


def test_its_own_are_deleted_whichever_format_they_have(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path, max_to_keep=1)
    forms: list[Callable[[str | Path], None]] = [write, write_v1, write, write]
    for number, form in enumerate(forms):
        manager.save(form, number)
    assert files(tmp_path) == {"checkpoint", "ckpt-3.index", "ckpt-3.data-00000-of-00001"}


def test_a_checkpoint_under_two_names_is_one(tmp_path: Path) -> None:
    """Else the older of its names would be deleted, and with that the other one."""
    write(tmp_path / "ckpt-1")
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "ckpt-1"\n'
        'all_model_checkpoint_paths: "./ckpt-1"\nall_model_checkpoint_paths: "ckpt-1"\n'
    )
    manager = CheckpointManager(tmp_path, max_to_keep=1)
    assert manager.checkpoints == [str(tmp_path / "ckpt-1")]
    manager = CheckpointManager(tmp_path, max_to_keep=2)
    manager.save(write)
    assert [os.path.basename(one) for one in manager.checkpoints] == ["ckpt-1", "ckpt-2"]


@pytest.mark.parametrize("name", ["ck.pt", "[c]*", "a+b", "sub/ckpt", "ckpt-1"])
def test_checkpoints_of_any_name_are_deleted_in_time(tmp_path: Path, name: str) -> None:
    saved(tmp_path, checkpoint_name=name)
    assert files(tmp_path) == {
        "checkpoint",
        f"{name}-103.index",
        f"{name}-103.data-00000-of-00001",
    }


@pytest.mark.parametrize("name", ["", "../ckpt", "/ckpt", "sub/../../x", "sub/", "a\0b", "\udcff"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        CheckpointManager(tmp_path / "run", checkpoint_name=name)
    assert files(tmp_path) == set()


@pytest.mark.parametrize("saves_before", [0, 2])
def test_a_function_that_writes_another_checkpoint_is_refused(
    tmp_path: Path, saves_before: int
) -> None:
    """Such as `checkpoint.save` in the place of `checkpoint.write`; what was saved is found as before."""
    manager = CheckpointManager(tmp_path)
    for number in range(saves_before):
        manager.save(functools.partial(write, value=number))
    kept = manager.checkpoints
    with pytest.raises(InvalidArgumentError, match=r"pass `checkpoint\.write`"):
        manager.save(Checkpoint(x=Variable(1.0)).save, 9)
    assert manager.checkpoints == kept
    latest = opkernel.latest_checkpoint(tmp_path)
    if saves_before:
        assert latest == manager.latest_checkpoint == CheckpointManager(tmp_path).latest_checkpoint
        assert CheckpointManager(tmp_path).checkpoints == kept
    else:
        assert latest == str(tmp_path / "ckpt-9-1")  # by the function itself


@pytest.mark.parametrize("count", [5, (1 << 31) - 1])
def test_an_index_may_claim_any_number_of_data_files(tmp_path: Path, count: int) -> None:
    for name in ("old", "part"):
        (tmp_path / f"{name}.data-00000-of-{count:05}").write_bytes(b"data")
        with open(tmp_path / f"{name}.index", "wb") as file:
            _write_index(file, count, {})
    write(tmp_path / "old", 7)
    with opkernel.load_checkpoint(tmp_path / "old") as checkpoint:
        assert checkpoint.get("x") == 7
    assert not (tmp_path / f"old.data-00000-of-{count:05}").exists()
    with pytest.raises(NotFoundError, match=rf"part\.data-00001-of-0*{count}"):
        merge_bundles([str(tmp_path / "part")], str(tmp_path / "merged"))
    assert not (tmp_path / "merged.index").exists()
