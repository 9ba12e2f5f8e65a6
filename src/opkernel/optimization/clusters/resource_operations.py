"""Which operations on resources and lists must not be in one cluster, and which must be.

All that a cluster reads of variables it reads before it runs, and all that it assigns is assigned when it has run. So it
must have no operation that reads a variable, or does both, behind one that writes to it. TensorFlow looks for any variable;
here a launch refuses two handles of one (`ClusterKernel.variables`).

ListTies: operations that only one cluster can have together, since lists pass between them. A TensorList is a variant, a
TensorArray and a stack are resources of a step. A program has them inside, and can neither take nor give one.

Source: TensorFlow compiler/jit/resource_operation_safety_analysis.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from functools import reduce
from operator import or_

from opkernel.graph import Operation
from opkernel.graph.core.edges import Edge, edges_of, origin, reached
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.effects import Effect, effect_of
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


def gives_list(op: Operation) -> bool:
    """Whether any output of an operation is a list."""
    return any(is_list(op, index) for index in range(len(op.output_types)))


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
        return set(reached(ops, lambda op: self._neighbours.get(op, ())))


class ResourceUse(Enum):
    """What an operation does with a resource that it is given."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read and write"
    """It changes a value, or calls functions, which may do anything."""


def resource_use(op: Operation) -> ResourceUse | None:
    """What an operation does with the resources that it is given, but lists; None where it is given none."""
    if DataType.DT_RESOURCE not in op.input_types or op.traits.passes_on:
        return None
    if all(is_list(*edge) for edge, one in _edges(op) if one is DataType.DT_RESOURCE):
        return None
    if op.traits.calls or op.type in op.graph.function_library:
        return ResourceUse.READ_WRITE
    only_reads = op.traits.only_reads_state or effect_of(op.signature) is not Effect.ACTS
    if only_reads:
        return ResourceUse.READ
    return ResourceUse.WRITE if op.type == "AssignVariableOp" else ResourceUse.READ_WRITE


def _edges(op: Operation) -> Iterable[tuple[Edge, DataType]]:
    """The inputs of an operation with their types."""
    return zip(edges_of(op), op.input_types, strict=True)


def _handles(op: Operation) -> set[Edge]:
    """Where the handles of the variables that an operation works on come from."""
    return {origin(edge) for edge, dtype in _edges(op) if dtype is DataType.DT_RESOURCE}


class ResourceOperations:
    """The operations on resources of a graph, and which of them are in the way of each other.

    Args:
        order: The operations, inputs before consumers, except for back edges.
    """

    def __init__(self, order: Sequence[Operation]) -> None:
        uses = [(op, resource_use(op)) for op in order]
        self.uses = {op: use for op, use in uses if use is not None}
        self._bits = {op: 1 << number for number, op in enumerate(self.uses)}
        self._unsafe: dict[Operation, int] = {}
        if self.uses:
            self._find(order)

    def _find(self, order: Sequence[Operation]) -> None:
        """Note for each operation those before it that have no place in its cluster."""
        before: dict[Operation, int] = {}
        writers: dict[Edge, int] = {}
        for op, bit in self._bits.items():
            if self.uses[op] is not ResourceUse.READ:
                for handle in _handles(op):
                    writers[handle] = writers.get(handle, 0) | bit
        for op in order:
            found = 0
            for source in (*op.edges[::2], *op.control_inputs):
                found |= before.get(source, 0)  # nothing of a back edge
            if op in self.uses:
                is_write = self.uses[op] is ResourceUse.WRITE
                others = [] if is_write else [writers.get(one, 0) for one in _handles(op)]
                self._unsafe[op] = found & reduce(or_, others, 0)
                found |= self._bits[op]
            if found:
                before[op] = found

    def may_join(self, one: Iterable[Operation], other: Iterable[Operation]) -> bool:
        """Whether the operations on resources of two clusters may be in one."""
        first, second = list(one), list(other)
        return not (self._clash(first, second) or self._clash(second, first))

    def _clash(self, one: Sequence[Operation], other: Sequence[Operation]) -> bool:
        bits = sum(self._bits[op] for op in one)
        return any(self._unsafe[op] & bits for op in other)
