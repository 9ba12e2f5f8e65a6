"""A save that is cut off anywhere leaves the old checkpoint or the new one."""

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.checkpoint import BundleWriter, CheckpointManager, merge_bundles

OLD, NEW = np.arange(5), np.arange(100, 103)


class _KilledError(BaseException):
    """The process ends here."""


def _killed_at(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """End the process before the call of that number that changes files, and forbid all after it."""
    calls: list[str] = []

    def counted(name: str, function: Any) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            calls.append(name)
            if len(calls) > number:
                raise _KilledError(name)
            return function(*args, **keywords)

        return call

    for name in ("replace", "link", "unlink", "fsync"):
        monkeypatch.setattr(os, name, counted(name, getattr(os, name)))
    return calls


def _save(prefix: str | Path, values: Any) -> None:
    with BundleWriter(prefix) as writer:
        writer.add("x", values)


@pytest.mark.parametrize("saves_before", [0, 1, 2])
def test_a_save(tmp_path: Path, saves_before: int) -> None:
    for number in range(50):
        folder = tmp_path / str(number)
        folder.mkdir()
        prefix = folder / "c"
        for _ in range(saves_before):
            _save(prefix, OLD)
        with pytest.MonkeyPatch.context() as patch:
            _killed_at(patch, number)
            try:
                _save(prefix, NEW)
                is_done = True
            except _KilledError:
                is_done = False
        found = None
        if saves_before or (folder / "c.index").exists():
            with opkernel.load_checkpoint(prefix) as checkpoint:
                found = checkpoint.get("x").tolist()
        assert found in ([None, OLD.tolist()][bool(saves_before)], NEW.tolist())
        _save(prefix, NEW)  # what was left is in nobody's way
        with opkernel.load_checkpoint(prefix) as checkpoint:
            assert checkpoint.get("x").tolist() == NEW.tolist()
        if is_done:
            assert found == NEW.tolist()
            return
    raise AssertionError("the save never ended")


def test_a_merge(tmp_path: Path) -> None:
    for number in range(50):
        folder = tmp_path / str(number)
        folder.mkdir()
        parts = [str(folder / f"part{i}") for i in range(2)]
        for i, part in enumerate(parts):
            with BundleWriter(part) as writer:
                writer.add(f"x{i}", NEW)
        with pytest.MonkeyPatch.context() as patch:
            _killed_at(patch, number)
            try:
                merge_bundles(parts, str(folder / "whole"))
                is_done = True
            except _KilledError:
                is_done = False
        sources = [folder / "whole"] if (folder / "whole.index").exists() else parts
        found: dict[str, Any] = {}
        for source in sources:
            with opkernel.load_checkpoint(source) as checkpoint:
                found |= {key: checkpoint.get(key).tolist() for key in checkpoint}
        assert found == {"x0": NEW.tolist(), "x1": NEW.tolist()}
        if is_done:
            return
    raise AssertionError("the merge never ended")


def test_the_manager_keeps_the_latest(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path / "run", max_to_keep=2)
    assert manager.latest_checkpoint is None
    for value in range(4):
        manager.save(functools.partial(_save, values=np.array(value)))
    names = [os.path.basename(one) for one in manager.checkpoints]
    assert names == ["ckpt-3", "ckpt-4"]
    assert opkernel.latest_checkpoint(tmp_path / "run") == str(tmp_path / "run" / "ckpt-4")
    kept = {one.name.partition(".")[0] for one in (tmp_path / "run").iterdir()}
    assert kept == {"checkpoint", "ckpt-3", "ckpt-4"}
    assert 'model_checkpoint_path: "ckpt-4"' in (tmp_path / "run" / "checkpoint").read_text()
    again = CheckpointManager(tmp_path / "run", max_to_keep=2)
    assert again.checkpoints == manager.checkpoints
    assert os.path.basename(again.save(lambda prefix: _save(prefix, OLD), 17)) == "ckpt-17"
    with opkernel.load_checkpoint(tmp_path / "run") as checkpoint:
        assert checkpoint.get("x").tolist() == OLD.tolist()
