"""The tables that a frozen graph keeps, and what initialises them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from opkernel.errors import FailedPreconditionError
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.freezing.calls import calls_functions
from opkernel.graph.freezing.held_values import variable_name

TABLE_INITIALIZERS = "table_initializer"
"""The collection of the operations that initialise tables: TensorFlow's GraphKeys.TABLE_INITIALIZERS."""
TABLES = frozenset({"HashTable", "HashTableV2"})
"""Tables that cannot be read before they are initialised."""


def table_initializers(graph: Graph, needed: Collection[Operation]) -> list[Operation]:
    """The operations of a graph that initialise the tables among those needed.

    Raises:
        FailedPreconditionError: nothing in the graph initialises a table.
    """
    found: dict[Operation, None] = {}
    for table in needed:
        if table.type in TABLES:
            initializing = [*_initializing(graph, table)]
            if not initializing:
                raise FailedPreconditionError(
                    f"Table {table.name!r} ({table.type}) cannot be kept: nothing in the graph "
                    f"initialises it. Make the tensors inputs that are looked up in it",
                    node=table.name,
                    op=table.type,
                )
            found |= dict.fromkeys(initializing)
    return list(found)


def _initializing(graph: Graph, table: Operation) -> Iterator[Operation]:
    for same in _same_tables(graph, table):
        for op in same.outputs[0].consumers():
            if _initializes(op):
                yield op


def _same_tables(graph: Graph, table: Operation) -> Iterable[Operation]:
    """The nodes of the same table."""
    name = variable_name(table)
    for op in graph.get_operations():
        if op is table or (op.type == table.type and variable_name(op) == name):
            yield op


def _initializes(op: Operation) -> bool:
    """Whether a node initialises a table, by itself or in functions that it calls."""
    if op.traits.initializes_table:
        return True
    if not calls_functions(op):
        return False
    library = op.graph.function_library
    functions = library.reachable_definitions([op.message]).values()
    nodes = (node for function in functions for node in function.node_def)
    return any(library.traits(node.op).initializes_table for node in nodes)
