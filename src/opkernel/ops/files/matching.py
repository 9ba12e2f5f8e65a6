"""The files that a pattern matches, found in the directories that a graph may read.

Source: TensorFlow core/platform/file_system_helper.cc (GetMatchingPaths).
"""

import fnmatch
import glob
import os
from collections.abc import Iterator

from opkernel.device.budget import check_time
from opkernel.device.permissions import Permissions
from opkernel.errors import PermissionDeniedError

__all__ = ["matching_paths"]


def matching_paths(permissions: Permissions, pattern: bytes) -> Iterator[bytes]:
    """The paths that match a pattern (`*`, `?`, `[...]`).

    A link below a wildcard that leads out of the directories that may be read matches, and nothing behind it does.

    Raises:
        PermissionDeniedError: the directory before the wildcards may not be read, or the pattern has `..` after one.
        InvalidArgumentError: the pattern cannot be that of a path.
        DeadlineExceededError: there is no time left.
    """
    fixed = pattern
    while glob.has_magic(fixed):
        fixed = os.path.dirname(fixed)
    permissions.check_read(fixed or b".")
    if b".." in pattern[len(fixed) :].split(b"/"):
        raise PermissionDeniedError(f"{os.fsdecode(pattern)!r}: `..` must not follow a wildcard")
    return _matches(permissions, pattern)


def _matches(permissions: Permissions, pattern: bytes) -> Iterator[bytes]:
    if not glob.has_magic(pattern):
        if os.path.lexists(pattern):
            yield pattern
        return
    folder, name = os.path.split(pattern)
    for one in _matches(permissions, folder) if glob.has_magic(folder) else [folder]:
        names = [os.fsencode(name) for name in _names_in(permissions, one)]
        if glob.has_magic(name):
            names = fnmatch.filter(names, name)
        elif name:
            names = [name] if name in names else []
        elif os.path.isdir(one):
            names = [b""]
        for found in names:
            check_time("looking for files")
            yield os.path.join(one, found)


def _names_in(permissions: Permissions, folder: bytes) -> list[str]:
    """The names in a directory; none where there is no such directory, or it may not be read."""
    try:
        return permissions.names_in(folder or b".")
    except OSError:  # a PermissionDeniedError is one
        return []
