"""Files that appear whole or not at all.

A file is written under another name in the same directory, brought to the disk, and then renamed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO

from opkernel.file_errors import checked_path, file_errors
from opkernel.files import Directory
from opkernel.interrupts import contextmanager

Place = tuple[Directory, str]
"""A directory, and the name of a file in it, or what the names of several files in it begin with."""
OpenPlace = Callable[[str], Place]
"""Opens the directory of a path; raises OSError, or an OpError where the path may not be written."""

MARK = ".tempstate"
"""What the names of files that are being written have in them, as TensorFlow's have."""
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def place_of(path: str) -> Place:
    """The place of a file that the caller's own code names; an `OpenPlace`."""
    folder, name = os.path.split(path)
    return Directory(folder), name


def opened_place(path: str, open_place: OpenPlace = place_of) -> Place:
    """The place of a path.

    Raises:
        InvalidArgumentError: no file can have that path.
        NotFoundError, PermissionDeniedError, UnavailableError: it cannot be opened.
    """
    with file_errors(path):
        return open_place(checked_path(path))


def make_directory(path: str) -> None:
    """Make a directory and those above it, as far as they are missing; the empty path is the current one.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: that cannot be done.
    """
    with file_errors(path):
        os.makedirs(path or ".", exist_ok=True)


def temporary_name(name: str) -> str:
    """A name like another one that no file has."""
    return f"{name}{MARK}{secrets.randbits(63)}"


@contextmanager
def written_file(directory: Directory, name: str) -> Iterator[BinaryIO]:
    """A new file, which is on the disk after the block, and gone after an error in the block.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    with file_errors(os.path.join(directory.path, name)):
        try:
            with open(directory.open(name, _NEW), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                directory.unlink(name)
            raise


@contextmanager
def replaced_file(directory: Directory, name: str) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of another of its name when the block ends without an error.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    temporary = temporary_name(name)
    try:
        with written_file(directory, temporary) as file:
            yield file
        directory.flush()
        with file_errors(os.path.join(directory.path, name)):
            directory.replace(temporary, name)
    except BaseException:
        with suppress(OSError):
            directory.unlink(temporary)
        raise
    directory.flush()


def write_whole(path: str, data: bytes) -> None:
    """Write a file, in the place of another if there is one, so that it has the old or the new content.

    Raises:
        InvalidArgumentError: no file can have that path.
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    directory, name = opened_place(path)
    with directory, replaced_file(directory, name) as file:
        file.write(data)
