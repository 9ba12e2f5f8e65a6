"""Files are opened as they were checked: no exchange of links, pipes and devices changes what is read."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Permissions, files, raw_ops
from opkernel.checkpoint import BundleWriter, merge_bundles
from opkernel.device import permissions as permissions_module
from opkernel.device.budget import Budget, spending
from opkernel.device.opened_files import PIECE, copy_file, open_file, read_whole
from opkernel.device.permissions import OWN_CODE
from opkernel.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from opkernel.files import Directory
from opkernel.kernel import under_budget


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("data/in", "elsewhere/in"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_text(folder)
    return tmp_path


def exchanging(monkeypatch: pytest.MonkeyPatch, place: Path, target: Path) -> None:
    """Put a link in the place of a directory or file, once its path was resolved."""

    def and_exchange(path: Any) -> str:
        found = files.resolved(path)
        if not place.is_symlink():
            place.rename(place.with_name("before"))
            place.symlink_to(target)
        return found

    monkeypatch.setattr(permissions_module, "resolved", and_exchange)


@pytest.mark.parametrize("part", ["data/in/file", "data/in", "data"])
def test_a_part_that_becomes_a_link_is_not_read(
    part: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    permissions = Permissions(read=[tree / "data"], write=[tree / "data"])
    exchanging(monkeypatch, tree / part, tree / part.replace("data", "elsewhere"))
    with pytest.raises(OpError, match="data/in/file"):
        read_whole(permissions, f"{tree}/data/in/file")


@pytest.mark.parametrize("part", ["data/in/file", "data/in", "data"])
def test_a_part_that_becomes_a_link_is_not_written(
    part: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    permissions = Permissions(write=[tree / "data"])
    exchanging(monkeypatch, tree / part, tree / part.replace("data", "elsewhere"))
    with pytest.raises(OSError, match=r"link|directory"):
        permissions.open_to_write(f"{tree}/data/in/file")
    with pytest.raises((OSError, OpError)):
        permissions.names_in(f"{tree}/data/in")
    assert (tree / "elsewhere" / "in" / "file").read_text() == "elsewhere/in"


def test_a_checkpoint_is_written_to_the_directory_that_was_opened(tree: Path) -> None:
    permissions = Permissions(write=[tree / "data"])
    prefix = f"{tree}/data/in/ckpt"
    writer = BundleWriter(prefix, open_place=permissions.place_to_write)
    writer.add("a", np.ones(2))
    (tree / "data" / "in").rename(tree / "data" / "moved")
    (tree / "data" / "in").symlink_to(tree / "elsewhere")
    writer.finish()
    assert os.listdir(tree / "elsewhere") == ["in"]
    with opkernel.load_checkpoint(tree / "data" / "moved" / "ckpt") as reader:
        assert reader.get("a").tolist() == [1, 1]
    with pytest.raises(PermissionDeniedError):
        merge_bundles([f"{tree}/data/moved/ckpt"], prefix, open_place=permissions.place_to_write)


def test_exchanges_at_any_moment(tree: Path) -> None:
    """A thread exchanges a directory and a link all the time; what is read is the file that may be read."""
    permissions, ended = Permissions(read=[tree / "data"]), threading.Event()
    place, spare = tree / "data" / "in", tree / "data" / "spare"
    spare.symlink_to(tree / "elsewhere" / "in")

    def exchange() -> None:
        third = tree / "data" / "third"
        while not ended.is_set():
            place.rename(third)
            spare.rename(place)
            third.rename(spare)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for _ in range(2000):
            try:
                assert read_whole(permissions, f"{place}/file") == b"data/in"
            except OpError:
                continue
    finally:
        ended.set()
        thread.join()


# Pipes and devices.


@pytest.fixture
def pipe(tree: Path) -> Path:
    os.mkfifo(tree / "data" / "pipe")
    return tree / "data" / "pipe"


def reading(path: Path) -> opkernel.Graph:
    with opkernel.Graph().as_default() as graph:
        name = np.empty((), object)
        name[()] = str(path).encode()
        raw_ops.ReadFile(filename=name, name="content")
    return graph


def run(path: Path, read: Any, **options: Any) -> Any:
    config = opkernel.SessionConfig(operation_timeout_in_ms=options.pop("timeout_ms", 0))
    permissions = Permissions(read=read)
    with opkernel.Session(
        reading(path), permissions=permissions, config=config, **options
    ) as session:
        return session.run("content:0")


def test_a_folder_gives_no_pipes_and_devices(pipe: Path) -> None:
    with pytest.raises(PermissionDeniedError, match="no regular file"):
        run(pipe, [pipe.parent])
    with pytest.raises(PermissionDeniedError, match="no regular file"):
        run(Path("/dev/zero"), ["/dev"])
    (pipe.parent / "zero").symlink_to("/dev/zero")
    with pytest.raises(PermissionDeniedError):
        run(pipe.parent / "zero", [pipe.parent])
    for folder in (pipe.parent, pipe.parent / "in"):
        with pytest.raises(FailedPreconditionError, match="Is a directory"):
            run(folder, [pipe.parent])


def test_a_pipe_that_is_named_is_waited_for(pipe: Path) -> None:
    with pytest.raises(DeadlineExceededError):
        run(pipe, [pipe], timeout_ms=50)
    late = Budget(deadline=time.monotonic())
    with spending(late), pytest.raises(DeadlineExceededError, match=f"waiting for .{pipe}"):
        read_whole(Permissions(read=[pipe]), str(pipe))

    def write() -> None:
        with open(pipe, "wb") as file:
            for part in (b"one ", b"two"):
                file.write(part)
                file.flush()

    thread = threading.Thread(target=write)
    thread.start()
    assert run(pipe, [pipe], timeout_ms=60_000) == b"one two"
    thread.join()


def test_a_device_that_is_named_ends_with_the_memory(pipe: Path) -> None:
    with pytest.raises(ResourceExhaustedError):
        run(Path("/dev/zero"), ["/dev/zero"], memory_limit_bytes=1 << 24)
    assert run(Path("/dev/null"), ["/dev/null"]) == b""


def test_files_that_do_not_tell_their_size() -> None:
    content = read_whole(OWN_CODE, "/proc/self/status")
    assert content.startswith(b"Name:")
    with pytest.raises(PermissionDeniedError):
        read_whole(Permissions(), "/proc/self/status")


def test_a_file_that_grows_while_it_is_read(tree: Path) -> None:
    path = tree / "data" / "in" / "file"
    budget_bytes = 1 << 20
    with opkernel.Graph().as_default() as graph:
        name = np.empty((), object)
        name[()] = str(path).encode()
        raw_ops.ReadFile(filename=name, name="content")
    os.truncate(path, 2 << 20)
    with (
        opkernel.Session(
            graph, permissions=Permissions(read=[path]), memory_limit_bytes=budget_bytes
        ) as session,
        pytest.raises(ResourceExhaustedError),
    ):
        session.run("content:0")


def test_no_descriptor_is_left_open(tree: Path) -> None:
    permissions = Permissions(read=[tree / "data"], write=[tree / "data"])
    before = len(os.listdir("/proc/self/fd"))
    for action in _actions(permissions, tree):
        try:
            action()
        except (OSError, OpError):
            continue
    assert len(os.listdir("/proc/self/fd")) == before


def _actions(permissions: Permissions, tree: Path) -> list[Callable[[], Any]]:
    os.mkfifo(tree / "data" / "fifo")
    (tree / "data" / "loop").symlink_to("loop")
    names = ["in/file", "in", "fifo", "loop", "missing", "missing/file", "in/file/file", "../x"]
    actions: list[Callable[[str], Any]] = [
        lambda path: open_file(permissions, path).close(),
        lambda path: os.close(permissions.open_to_write(path)),
        permissions.names_in,
        lambda path: BundleWriter(path, open_place=permissions.place_to_write).discard(),
        lambda path: Directory(path).close(),
    ]
    return [partial(action, f"{tree}/data/{name}") for action in actions for name in names]


def test_a_file_is_copied_that_may_be_read(tree: Path) -> None:
    permissions = Permissions(read=[tree / "data"])
    copy_file(permissions, f"{tree}/data/in/file", f"{tree}/copy")
    assert (tree / "copy").read_text() == "data/in"
    with pytest.raises(PermissionDeniedError):
        copy_file(permissions, f"{tree}/elsewhere/in/file", f"{tree}/other")
    assert not (tree / "other").exists()


def test_a_file_that_has_more_than_memory_is_out_of_range(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("opkernel.device.opened_files.check_allocation", fail)
    with pytest.raises(OutOfRangeError, match="data/in/file is too large to be read"):
        read_whole(OWN_CODE, f"{tree}/data/in/file")


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
def test_a_file_is_read_whole_in_pieces(size: int, tree: Path) -> None:
    content = bytes(range(251)) * (size // 251 + 1)
    (tree / "large").write_bytes(content[:size])
    with under_budget(Budget(max(size, 1))):
        assert read_whole(OWN_CODE, f"{tree}/large") == content[:size]
    if size:
        with under_budget(Budget(size - 1)), pytest.raises(ResourceExhaustedError):
            read_whole(OWN_CODE, f"{tree}/large")


def test_reading_ends_with_the_time(tree: Path) -> None:
    with (
        spending(Budget(deadline=time.monotonic() - 1)),
        pytest.raises(DeadlineExceededError, match=r"Timed out while reading '.*data/in/file'"),
    ):
        read_whole(OWN_CODE, f"{tree}/data/in/file")
