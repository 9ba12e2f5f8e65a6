"""Files that appear whole or not at all.

A file is written under another name in the same directory, brought to the disk, and then renamed.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import BinaryIO

from opkernel.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
)
from opkernel.interrupts import contextmanager

__all__ = [
    "file_error",
    "flush_directory",
    "locked_directory",
    "rename",
    "temporary_name",
    "write_whole",
    "written_file",
]

MARK = ".tempstate"
"""What the names of files that are being written have in them, as TensorFlow's have."""


def temporary_name(path: str) -> str:
    """A name beside a path that no other file has."""
    return f"{path}{MARK}{secrets.randbits(63)}"


@contextmanager
def written_file(path: str) -> Iterator[BinaryIO]:
    """A new file, which is on the disk after the block, and gone after an error in the block.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    try:
        with open(path, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        with suppress(OSError):
            os.unlink(path)
        if isinstance(error, OSError):
            raise file_error(path, error) from error
        raise


def write_whole(path: str, data: bytes) -> None:
    """Write a file, in the place of another if there is one, so that it has the old or the new content.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
    """
    name = temporary_name(path)
    try:
        with written_file(name) as file:
            file.write(data)
        rename(name, path)
    except BaseException:  # an interrupt before the file has its name
        with suppress(OSError):
            os.unlink(name)
        raise
    flush_directory(path)


def rename(name: str, path: str) -> None:
    """Give a file its name.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: that cannot be done.
    """
    try:
        os.replace(name, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(name)
        raise file_error(path, error) from error


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


def file_error(path: str, error: OSError) -> OpError:
    """The error of an operation on a file, with TensorFlow's code."""
    kind = _ERRORS.get(error.errno or 0, UnavailableError)
    return kind(f"{path}; {error.strerror or error}")


_ERRORS: dict[int, type[OpError]] = {
    errno.ENOENT: NotFoundError,
    errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError,
    errno.EROFS: PermissionDeniedError,
    errno.EEXIST: AlreadyExistsError,
    **dict.fromkeys((errno.EINVAL, errno.ENAMETOOLONG), InvalidArgumentError),
    **dict.fromkeys(
        (errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EBUSY, errno.ETXTBSY),
        FailedPreconditionError,
    ),
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EMLINK, errno.ENOMEM),
        ResourceExhaustedError,
    ),
    **dict.fromkeys((errno.EFBIG, errno.EOVERFLOW), OutOfRangeError),
}
"""The class of TensorFlow's code for each error of the system (tsl/platform/errors.cc)."""
