"""OperationTable: the operations of a graph in their order and by name, the names that are taken, collections.

State: `_operations` in the order of making, which is topological but for the back edges of loops.

Source: TensorFlow python/framework/ops.py (Graph.unique_name).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.graph.core.fanout import Fanout
from opkernel.graph.core.node import AnyNode, Node
from opkernel.graph.core.node_order import order_by_inputs
from opkernel.graph.core.scopes import Scopes
from opkernel.graph.core.tensor_name import is_valid_node_name


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
