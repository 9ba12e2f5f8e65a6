"""Undo: what a graph was when an edit began.

Of operations that are there, only those that change are remembered, when they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.operation import Operation

__all__ = ["Undo"]


class Undo:
    """Takes an edit back.

    Attributes:
        states: what each operation that has changed was before.
    """

    def __init__(self, graph: Graph) -> None:
        self.states: dict[Operation, tuple[Any, ...]] = {}
        self._graph = graph
        self._operations = graph.get_operations()
        self._names = graph.names.copy()
        self._versions = graph.graph_def_versions
        self._functions = graph.function_library.copy()
        self._refiner = graph.refiner.copy()
        self._collections = {
            name: graph.get_collection(name) for name in graph.get_all_collection_keys()
        }

    def note(self, op: Operation) -> None:
        """An operation is about to be changed."""
        if op not in self.states:
            self.states[op] = _state(op)

    def restore(self) -> None:
        """Let the graph be what it was."""
        graph = self._graph
        for op, state in self.states.items():
            _restore(op, state)
        graph.names = self._names
        graph.hold(self._operations)
        graph.graph_def_versions = self._versions
        graph.function_library.adopt(self._functions)
        graph.refiner = self._refiner
        for name in graph.get_all_collection_keys():
            graph.get_collection_ref(name)[:] = self._collections.get(name, [])
        graph.edits += 1


def _state(op: Operation) -> tuple[Any, ...]:
    """All of an operation that may change."""
    own = op.name, op.message, op.stale, op.signature
    return *own, op.edges, op.control_inputs, op._outputs


def _restore(op: Operation, state: tuple[Any, ...]) -> None:
    """Let an operation be what it was; who takes its outputs is the graph's to find out."""
    op.name, op.message, op.stale, op.signature, *edges, op._outputs = state
    op.edges, op.control_inputs = edges
