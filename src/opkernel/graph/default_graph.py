"""The default graph: the innermost `with graph.as_default()` of the thread, or the global one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkernel.graph.graph import Graph

__all__ = ["as_default", "innermost_default"]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.graphs: list[Graph] = []


_stack = _Stack()


@contextmanager
def as_default(graph: Graph) -> Iterator[Graph]:
    """Make a graph the default of this thread inside the block."""
    _stack.graphs.append(graph)
    try:
        yield graph
    finally:
        _stack.graphs.pop()


def innermost_default() -> Graph | None:
    """The graph of the innermost block of this thread; None outside of all."""
    return _stack.graphs[-1] if _stack.graphs else None
