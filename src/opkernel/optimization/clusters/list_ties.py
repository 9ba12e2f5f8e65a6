"""ListTies: operations that only one cluster can have together, since lists pass between them.

A TensorList is a variant, a TensorArray and a stack are resources of a step. A program has them inside, and can neither
take nor give one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opkernel.graph import Operation
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.core.edges import edges_of
from opkernel.types import DataType


def is_list(op: Operation, index: int) -> bool:
    """Whether an output of an operation is a list, or stands for one.

    A resource that is made from tensors, such as a size, is one: variables and tables are named by attrs.
    """
    dtype = op.output_types[index]
    if dtype is not DataType.DT_RESOURCE:
        return dtype is DataType.DT_VARIANT
    origin = _origin(op)
    return bool(origin.edges) and not origin.traits.calls


def _origin(op: Operation) -> Operation:
    """The operation whose output comes to others through an operation that passes it on."""
    seen = set[Operation]()
    while (op.traits.passes_on or op.type in LOW_LEVEL_CONTROL_FLOW) and op not in seen:
        seen.add(op)
        op = op.edges[0]
    return op


class ListTies:
    """The operations that lists pass between.

    Args:
        order: The operations, inputs before consumers, except for back edges.

    Attributes:
        edges: The ends of the edges that lists pass.
    """

    def __init__(self, order: Sequence[Operation]) -> None:
        self.edges = [
            (source, op) for op in order for source, index in edges_of(op) if is_list(source, index)
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
