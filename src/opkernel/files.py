"""Files that stay the ones that were checked: directories by descriptor, and opening without following links.

A path means another file once somebody exchanges a directory on it for a link. `open_resolved` opens a path part by
part, each relative to the directory before it, and follows no link. A `Directory` keeps meaning the same directory,
wherever its path leads later. Where the system has no descriptors of directories (Windows), both go by the path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Self

from opkernel.file_errors import checked_path
from opkernel.interrupts import Closing, contextmanager
from opkernel.logs import logger

Opener = Callable[[str], int]
"""Opens a file for reading; gives its descriptor. Raises OSError, or an OpError that says why it may not."""

_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""A named pipe is opened without waiting for somebody who writes to it."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_HAS_DESCRIPTORS = os.open in os.supports_dir_fd and bool(_NO_LINK)
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
"""To pass through a directory, which one need not be allowed to list."""


def resolved(path: str | bytes) -> str:
    """The absolute path without links and `..`; the end of it need not exist.

    Raises:
        InvalidArgumentError: no file can have it.
    """
    return os.path.realpath(checked_path(os.fsdecode(path)))


def open_to_read(path: str) -> int:
    """Open a file as the caller's own code does, links and all; an `Opener`."""
    return os.open(path, _READ)


def open_resolved(path: str, flags: int = _READ, mode: int = 0o666) -> int:
    """Open a file by the path that `resolved` gave; the descriptor.

    Raises:
        OSError: the file cannot be opened, or a part of the path has become a link.
    """
    if not _HAS_DESCRIPTORS:
        return os.open(path, flags, mode)
    folder, name = os.path.split(path)
    with Directory.resolved(folder) as directory:
        return directory.open(name or ".", flags, mode)


class Directory(Closing):
    """An open directory. Names in it mean the same files wherever its path leads later.

        with Directory("checkpoints") as directory:
            directory.replace("new", "model.index")

    All methods raise OSError as their namesakes in `os` do.

    Args:
        path: The directory; links on the way are followed.

    Attributes:
        path: The directory, for messages.
    """

    def __init__(self, path: str) -> None:
        self.path = path or os.curdir
        self._descriptor = os.open(self.path, _PASS) if _HAS_DESCRIPTORS else -1

    @classmethod
    def resolved(cls, path: str, *, makes: int = 0) -> Self:
        """The directory of an absolute path that has neither links nor `..`.

        Args:
            path: The path; where a part of it has become a link, it is not opened.
            makes: How many of the last parts are made where they are missing.
        """
        self = cls.__new__(cls)
        self.path = path
        if not _HAS_DESCRIPTORS:
            self._descriptor = -1
            _make_directories(path, makes)
            return self
        self._descriptor = os.open(os.sep, _PASS)
        parts = [part for part in path.split(os.sep) if part]
        try:
            for left, part in zip(range(len(parts), 0, -1), parts, strict=True):
                self._enter(part, is_made=left <= makes)
        except BaseException:
            self.close()
            raise
        return self

    def _enter(self, name: str, *, is_made: bool) -> None:
        """Become the directory of a name in this one."""
        try:
            inner = os.open(name, _PASS | _NO_LINK, dir_fd=self._descriptor)
        except FileNotFoundError:
            if not is_made:
                raise
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._descriptor)
            inner = os.open(name, _PASS | _NO_LINK, dir_fd=self._descriptor)
        os.close(self._descriptor)
        self._descriptor = inner

    def open(self, name: str, flags: int = _READ, mode: int = 0o666) -> int:
        """Open a file; the descriptor. A link of that name is not followed."""
        path, options = self._at(name)
        return os.open(path, flags | _NO_LINK, mode, **options)

    def names(self) -> list[str]:
        """The names in it, sorted."""
        if self._descriptor < 0:
            return sorted(os.listdir(self.path))
        with self._listed() as descriptor:
            return sorted(os.listdir(descriptor))

    def replace(self, name: str, new: str) -> None:
        """Give a file another name, in the place of what has it."""
        if self._descriptor < 0:
            os.replace(os.path.join(self.path, name), os.path.join(self.path, new))
        else:
            os.replace(name, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def take(self, other: Directory, name: str, new: str) -> None:
        """Give a file of another directory a second name, here; or else, where the system has no such names, move it."""
        self.unlink(new)
        source, target = other._at(name), self._at(new)
        options = {f"src_{key}": value for key, value in source[1].items()}
        options |= {f"dst_{key}": value for key, value in target[1].items()}
        try:
            os.link(source[0], target[0], follow_symlinks=False, **options)
        except FileNotFoundError:
            raise
        except (OSError, NotImplementedError):
            os.replace(source[0], target[0], **options)

    def unlink(self, name: str) -> None:
        """Delete a file, if it is there."""
        path, options = self._at(name)
        with suppress(FileNotFoundError):
            os.unlink(path, **options)

    def remove_empty(self, name: str) -> None:
        """Delete a directory in it that has nothing in it."""
        path, options = self._at(name)
        os.rmdir(path, **options)

    def flush(self) -> None:
        """Bring its names to the disk, where the system can."""
        with suppress(OSError), self._listed() as descriptor:
            os.fsync(descriptor)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let nobody else give files in it their names meanwhile, where the system can.

        The lock is one of the directory itself: it leaves no file, and ends with its process.
        """
        try:
            import fcntl  # Windows has none
        except ImportError:
            yield
            return
        with self._listed() as descriptor:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _listed(self) -> Iterator[int]:
        """A descriptor that may do more than pass."""
        path, options = self._at(os.curdir)
        descriptor = os.open(path, os.O_RDONLY, **options)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _at(self, name: str) -> tuple[str, dict[str, Any]]:
        """How functions of `os` find a name: the path, and the arguments that go with it."""
        if self._descriptor < 0:
            return os.path.join(self.path, name), {}
        return name, {"dir_fd": self._descriptor}

    def close(self) -> None:
        """Close it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _make_directories(path: str, count: int) -> None:
    if count:
        _make_directories(os.path.dirname(path), count - 1)
        with suppress(FileExistsError):
            os.mkdir(path)


def cache_folder(part: str) -> str | None:
    """The folder where a part of opkernel keeps compiled programs for other processes; made where it is missing.

    It is `$OPKERNEL_CACHE/PART`, by default `opkernel/PART` in the user's cache; `OPKERNEL_CACHE=off` turns it off.

    Returns:
        The folder; None where there is none, or where others than the user may write to it: programs are code.
    """
    root = os.environ.get("OPKERNEL_CACHE", "")
    if root == "off" or not hasattr(os, "getuid"):
        return None
    if not root:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        root = os.path.join(home, "opkernel")
    folder = os.path.join(root, part)
    try:
        found = []
        for one in (root, folder):
            os.makedirs(one, mode=0o700, exist_ok=True)
            found.append(os.stat(one))
    except OSError:
        return None
    others = stat.S_IWGRP | stat.S_IWOTH
    if all(one.st_uid == os.getuid() and not one.st_mode & others for one in found):
        return folder
    logger("opkernel.files").warning(
        "%s is not used: others may write to it, and programs are code", folder
    )
    return None
