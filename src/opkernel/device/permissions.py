"""Permissions: which files a graph may read and write.

A graph is data that may come from anybody, and its nodes name files. Each path is resolved first, with its
links and `..`. The resolved path must be a file that the caller named, or lie in a directory that the
caller named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from opkernel.errors import InvalidArgumentError, PermissionDeniedError

__all__ = ["NO_PERMISSIONS", "OWN_CODE", "Permissions"]

_Path = str | os.PathLike[str]


class Permissions:
    """Which files a graph may read and write: by default none.

        opkernel.Session(graph, permissions=opkernel.Permissions(read=["data"], write=["out"]))

    Permissions do not change.

    Args:
        read: Directories, with all in them, and files that may be read.
        write: Directories and files that may be written, made, renamed and deleted. They may not be
            read for that.

    Raises:
        InvalidArgumentError: one of them is not a path.
    """

    __slots__ = ("_read", "_write")

    def __init__(
        self, read: Iterable[_Path] | _Path = (), write: Iterable[_Path] | _Path = ()
    ) -> None:
        self._read = _resolved_all(read)
        self._write = _resolved_all(write)

    @property
    def read(self) -> tuple[str, ...]:
        """What may be read, resolved."""
        return self._read

    @property
    def write(self) -> tuple[str, ...]:
        """What may be written, resolved."""
        return self._write

    def check_read(self, path: str | bytes) -> str:
        """The resolved path, which the caller opens for reading.

        Raises:
            PermissionDeniedError: it may not be read.
            InvalidArgumentError: it cannot be the path of a file.
        """
        return self._checked(path, self._read, "read")

    def check_write(self, path: str | bytes) -> str:
        """The resolved path, which the caller opens for writing, makes or deletes.

        Raises:
            PermissionDeniedError: it may not be written.
            InvalidArgumentError: it cannot be the path of a file.
        """
        return self._checked(path, self._write, "write")

    def reading(self, *paths: _Path) -> Permissions:
        """These permissions, with more files and directories to read."""
        if self is OWN_CODE:
            return self
        return Permissions((*self._read, *paths), self._write)

    def joined(self, other: Permissions) -> Permissions:
        """The permissions of a function that calls graphs with these and with other permissions.

        The caller's own code may do no more than the graphs that it calls; a graph may do what any of the
        permissions allows.
        """
        if self is OWN_CODE or other is OWN_CODE:
            return other if self is OWN_CODE else self
        return Permissions((*self._read, *other._read), (*self._write, *other._write))

    def _checked(self, path: str | bytes, allowed: tuple[str, ...], what: str) -> str:
        resolved = _resolved(path)
        if not any(_is_within(resolved, one) for one in allowed):
            raise PermissionDeniedError(
                f"{os.fsdecode(path)!r}: the graph may not {what} this file. Allow it with "
                f"Session(graph, permissions=opkernel.Permissions({what}=[...])), or on the command "
                f"line with --allow-{what} {_parent(resolved)}"
            )
        return resolved

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Permissions):
            return NotImplemented
        return type(self) is type(other) and (self._read, self._write) == (
            other._read,
            other._write,
        )

    def __hash__(self) -> int:
        return hash((self._read, self._write))

    def __repr__(self) -> str:
        return f"Permissions(read={[*self._read]}, write={[*self._write]})"


class _All(Permissions):
    """The permissions of Python code: all files, as without opkernel."""

    __slots__ = ()

    def _checked(self, path: str | bytes, allowed: tuple[str, ...], what: str) -> str:
        return _resolved(path)

    def __repr__(self) -> str:
        return "OWN_CODE"


def _resolved_all(paths: Iterable[_Path] | _Path) -> tuple[str, ...]:
    listed: Any = [paths] if isinstance(paths, str | os.PathLike) else paths
    return tuple(dict.fromkeys([_resolved(os.fspath(path)) for path in listed]))


def _resolved(path: str | bytes) -> str:
    """The path without links and `..`; what does not exist yet lies in a directory that does."""
    if not path:
        raise InvalidArgumentError(f"{path!r} is not the path of a file")
    try:
        return os.path.realpath(os.fsdecode(path))
    except ValueError as error:  # a zero byte
        raise InvalidArgumentError(f"{path!r} is not the path of a file") from error


def _is_within(path: str, allowed: str) -> bool:
    return path == allowed or path.startswith(allowed.rstrip(os.sep) + os.sep)


def _parent(path: str) -> str:
    return path if os.path.isdir(path) else os.path.dirname(path)


NO_PERMISSIONS = Permissions()
OWN_CODE = _All()
"""Those of eager calls and traced functions: the caller's own code says which file."""
