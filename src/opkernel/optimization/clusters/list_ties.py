"""ListTies: operations that only one cluster can have together, since lists pass between them.

A TensorList is a variant, a TensorArray and a stack are resources of a step. A program has them inside, and can neither
take nor give one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opkernel.graph import Operation
from opkernel.graph.core.edges import edges_of
from opkernel.types import DataType

__all__ = ["ListTies", "is_list", "works_on_list"]

_STACK_OPS = frozenset({"StackCloseV2", "StackPopV2", "StackPushV2", "StackV2"})


def works_on_list(op: Operation) -> bool:
    """Whether an op makes, reads or changes a TensorArray or a stack."""
    return op.type.startswith("TensorArray") or op.type in _STACK_OPS


def is_list(op: Operation, index: int) -> bool:
    """Whether an output of an operation is a list, or stands for one."""
    dtype = op.output_types[index]
    if dtype is DataType.DT_RESOURCE:
        while op.traits.passes_on:
            op = op.edges[0]
        return works_on_list(op)
    return dtype is DataType.DT_VARIANT


def _is_handle_for(op: Operation, dtype: DataType) -> bool:
    """Whether an operation takes an input of a type as the list that it works on."""
    return dtype is DataType.DT_RESOURCE and works_on_list(op)


class ListTies:
    """The operations that lists pass between.

    Args:
        order: The operations, inputs before consumers, except for back edges.

    Attributes:
        edges: The ends of the edges that lists pass.
    """

    def __init__(self, order: Sequence[Operation]) -> None:
        self.edges = [
            (source, op)
            for op in order
            for source, index in edges_of(op)
            if is_list(source, index) or _is_handle_for(op, source.output_types[index])
        ]
        self._neighbours: dict[Operation, list[Operation]] = {}
        for source, op in self.edges:
            self._neighbours.setdefault(source, []).append(op)
            self._neighbours.setdefault(op, []).append(source)

    def tied_to(self, ops: Iterable[Operation]) -> set[Operation]:
        """Some operations, and all that lists tie to them."""
        waiting = list(ops)
        found = set(waiting)
        while waiting:
            new = [one for one in self._neighbours.get(waiting.pop(), ()) if one not in found]
            found.update(new)
            waiting += new
        return found
