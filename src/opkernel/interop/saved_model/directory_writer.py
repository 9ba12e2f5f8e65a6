"""written_directory: a directory that appears whole, or not at all.

It is written beside its place and then takes it in one step. On Linux the old directory and the new one are
exchanged (renameat2), so that at any moment one of them is there.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress

from opkernel.errors import AlreadyExistsError
from opkernel.file_errors import checked_path, file_errors
from opkernel.files import Directory
from opkernel.interrupts import contextmanager

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_MODEL_FILES = {"saved_model.pb", "saved_model.pbtxt"}
_CONTENTS = {
    *_MODEL_FILES,
    "assets",
    "assets.extra",
    "debug",
    "fingerprint.pb",
    "keras_metadata.pb",
    "variables",
}


@contextmanager
def written_directory(path: str) -> Iterator[str]:
    """A new directory to write to, which becomes `path` when the block ends without an error.

    Raises:
        InvalidArgumentError: no directory can have that path.
        AlreadyExistsError: `path` is something else than a SavedModel or an empty directory, or holds more.
        NotFoundError, PermissionDeniedError, UnavailableError: it cannot be written.
    """
    target = os.path.realpath(checked_path(path))  # a link stays a link
    with file_errors(target):
        _check_replaceable(target)
        folder, name = os.path.split(target)
        made = os.path.join(folder, f".{name}-{secrets.token_hex(8)}")
        try:
            os.makedirs(made)
            yield made
            _flush(made)
            _put_in_place(made, target)
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _check_replaceable(target: str) -> None:
    if not os.path.lexists(target):
        return
    names = os.listdir(target) if os.path.isdir(target) else [""]
    if names and not _MODEL_FILES & {*names}:
        raise AlreadyExistsError(f"{target} exists and is no SavedModel: it is not replaced")
    others = sorted({*names} - _CONTENTS)
    if others:
        raise AlreadyExistsError(
            f"{target} has {others[0]!r} beside a SavedModel, which would be lost: it is not replaced"
        )


def _flush(directory: str) -> None:
    """Bring what is in a directory to the disk."""
    for folder, _, files in os.walk(directory):
        for name in files:
            with open(os.path.join(folder, name), "rb+") as file:
                os.fsync(file.fileno())
        with Directory(folder) as place:
            place.flush()


def _put_in_place(made: str, target: str) -> None:
    """Give a directory its name; what had the name before has that of the new one then."""
    if os.path.isdir(target) and not _exchanged(made, target):
        old = f"{made}-old"
        try:
            os.rename(target, old)
            os.rename(made, target)
        except BaseException:
            os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    elif not os.path.isdir(target):
        os.rename(made, target)
    with Directory(os.path.dirname(target)) as place:
        place.flush()


def _exchanged(one: str, other: str) -> bool:
    """Exchange two directories; False where the system cannot."""
    with suppress(OSError, AttributeError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        paths = os.fsencode(one), os.fsencode(other)
        return bool(rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)
    return False
