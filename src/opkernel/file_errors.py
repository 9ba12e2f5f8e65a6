"""Errors of the system on files, as OpErrors with TensorFlow's codes; and paths that no file can have."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

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


def checked_path(path: str | os.PathLike[str]) -> str:
    """A path as text.

    Raises:
        InvalidArgumentError: no file can have it: it is empty, has a zero byte, or a character that the system's
            names of files lack.
    """
    name = os.fsdecode(path)
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{name!r} is not the path of a file: {error}") from error
    if not encoded or b"\0" in encoded:
        raise InvalidArgumentError(
            f"{name!r} is not the path of a file: {'it has a zero byte' if encoded else 'it is empty'}"
        )
    return name


@contextmanager
def file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within the block errors of the system on a file are raised as OpErrors with TensorFlow's codes.

    OpErrors stay themselves, also those that are an OSError: a deadline, and a missing permission.
    """
    try:
        yield
    except OpError:
        raise
    except OSError as error:
        kind = _ERRORS.get(error.errno or 0, UnavailableError)
        raise kind(f"{os.fspath(path)}; {error.strerror or error}") from error


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
