"""The default graph: the innermost `with graph.as_default()` of the thread, or the global one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkernel.graph.graph import Graph

__all__ = ["as_default", "innermost_default"]

_graphs: ContextVar[tuple[Graph, ...]] = ContextVar("default_graphs", default=())


@contextmanager
def as_default(graph: Graph) -> Iterator[Graph]:
    """Make a graph the default of this thread inside the block."""
    token = _graphs.set((*_graphs.get(), graph))
    try:
        yield graph
    finally:
        _graphs.reset(token)


def innermost_default() -> Graph | None:
    """The graph of the innermost block of this thread; None outside of all."""
    graphs = _graphs.get()
    return graphs[-1] if graphs else None
