"""The file `checkpoint` says what TensorFlow's says; a manager numbers, keeps and deletes by it."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import CheckpointManager
from opkernel.checkpoint import BundleWriter, checkpoint_state
from opkernel.checkpoint.checkpoint_state import get_checkpoint_state, update_checkpoint_state
from opkernel.errors import DataLossError, InvalidArgumentError


def write(prefix: str | Path) -> None:
    with BundleWriter(prefix) as writer:
        writer.add("x", np.array(0))


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def test_paths_below_the_directory_are_relative(tmp_path: Path) -> None:
    """As TensorFlow's `update_checkpoint_state_internal` writes them with `save_relative_paths`."""
    paths = [str(tmp_path / "a-0"), str(tmp_path / "below/a-1")]
    update_checkpoint_state(tmp_path, paths[1], paths[:1], None, [1.5, 2.5], 3.5)
    assert lines(tmp_path / "checkpoint") == [
        'model_checkpoint_path: "below/a-1"',
        'all_model_checkpoint_paths: "a-0"',
        'all_model_checkpoint_paths: "below/a-1"',
        "all_model_checkpoint_timestamps: 1.5",
        "all_model_checkpoint_timestamps: 2.5",
        "last_preserved_timestamp: 3.5",
    ]
    state = get_checkpoint_state(tmp_path)
    assert state is not None
    assert [*state.all_model_checkpoint_paths] == paths
    assert state.model_checkpoint_path == paths[1]


def test_a_latest_checkpoint_among_the_others_is_listed_once(tmp_path: Path) -> None:
    update_checkpoint_state(tmp_path, str(tmp_path / "a"), [str(tmp_path / "a")], "latest")
    assert lines(tmp_path / "latest") == [
        'model_checkpoint_path: "a"',
        'all_model_checkpoint_paths: "a"',
    ]
    write(tmp_path / "a")
    assert opkernel.latest_checkpoint(tmp_path, "latest") == str(tmp_path / "a")
    assert opkernel.latest_checkpoint(tmp_path) is None


def test_paths_elsewhere_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    for path in ("other/a", str(tmp_path / "other/a")):
        for folder in ("run", tmp_path / "run"):
            update_checkpoint_state(folder, path)
            assert lines(tmp_path / "run/checkpoint")[0] == (
                f'model_checkpoint_path: "{tmp_path / "other/a"}"'
            )
    update_checkpoint_state("run", "run/a")
    assert lines(tmp_path / "run/checkpoint")[0] == 'model_checkpoint_path: "a"'


@pytest.mark.parametrize("times", [[1.0], [1.0, 2.0, 3.0]])
def test_a_time_for_each_checkpoint(tmp_path: Path, times: list[float]) -> None:
    with pytest.raises(InvalidArgumentError, match=f"2 checkpoints have {len(times)} times"):
        update_checkpoint_state(tmp_path, "a", ["b"], None, times)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "text", ["", "model_checkpoint_path: 3", 'all_model_checkpoint_paths: "a"']
)
def test_a_damaged_state_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "checkpoint").write_text(text)
    with pytest.raises(DataLossError, match=re.escape(str(tmp_path / "checkpoint"))):
        CheckpointManager(tmp_path)


@pytest.mark.parametrize("most", [0, -1])
def test_a_manager_keeps_at_least_one(tmp_path: Path, most: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"max_to_keep is {most}"):
        CheckpointManager(tmp_path, most)


@pytest.mark.parametrize(("options", "kept"), [({}, 5), ({"max_to_keep": None}, 7)])
def test_a_manager_numbers_on(tmp_path: Path, options: dict[str, Any], kept: int) -> None:
    manager = CheckpointManager(tmp_path / "run", **options)
    assert (manager.latest_checkpoint, manager.checkpoints) == (None, [])
    assert manager.save(write) == str(tmp_path / "run/ckpt-1")
    for _ in range(5):
        CheckpointManager(tmp_path / "run", **options).save(write)  # goes on where the other was
    manager = CheckpointManager(tmp_path / "run", **options)
    manager.save(write, 40)
    expected = [str(tmp_path / f"run/ckpt-{number}") for number in (1, 2, 3, 4, 5, 6, 40)][-kept:]
    assert manager.checkpoints == expected
    assert sorted(str(one.with_suffix("")) for one in (tmp_path / "run").glob("*.index")) == sorted(
        expected
    )
    assert manager.save(write) == str(tmp_path / "run/ckpt-41")


class Clock:
    """The clock of the module, which stands at a number of hours."""

    def __init__(self) -> None:
        self.hours = 0.0

    def time(self) -> float:
        return 1e9 + 3600 * self.hours


@pytest.mark.parametrize("is_again", [False, True])
def test_one_checkpoint_every_so_many_hours_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_again: bool
) -> None:
    """A checkpoint of each hour; of those that leave the list, the first after two hours stays."""
    clock = Clock()
    monkeypatch.setattr(checkpoint_state, "time", clock)
    manager = CheckpointManager(tmp_path, 1, keep_checkpoint_every_n_hours=2)
    for hour in range(1, 9):
        clock.hours = hour
        if is_again:
            manager = CheckpointManager(tmp_path, 1, keep_checkpoint_every_n_hours=2)
        manager.save(write, hour)
    stays = {one.stem for one in tmp_path.glob("*.index")}
    assert stays == {f"ckpt-{number}" for number in ((3, 5, 7, 8) if is_again else (2, 4, 6, 8))}
    state = get_checkpoint_state(tmp_path)
    assert state is not None
    assert [*state.all_model_checkpoint_timestamps] == [1e9 + 3600 * 8]
    assert state.last_preserved_timestamp == 1e9 + 3600 * (7 if is_again else 6)


@pytest.mark.parametrize("hours", [None, 0.0])
def test_without_hours_none_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: float | None
) -> None:
    clock = Clock()
    monkeypatch.setattr(checkpoint_state, "time", clock)
    manager = CheckpointManager(tmp_path, 2, keep_checkpoint_every_n_hours=hours)
    for hour in (1, 100, 1000):
        clock.hours = hour
        manager.save(write, hour)
    assert {one.stem for one in tmp_path.glob("*.index")} == {"ckpt-100", "ckpt-1000"}


def test_what_is_gone_is_not_taken_over(tmp_path: Path) -> None:
    for name in ("a-1", "a-3"):
        write(tmp_path / name)
    prefixes = [str(tmp_path / f"a-{number}") for number in (1, 2, 3)]
    update_checkpoint_state(tmp_path, prefixes[2], prefixes)
    manager = CheckpointManager(tmp_path, checkpoint_name="a")
    assert manager.checkpoints == [prefixes[0], prefixes[2]]
    assert manager.save(write) == str(tmp_path / "a-4")
