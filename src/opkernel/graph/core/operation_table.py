"""OperationTable: the operations of a graph in their order and by name, the names that are taken, collections, consumers.

Nodes that are imported are put in order: inputs first, and otherwise as they were given.

State: `_operations` in the order of making, which is topological but for the back edges of loops. `Fanout` tells which
operations take the outputs of each one: `_fanout` holds, for each producer, the edges to the first `_indexed` operations
in order, as (consumer, input index), with CONTROL_SLOT for control edges. The first question adds the other edges, so
that bulk imports need not pay for them.

Source: TensorFlow python/framework/ops.py (Graph.unique_name), core/common_runtime/graph_constructor.cc.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Generic

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.graph.core.node import AnyNode, Node
from opkernel.graph.core.scopes import Scopes
from opkernel.graph.core.structural_ops import MERGE_OPS, NEXT_ITERATION_OPS
from opkernel.graph.core.tensor_name import CONTROL_SLOT, is_valid_node_name

_NOTHING: Mapping[Any, Sequence[Any]] = MappingProxyType({})

_MAX_NAMED = 8
"""So many nodes of a cycle does the error name."""


def order_by_inputs(
    ops: list[AnyNode], behind: Mapping[AnyNode, Sequence[AnyNode]] = _NOTHING
) -> list[AnyNode]:
    """The operations with each after its inputs; as far as that leaves a choice, as they stand.

    Edges from NextIteration to Merge may lead back. Takes linear time where the operations stand in
    order already, and n log n at worst.

    Args:
        ops: linked operations, each with its position as its number. They may have inputs that are
            not among them; those do not count.
        behind: others that an operation comes after.

    Raises:
        InvalidArgumentError: operations depend on each other in a cycle.
    """
    if all(
        source.number < op.number or not _is_among(ops, source)
        for op in ops
        for source in _awaited(op, behind)
    ):
        return ops
    pending = [0] * len(ops)
    dependents: list[list[int]] = [[] for _ in ops]
    for op in ops:
        for source in _awaited(op, behind):
            if _is_among(ops, source):
                pending[op.number] += 1
                dependents[source.number].append(op.number)
    ready = [position for position, count in enumerate(pending) if count == 0]
    order = []
    while ready:
        position = heapq.heappop(ready)
        order.append(ops[position])
        for dependent in dependents[position]:
            pending[dependent] -= 1
            if pending[dependent] == 0:
                heapq.heappush(ready, dependent)
    if len(order) < len(ops):
        raise _cycle_error([op for op, count in zip(ops, pending, strict=True) if count], behind)
    return order


def _awaited(op: AnyNode, behind: Mapping[AnyNode, Sequence[AnyNode]]) -> Iterator[AnyNode]:
    """The operations that must come before it: all that it has edges from but back edges, and others."""
    back_edges_may_enter = op.slim_message.op in MERGE_OPS
    for source in op.edges[::2]:
        if not (back_edges_may_enter and source.slim_message.op in NEXT_ITERATION_OPS):
            yield source
    yield from op.control_inputs
    yield from behind.get(op, ())


def _is_among(ops: Sequence[Node], op: Node) -> bool:
    return op.number < len(ops) and ops[op.number] is op


def _cycle_error(
    stuck: list[AnyNode], behind: Mapping[AnyNode, Sequence[AnyNode]]
) -> InvalidArgumentError:
    """The error that names the operations of a cycle, in the order in which they take each other."""
    waiting, op = set(stuck), stuck[0]
    path: dict[AnyNode, None] = {}
    while op not in path:
        path[op] = None
        op = next(s for s in _awaited(op, behind) if s in waiting)
    ops = list(path)
    cycle = ops[ops.index(op) :][::-1]
    first = cycle.index(min(cycle, key=lambda op: op.number))
    names = [repr(op.name) for op in cycle[first:] + cycle[:first]]
    if len(names) > _MAX_NAMED:
        names[_MAX_NAMED:] = ["..."]
    return InvalidArgumentError(
        f"{len(stuck)} nodes in a cycle or behind one ({', '.join(names)}); only edges from "
        f"NextIteration to Merge may lead back",
        node=cycle[first].name,
    )


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


class OperationTable(Generic[AnyNode]):
    """The operations of a graph, and its collections.

    Attributes:
        finalized: whether the graph can no longer be changed.
        edits: how often inputs or attrs of its operations have changed. Programs compiled before the last
            change are stale.
        by_name: its operations by name.
        names: the names that nodes and scopes have taken.
        name_counter: counts the names that rewriting gives.
        fanout: the consumers of each operation's outputs.
        lock: the lock that code holds while it changes the graph, or reads much of it.
        scopes: the scopes of new operations in this thread.
        before_change: called with each operation that is about to be changed.
    """

    def __init__(self) -> None:
        self.finalized = False
        self.edits = 0
        self._operations: list[AnyNode] = []
        self.by_name: dict[str, AnyNode] = {}
        self.names = NamesInUse(self._operations)
        self.name_counter = itertools.count()
        self.fanout = Fanout(self._operations)
        self.lock = threading.RLock()
        self.scopes: Scopes[AnyNode] = Scopes()
        self._collections: dict[Any, list[Any]] = {}
        self.before_change: list[Callable[[AnyNode], None]] = []

    def __len__(self) -> int:
        """How many operations it has; a graph without any is true all the same."""
        return len(self._operations)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[AnyNode]:
        """Its operations, in the order in which they were made."""
        return iter(self.get_operations())

    @property
    def version(self) -> int:
        """How many operations it has had; changes whenever one is added."""
        return len(self._operations)

    def get_operations(self) -> list[AnyNode]:
        """Its operations, in the order in which they were made."""
        return list(self._operations)

    def append(self, ops: Sequence[AnyNode]) -> None:
        """Take in new operations, which are numbered and linked."""
        named = {op.name: op for op in ops}
        self.by_name |= named  # no call divides the two, and so no interrupt
        self._operations += ops

    def changing(self, op: AnyNode) -> None:
        """Note that an operation is about to be changed; call it before each change.

        Raises:
            FailedPreconditionError: the graph is finalized.
            InvalidArgumentError: the operation was removed.
        """
        self.check_not_finalized()
        self.check_own(op, "changed node")
        for note in self.before_change:
            note(op)

    def put_in_order(self, ops: list[AnyNode]) -> None:
        """Let these be its operations, each after its inputs and control inputs.

        Raises:
            InvalidArgumentError: they depend on each other in a cycle.
        """
        for number, op in enumerate(ops):
            op.number = number
        self.hold(order_by_inputs(ops))

    def rename(self, names: Mapping[AnyNode, str]) -> None:
        """Give operations other names, which are free."""
        for op in names:
            del self.by_name[op.name]
        for op, name in names.items():
            op.name = name
            self.by_name[name] = op
            self.names.mark(name)

    def hold(self, ops: Iterable[AnyNode]) -> None:
        """Let these be its operations, in this order."""
        self._operations[:] = ops
        for number, op in enumerate(self._operations):
            op.number = number
        self.by_name = {op.name: op for op in self._operations}
        self.fanout = Fanout(self._operations)
        self.names.index_again()

    def finalize(self) -> None:
        """Make any further change an error."""
        self.finalized = True

    def check_not_finalized(self) -> None:
        """Raise FailedPreconditionError where the graph can no longer be changed."""
        if self.finalized:
            raise FailedPreconditionError("Graph is finalized and cannot be modified.")

    def check_own(self, op: Node, what: str, of: str = "") -> None:
        """Raise InvalidArgumentError where an operation is of another graph, or was removed.

        Args:
            op: the operation.
            what: the role that it is to have.
            of: the node that it is to have this role for.
        """
        if self.by_name.get(op.name) is not op:
            what = f"{what} of {of!r}" if of else what
            raise InvalidArgumentError(
                f"{op.name!r} cannot be a {what}: it is not an element of this graph.", node=op.name
            )

    # Names of new operations.

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """A name in the current name scope that no operation and no scope has.

        Names that differ in nothing but case count as the same.
        """
        with self.lock:
            name = f"{self.scopes.name}/{name}" if self.scopes.name else name
            return self.names.unique(name, mark_as_used=mark_as_used)

    def name_scope(self, name: str | None) -> AbstractContextManager[str]:
        """Put the names of new operations under `name`, made unique.

        A name that ends in a slash enters that scope again; none at all leaves every scope.
        """
        if not name:
            return self.scopes.in_name("")
        stem = name.removesuffix("/")
        if not is_valid_node_name(stem, allow_internal=bool(self.scopes.name)):
            raise InvalidArgumentError(f"'{name}' is not a valid scope name")
        return self.scopes.in_name(stem if name.endswith("/") else self.unique_name(stem))

    def _new_name(self, name: str) -> str:
        stem = name.removesuffix("/")
        if not is_valid_node_name(stem, allow_internal=bool(self.scopes.name)):
            raise InvalidArgumentError(f"'{name}' is not a valid node name", node=name)
        if not name.endswith("/"):
            return self.unique_name(name)
        if stem in self.by_name:
            raise InvalidArgumentError(f"Duplicate node name in graph: '{stem}'", node=stem)
        self.names.mark(stem)
        return stem

    # Collections.

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Add a value to a collection."""
        self.check_not_finalized()
        self._collections.setdefault(name, []).append(value)

    def get_collection(self, name: Any) -> list[Any]:
        """The values of a collection, in the order of adding."""
        return list(self._collections.get(name, []))

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself; changes to the list are changes of the graph."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        """The names of the collections that are not empty."""
        return [name for name, values in self._collections.items() if values]


class NamesInUse:
    """The names of a growing list of operations, and others marked as used.

    State: `_counts` is how often a name was asked for, by the name in lower case. It holds the names
    of the first `_indexed` operations, and is brought up to date before it is used, so that bulk
    imports need not pay for it.
    """

    def __init__(self, operations: Sequence[Node]) -> None:
        self._operations = operations
        self._counts: dict[str, int] = {}
        self._indexed = 0

    def copy(self) -> NamesInUse:
        """The names that are taken at present."""
        names = NamesInUse(self._operations)
        names._counts, names._indexed = self._counts.copy(), self._indexed
        return names

    def index_again(self) -> None:
        """The list of operations has changed otherwise than by growing."""
        self._indexed = 0

    def mark(self, name: str) -> None:
        """Count a name as used."""
        self._counts.setdefault(name.lower(), 1)

    def unique(self, name: str, *, mark_as_used: bool) -> str:
        """The name, or the first `name_N` that is free; names that differ in case are the same."""
        self._update()
        key = name.lower()
        count = self._counts.get(key, 0)
        if mark_as_used:
            self._counts[key] = count + 1
        if count == 0:
            return name
        while f"{key}_{count}" in self._counts:
            count += 1
        if mark_as_used:
            self._counts[f"{key}_{count}"] = 1
        return f"{name}_{count}"

    def _update(self) -> None:
        for position in range(self._indexed, len(self._operations)):
            self._counts.setdefault(self._operations[position].name.lower(), 1)
        self._indexed = len(self._operations)
