"""The default graph: the innermost `with graph.as_default()` of the thread, or the global one."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from opkernel.graph.core.graph import DEFAULT_GRAPHS, Graph
from opkernel.graph.core.tensor import Tensor

_global_lock = threading.Lock()
_global_graphs: list[Graph] = []


def innermost_default() -> Graph | None:
    """The graph of the innermost block of this thread; None outside of all."""
    graphs = DEFAULT_GRAPHS.get()
    return graphs[-1] if graphs else None


def graph_of_call(tensors: Iterable[Tensor]) -> Graph | None:
    """The graph that a call with these tensors adds to; None where it adds to none.

    While a function is traced it is the graph of the innermost block, since tensors from outside
    become inputs of the function. Otherwise it is the graph of the first tensor, or else of the
    innermost block.
    """
    graph = innermost_default()
    if graph is not None and graph.building_function:
        return graph
    first = next(iter(tensors), None)
    return graph if first is None else first.graph


def graph_of_tensors(tensors: Iterable[Tensor]) -> Graph:
    """The graph that a call with these tensors, of which there is one at least, adds to."""
    graph = graph_of_call(tensors)
    assert graph is not None
    return graph


def get_default_graph() -> Graph:
    """The graph of the innermost `with graph.as_default()` of this thread, or else a global one."""
    graph = innermost_default()
    if graph is not None:
        return graph
    with _global_lock:
        if not _global_graphs:
            _global_graphs.append(Graph())
        return _global_graphs[0]


def reset_default_graph() -> None:
    """Let the next call of `get_default_graph` outside of all blocks make a new graph."""
    with _global_lock:
        _global_graphs.clear()
