"""Origins: where a node comes from decides which files it may open, in whichever graph and function it runs.

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

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.proto import GraphDef, NodeDef

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
