"""Files that appear whole or not at all.

A file is written under another name in the same directory, brought to the disk, and then renamed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from opkernel.files import Directory, file_error

__all__ = [
    "MARK",
    "OpenPlace",
    "Place",
    "opened_place",
    "place_of",
    "replaced_file",
    "temporary_name",
    "write_whole",
    "written_file",
]

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
        NotFoundError, PermissionDeniedError, UnavailableError: it cannot be opened.
    """
    try:
        return open_place(path)
    except OSError as error:
        raise file_error(path, error) from error


def temporary_name(name: str) -> str:
    """A name like another one that no file has."""
    return f"{name}{MARK}{secrets.randbits(63)}"


@contextmanager
def written_file(directory: Directory, name: str) -> Iterator[BinaryIO]:
    """A new file, which is on the disk after the block, and gone after an error in the block.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    try:
        with open(directory.open(name, _NEW), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        with suppress(OSError):
            directory.unlink(name)
        if isinstance(error, OSError):
            raise file_error(os.path.join(directory.path, name), error) from error
        raise


@contextmanager
def replaced_file(directory: Directory, name: str) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of another of its name when the block ends without an error.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    temporary = temporary_name(name)
    with written_file(directory, temporary) as file:
        yield file
    directory.flush()
    try:
        directory.replace(temporary, name)
    except OSError as error:
        with suppress(OSError):
            directory.unlink(temporary)
        raise file_error(os.path.join(directory.path, name), error) from error
    directory.flush()


def write_whole(path: str, data: bytes) -> None:
    """Write a file, in the place of another if there is one, so that it has the old or the new content.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    directory, name = opened_place(path)
    with directory, replaced_file(directory, name) as file:
        file.write(data)
