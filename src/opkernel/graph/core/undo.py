"""Undo: the state of a graph when an edit began.

An existing operation is remembered just before its first change.
"""

from __future__ import annotations

from typing import Any

from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation


class Undo:
    """Takes an edit back.

    Attributes:
        states: the former state of each operation that has changed.
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
            own = op.name, op.slim_message, op.stale, op.signature
            self.states[op] = *own, op.edges, op.control_inputs, op._outputs

    def restore(self) -> None:
        """Restore the graph."""
        graph = self._graph
        for op, state in self.states.items():  # the graph finds consumers anew
            op.name, op.message, op.stale, op.signature, *edges, op._outputs = state
            op.edges, op.control_inputs = edges
        graph.names = self._names
        graph.hold(self._operations)
        graph.graph_def_versions = self._versions
        graph.function_library.adopt(self._functions)
        graph.refiner = self._refiner
        for name in graph.get_all_collection_keys():
            graph.get_collection_ref(name)[:] = self._collections.get(name, [])
        graph.edits += 1
