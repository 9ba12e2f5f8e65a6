"""Routes: which open scopes an edge passes, and where it touches them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from opkernel.drawing.scopes import Item, Leaf, Scope
from opkernel.graph.core.control_flow_ops import LOOP_HEAD_OPS, NEXT_ITERATION_OPS
from opkernel.records import dataclass


class ScopeIndex:
    """The places of nodes in the tree of scopes, and the edges between nodes."""

    def __init__(self, root: Scope) -> None:
        self.root = root
        self.parents: dict[Item, Scope] = {}
        self.by_name: dict[str, Leaf] = {}
        self.takers: dict[Leaf, list[tuple[Leaf, bool]]] = {}
        stack: list[Item] = [root]
        while stack:
            item = stack.pop()
            if isinstance(item, Leaf):
                self.by_name[item.node.name] = item
            else:
                self.parents.update(dict.fromkeys(item.children, item))
                stack += item.children
        for leaf in self.by_name.values():
            for source, text in leaf.node.inputs:
                if source in self.by_name:
                    takers = self.takers.setdefault(self.by_name[source], [])
                    takers.append((leaf, text.startswith("^")))

    def path(self, item: Item) -> list[Item]:
        """The scopes around an item, from the whole graph on, and the item."""
        path = [item]
        while path[-1] in self.parents:
            path.append(self.parents[path[-1]])
        return path[::-1]

    def edges_of(self, scope: Scope) -> list[tuple[Leaf, Leaf, bool]]:
        """The edges that begin or end in a scope, and whether they are control edges."""
        inside = dict.fromkeys(scope.leaves())
        edges = [
            (leaf, taker, is_control)
            for leaf in inside
            for taker, is_control in self.takers.get(leaf, ())
        ]
        for leaf in inside:
            for source, text in leaf.node.inputs:
                found = self.by_name.get(source)
                if found is not None and found not in inside:
                    edges.append((found, leaf, text.startswith("^")))
        return edges


@dataclass(slots=True)
class Stretch:
    """The lines from one thing to another in one open scope.

    Attributes:
        count: how many there are.
        is_control: whether all are control edges.
        is_back: whether all are the back edges of loops.
    """

    count: int = 0
    is_control: bool = True
    is_back: bool = True


End: TypeAlias = tuple[Item | None, Item]
"""The end of a line in an open scope: a child, or the scope's own rim (None); and the port's item."""

Stretches: TypeAlias = dict[Scope, dict[tuple[End, End], Stretch]]
"""The lines in each open scope, by their ends."""


def find_stretches(index: ScopeIndex, scope: Scope, opened: Mapping[Scope, None]) -> Stretches:
    """The lines in each open scope, by their ends."""
    found: Stretches = {}
    edges = index.edges_of(scope)
    paths = {
        leaf: _visible_path(index, scope, opened, leaf)
        for leaf in dict.fromkeys(leaf for edge in edges for leaf in edge[:2])
    }
    for source, taker, is_control in edges:
        start, end = paths[source], paths[taker]
        if start[-1] is end[-1]:
            continue
        is_back = source.node.op in NEXT_ITERATION_OPS and taker.node.op in LOOP_HEAD_OPS
        for place, ends in _route(scope, start, end):
            stretch = found.setdefault(place, {}).setdefault(ends, Stretch())
            stretch.count += 1
            stretch.is_control &= is_control
            stretch.is_back &= is_back
    return found


def _visible_path(
    index: ScopeIndex, scope: Scope, opened: Mapping[Scope, None], leaf: Leaf
) -> list[Item]:
    """The path to the item that stands for a node: the open scopes from the view on, and the item.

    For a node outside of the view the path is the item at the rim alone: the largest scope around the node
    that the view is not in.
    """
    path = index.path(leaf)
    if scope not in path:
        around = index.path(scope)
        return [next(one for one in path if one not in around)]
    path = path[path.index(scope) :]
    end = next(number for number, one in enumerate(path) if number and one not in opened)
    return path[: end + 1]


def _route(
    scope: Scope, start: Sequence[Item], end: Sequence[Item]
) -> Iterable[tuple[Scope, tuple[End, End]]]:
    """The lines of an edge, one in each open scope that it passes."""
    shared = 1
    if start[0] is scope and end[0] is scope:
        while start[shared] is end[shared]:
            shared += 1
        top = shared - 1
    else:
        top = 0
    key = start[-1]
    home = start[top] if start[0] is scope else scope
    assert isinstance(home, Scope)
    leaves: End = (None, key)
    if start[0] is scope:
        for depth in range(len(start) - 2, top, -1):
            yield _scope(start[depth]), ((start[depth + 1], key), (None, key))
        leaves = start[top + 1], key
    arrives: End = (None, end[-1])
    if end[0] is scope:
        arrives = end[top + 1], key
        for depth in range(top + 1, len(end) - 1):
            yield _scope(end[depth]), ((None, key), (end[depth + 1], key))
    yield home, (leaves, arrives)


def _scope(item: Item) -> Scope:
    assert isinstance(item, Scope)
    return item
