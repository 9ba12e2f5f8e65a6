"""Files that appear whole or not at all.

A file is written under another name in the same directory, brought to the disk, and then renamed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

from opkernel.file_errors import checked_path, file_error, file_errors

__all__ = [
    "file_error",
    "flush_directory",
    "locked_directory",
    "make_directory",
    "rename",
    "temporary_name",
    "write_whole",
    "written_file",
]

MARK = ".tempstate"
"""What the names of files that are being written have in them, as TensorFlow's have."""


def make_directory(path: str) -> None:
    """Make a directory and those above it, as far as they are missing; the empty path is the current one.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: that cannot be done.
    """
    with file_errors(path):
        os.makedirs(path or ".", exist_ok=True)


def temporary_name(path: str) -> str:
    """A name beside a path that no other file has."""
    return f"{path}{MARK}{secrets.randbits(63)}"


@contextmanager
def written_file(path: str) -> Iterator[BinaryIO]:
    """A new file, which is on the disk after the block, and gone after an error in the block.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    with file_errors(path):
        try:
            with open(path, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise


def write_whole(path: str, data: bytes) -> None:
    """Write a file, in the place of another if there is one, so that it has the old or the new content.

    Raises:
        InvalidArgumentError: no file can have that path.
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    name = temporary_name(checked_path(path))
    with written_file(name) as file:
        file.write(data)
    rename(name, path)
    flush_directory(path)


def rename(name: str, path: str) -> None:
    """Give a file its name.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: that cannot be done.
    """
    with file_errors(path):
        try:
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


def flush_directory(path: str) -> None:
    """Bring the names in the directory of a path to the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked_directory(path: str) -> Iterator[None]:
    """Let nobody else give files their names in the directory of a path meanwhile, where the system can.

    The lock is one of the directory itself: it leaves no file, and ends with its process.
    """
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # a missing directory is told where a file is written
            import fcntl  # Windows has none

            descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
