"""Fanout: which operations take the outputs of each operation.

State: `_fanout` holds, for each producer, the edges to the first `_indexed` operations in order, as
(consumer, input index), with CONTROL_SLOT for control edges. The first question adds the other edges, so
that bulk imports need not pay for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from opkernel.graph.core.node import AnyNode, Node
from opkernel.graph.core.tensor_name import CONTROL_SLOT


class Fanout(Generic[AnyNode]):
    """The edges of a growing list of operations, each with its position as its number."""

    def __init__(self, operations: Sequence[AnyNode]) -> None:
        self._operations = operations
        for op in operations:
            op._fanout = None
        self._indexed = 0

    def of(self, op: AnyNode) -> list[tuple[AnyNode, int]]:
        """The edges that leave an operation, as (consumer, input index)."""
        for position in range(self._indexed, len(self._operations)):
            consumer = self._operations[position]
            for index, source in enumerate(consumer.edges[::2]):
                _add(source, consumer, index)
            for source in consumer.control_inputs:
                _add(source, consumer, CONTROL_SLOT)
        self._indexed = len(self._operations)
        return list(op._fanout or ())

    def note(self, source: Node, consumer: Node, index: int) -> None:
        """Record a new edge of an operation."""
        if consumer.number < self._indexed:
            _add(source, consumer, index)

    def forget(self, source: Node, consumer: Node, index: int) -> None:
        """Drop an edge of an operation."""
        if source._fanout is not None and consumer.number < self._indexed:
            del source._fanout[consumer, index]


def _add(source: Node, consumer: Node, index: int) -> None:
    if source._fanout is None:
        source._fanout = {}
    source._fanout[consumer, index] = None
