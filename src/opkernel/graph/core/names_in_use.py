"""NamesInUse: the names that a graph's nodes and scopes have taken.

State: `_counts` is how often a name was asked for, by the name in lower case. It holds the names
of the first `_indexed` operations, and is brought up to date before it is used, so that bulk
imports need not pay for it.

Source: TensorFlow python/framework/ops.py (Graph.unique_name).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkernel.graph.core.operation import Operation


class NamesInUse:
    """The names of a growing list of operations, and others marked as used."""

    def __init__(self, operations: Sequence[Operation]) -> None:
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
