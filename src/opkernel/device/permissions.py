"""Permissions: which files a graph may read and write, and which functions it may call; origins: which a node has.

A graph is data that may come from anybody, and its nodes name files. Each path is resolved first, with its
links and `..`. The resolved path must be a file that the caller named, or lie in a directory that the
caller named. Files are then opened by the resolved path, and by no link: what was checked is what is opened.

Where a node comes from decides which files it may open, in whichever graph and function it runs.
A node whose op opens files has a mark, the attr `_origin`, which names permissions:

    the program's mark   nodes that Python adds to a function that is being traced: they have the permissions of
                         the program that runs them, which may open any file; a Session's, where it has one
    a model's mark       nodes of a loaded model, or of a GraphDef imported with permissions: they have these
    no mark              nodes of other GraphDefs: they have the permissions that a Session has given to its graph,
                         and none anywhere else

As an attr, the mark goes with the node wherever it is copied, inlined, optimised, placed or sent. A mark is a random
number of this process, so that no file can hold one; importers drop what a file says of origins all the same.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Self

from opkernel.errors import PermissionDeniedError
from opkernel.files import Directory, open_resolved, open_to_read, resolved
from opkernel.proto import GraphDef, NodeDef

_Path = str | os.PathLike[str]

_WRITE = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_OF_MODEL = ("variables", "assets")
_PARTS = r"(\.index|\.data-\d+-of-\d+|-\d+-of-\d+)?"
"""What follows the prefix in the names of a checkpoint's files, of V2 and of V1."""
_IN_WRITING = r"(\.tempstate\d+)?|_temp[^/]*(/[^/]+)?"
"""What follows the name of such a file while it is written; or a directory for the parts of a checkpoint."""


class Permissions:
    """Which files a graph may read and write, and which functions of Python it may call: by default none.

        opkernel.Session(graph, permissions=opkernel.Permissions(read=["data"], write=["out"]))

    Permissions do not change.

    Args:
        read: Directories, with all in them, and files that may be read. Named pipes and devices have to be
            named themselves.
        write: Directories and files that may be written, made, renamed and deleted. They may not be
            read for that.
        python: Functions that nodes PyFunc and EagerPyFunc may call, by the token that a node names.

    Raises:
        InvalidArgumentError: one of them is not a path.
    """

    __slots__ = ("_python", "_read", "_restores", "_saves", "_write")

    def __init__(
        self,
        read: Iterable[_Path] | _Path = (),
        write: Iterable[_Path] | _Path = (),
        python: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._python = dict(python or {})
        self._read = _resolved_all(read)
        self._write = _resolved_all(write)
        self._restores: tuple[str, ...] = ()
        self._saves: tuple[str, ...] = ()

    @property
    def read(self) -> tuple[str, ...]:
        """What may be read, resolved."""
        return self._read

    @property
    def write(self) -> tuple[str, ...]:
        """What may be written, resolved."""
        return self._write

    @property
    def python(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that may be called, by their tokens."""
        return self._python

    # More permissions.

    def reading(self, *paths: _Path) -> Self:
        """These permissions, with more files and directories to read."""
        return self._with(read=_resolved_all(paths))

    def reading_own(self, directory: _Path) -> Self:
        """These permissions, with the variables and assets of the SavedModel in a directory.

        A folder of the model that is a link gives no permission: links travel with files, and lead anywhere.
        """
        place = resolved(os.fspath(directory))
        folders = [os.path.join(place, name) for name in _OF_MODEL]
        return self._with(read=tuple(one for one in folders if not os.path.islink(one)))

    def restoring(self, prefix: _Path, *, follows_links: bool = False) -> Self:
        """These permissions, and the kernels that read checkpoints may read the one of a prefix.

        Args:
            prefix: What the names of its files begin with.
            follows_links: Whether its files may be links that lead anywhere: the caller has named it.
        """
        place = resolved(os.fspath(prefix))
        links = _links_of(os.path.abspath(os.fspath(prefix))) if follows_links else []
        return self._with(restores=(place, *links))

    def saving(self, prefix: _Path) -> Self:
        """These permissions, and the kernels that write checkpoints may write the one of a prefix."""
        return self._with(saves=(resolved(os.fspath(prefix)),))

    def _with(
        self,
        read: tuple[str, ...] = (),
        restores: tuple[str, ...] = (),
        saves: tuple[str, ...] = (),
        kind: Any = None,
    ) -> Self:
        more: Self = (kind or type(self))()
        more._read = tuple(dict.fromkeys(self._read + read))
        more._write, more._python = self._write, self._python
        more._restores, more._saves = self._restores + restores, self._saves + saves
        return more

    def for_checkpoints(self) -> Permissions:
        """What kernels may do that read and write nothing but checkpoints."""
        return self._with(kind=_ForCheckpoints) if self._restores or self._saves else self

    # Checks, and files.

    def check_read(self, path: str | bytes) -> str:
        """The resolved path, if it may be read. `open_to_read` opens it, too, and is safer.

        Raises:
            PermissionDeniedError: it may not be read.
            InvalidArgumentError: it cannot be the path of a file.
        """
        return self._checked(path, "read", self._may_read)

    def check_write(self, path: str | bytes) -> str:
        """The resolved path, if it may be written, made or deleted.

        Raises:
            PermissionDeniedError: it may not be written.
            InvalidArgumentError: it cannot be the path of a file.
        """
        return self._checked(path, "write", self._may_write)

    def open_to_read(self, path: str | bytes) -> int:
        """Open a file for reading; its descriptor.

        Raises:
            PermissionDeniedError: it may not be read, or is a pipe or a device that nobody named.
            InvalidArgumentError: it cannot be the path of a file.
            OSError: it cannot be opened.
        """
        place = self.check_read(path)
        descriptor = self._open(place)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place)
            if not stat.S_ISREG(mode) and not self._names(place):
                raise PermissionDeniedError(
                    f"{place!r} is no regular file: the graph may read it only where it is named itself, as in "
                    f"Permissions(read=[{place!r}])"
                )
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def names_in(self, path: str | bytes) -> list[str]:
        """The names in a directory that may be read, sorted.

        Raises:
            PermissionDeniedError: it may not be read.
            InvalidArgumentError: it cannot be the path of a file.
            OSError: it is no directory, or cannot be read.
        """
        with self._directory(self.check_read(path)) as directory:
            return directory.names()

    def open_to_write(self, path: str | bytes, *, makes: int | None = None) -> int:
        """Open a file for writing, and make it and its directories where they are missing; its descriptor.

        Args:
            path: The file.
            makes: How many directories, from the last one on, may be made; any number if not given.

        Raises:
            PermissionDeniedError: it may not be written.
            InvalidArgumentError: it cannot be the path of a file.
            OSError: it cannot be opened.
        """
        directory, name = self.place_to_write(path, makes=len(path) if makes is None else makes)
        with directory:
            return directory.open(name, _WRITE)

    def place_to_write(self, path: str | bytes, *, makes: int = 0) -> tuple[Directory, str]:
        """The directory of a file that may be written, and the file's name in it.

        Args:
            path: The file; it need not exist.
            makes: How many directories, from the last one on, are made where they are missing.

        Raises:
            PermissionDeniedError: it may not be written.
            InvalidArgumentError: it cannot be the path of a file.
            OSError: the directory cannot be opened.
        """
        folder, name = os.path.split(self.check_write(path))
        return self._directory(folder, makes), name

    def _open(self, place: str) -> int:
        return open_resolved(place)

    def _directory(self, place: str, makes: int = 0) -> Directory:
        return Directory.resolved(place, makes=makes)

    def _may_read(self, place: str) -> bool:
        return any(_is_within(place, one) for one in self._read)

    def _may_write(self, place: str) -> bool:
        return any(_is_within(place, one) for one in self._write)

    def _names(self, place: str) -> bool:
        """Whether a file was named itself, and not a directory that it is in."""
        return place in self._read

    def _checked(self, path: str | bytes, what: str, may: Any) -> str:
        place = resolved(path)
        if not may(place):
            raise PermissionDeniedError(
                f"{os.fsdecode(path)!r}: the graph may not {what} this file. Allow it with "
                f"permissions=opkernel.Permissions({what}=[...]) where the graph is loaded, imported or gets its "
                f"Session, or on the command line with --allow-{what} {_parent(place)}"
            )
        return place

    def _key(self) -> tuple[object, ...]:
        functions = tuple(self._python.items())
        return type(self), self._read, self._write, self._restores, self._saves, functions

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Permissions) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key()[:-1])  # functions may have no hash

    def __repr__(self) -> str:
        functions = f", python={[*self._python]}" if self._python else ""
        return f"Permissions(read={[*self._read]}, write={[*self._write]}{functions})"


class _ForCheckpoints(Permissions):
    """Permissions that kernels of checkpoints have: also for the files of some checkpoints."""

    __slots__ = ()

    def _may_read(self, place: str) -> bool:
        return super()._may_read(place) or _is_of_any(place, self._restores, _PARTS)

    def _may_write(self, place: str) -> bool:
        parts = f"{_PARTS}({_IN_WRITING})"
        return super()._may_write(place) or _is_of_any(place, self._saves, parts)


class _OwnCode(Permissions):
    """The permissions of Python code: all files, as without opkernel."""

    __slots__ = ()

    def _may_read(self, place: str) -> bool:
        return True

    _may_write = _names = _may_read

    def _open(self, place: str) -> int:
        return open_to_read(place)

    def __reduce__(self) -> str:
        return "OWN_CODE"

    def __repr__(self) -> str:
        return "OWN_CODE"


def _resolved_all(paths: Iterable[_Path] | _Path) -> tuple[str, ...]:
    listed: Any = [paths] if isinstance(paths, str | os.PathLike) else paths
    return tuple(dict.fromkeys([resolved(os.fspath(path)) for path in listed]))


def _is_within(path: str, allowed: str) -> bool:
    return path == allowed or path.startswith(allowed.rstrip(os.sep) + os.sep)


def _is_of_any(path: str, prefixes: Iterable[str], parts: str) -> bool:
    """Whether a path is one of a checkpoint's, of one of these prefixes."""
    return any(
        path.startswith(prefix) and re.fullmatch(parts, path[len(prefix) :]) for prefix in prefixes
    )


def _links_of(prefix: str) -> list[str]:
    """Where the files of a checkpoint lie that are links."""
    folder, stem = os.path.split(prefix)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    files = [os.path.join(folder, one) for one in names if _is_of_any(one, [stem], _PARTS)]
    return [resolved(file) for file in files if os.path.islink(file)]


def _parent(path: str) -> str:
    return path if os.path.isdir(path) else os.path.dirname(path)


NO_PERMISSIONS = Permissions()
OWN_CODE = _OwnCode()
"""Those of eager calls and of the program's own nodes in traced functions: the caller's own code says which file."""


ORIGIN_ATTR = "_origin"

_lock = threading.Lock()
_marks: dict[Permissions, bytes] = {}
_permissions: dict[bytes, Permissions | None] = {}
"""The permissions of each mark; None for a program's, which its step has."""


def _new_mark(permissions: Permissions | None) -> bytes:
    mark = os.urandom(16).hex().encode()  # as `secrets` does, which loads OpenSSL
    _permissions[mark] = permissions
    return mark


PROGRAM = _new_mark(None)
"""The mark of the program's own nodes."""


def mark_of(permissions: Permissions) -> bytes:
    """The mark of nodes that have certain permissions: one for equal permissions."""
    with _lock:
        mark = _marks.get(permissions)
        if mark is None:
            mark = _marks[permissions] = _new_mark(permissions)
        return mark


def permissions_of(node: NodeDef, of_program: Permissions, of_others: Permissions) -> Permissions:
    """Which files a node may read and write.

    Args:
        node: The node.
        of_program: What the program's own nodes may do in this step.
        of_others: What nodes without a mark may do in this step.
    """
    if ORIGIN_ATTR not in node.attr:
        return of_others
    found = _permissions.get(node.attr[ORIGIN_ATTR].s, NO_PERMISSIONS)
    return of_program if found is None else found


def _nodes_of(graph_def: GraphDef) -> Iterable[NodeDef]:
    """The nodes of a graph, and those of its functions."""
    return chain(graph_def.node, *[function.node_def for function in graph_def.library.function])


def set_origin(graph_def: GraphDef, mark: bytes, may_open_files: Callable[[str], bool]) -> None:
    """Give all nodes of a graph one origin, whatever the message says.

    Args:
        graph_def: The graph, which is changed.
        mark: The mark; empty for none.
        may_open_files: Tells whether kernels of an op may.
    """
    for node in _nodes_of(graph_def):
        if ORIGIN_ATTR in node.attr:
            del node.attr[ORIGIN_ATTR]
    if mark:
        mark_nodes(_nodes_of(graph_def), mark, may_open_files)


def without_origins(graph_def: GraphDef) -> GraphDef:
    """A graph as files hold it: a copy without marks, or the message itself where it has none."""
    if not any(ORIGIN_ATTR in node.attr for node in _nodes_of(graph_def)):
        return graph_def
    copy = GraphDef.FromString(graph_def.SerializeToString())
    set_origin(copy, b"", lambda op: False)
    return copy


def mark_nodes(
    nodes: Iterable[NodeDef], mark: bytes, may_open_files: Callable[[str], bool]
) -> None:
    """Mark the nodes whose ops may open files."""
    opens: dict[str, bool] = {}
    for node in nodes:
        if node.op not in opens:
            opens[node.op] = may_open_files(node.op)
        if opens[node.op]:
            node.attr[ORIGIN_ATTR].s = mark


def marks_in(graph_def: GraphDef) -> dict[bytes, Permissions | None]:
    """The marks in a graph with what they mean, for the process to which the graph is sent."""
    found = {node.attr[ORIGIN_ATTR].s for node in _nodes_of(graph_def) if ORIGIN_ATTR in node.attr}
    return {mark: _permissions[mark] for mark in found if mark in _permissions}


def adopt_marks(marks: Mapping[bytes, Permissions | None]) -> None:
    """Let marks of another process mean here what they mean there."""
    with _lock:
        for mark, permissions in marks.items():
            _permissions.setdefault(mark, permissions)


def with_plain_marks(content: bytes) -> bytes:
    """A serialized message with its marks replaced by what they mean, which is the same in each process."""
    if ORIGIN_ATTR.encode() not in content:
        return content
    for mark, permissions in [*_permissions.items()]:
        content = content.replace(mark, repr(permissions).encode())
    return content
