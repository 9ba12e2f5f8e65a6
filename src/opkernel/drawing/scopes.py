"""Scopes: the nodes of a graph as a tree, by the slashes in their names.

Constants stand with the nodes that take them. A scope of one node becomes that node. A scope of one scope
is joined with it. A scope of many nodes is cut into parts of consecutive ones, so that each drawing stays
small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from opkernel.drawing.nodes import Node
from opkernel.records import dataclass, field

_DEEPEST = 12
"""The slashes of a name that count."""
_MOST_CHILDREN = 60
_PART = 30
_FOLDED_OPS = frozenset({"Const", "Identity"})


@dataclass(slots=True, eq=False)
class Leaf:
    """A node, with the name that it has in its scope."""

    node: Node
    label: str
    number: int


@dataclass(slots=True, eq=False)
class Scope:
    """A scope, or a part of one.

    Attributes:
        name: its full name; empty for the whole graph.
        label: the name that it has in the scope around it.
        children: the nodes and scopes in it, in the order of the graph.
        is_part: whether it is a part of a scope that has too many nodes.
    """

    name: str
    label: str
    children: list[Item] = field(default_factory=list)
    is_part: bool = False

    @property
    def number(self) -> int:
        """The place of its first node among the nodes."""
        return next((leaf.number for leaf in self.leaves()), 0)

    def leaves(self) -> Iterator[Leaf]:
        """The nodes in it, at any depth."""
        stack: list[Item] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, Leaf):
                yield item
            else:
                stack += reversed(item.children)


Item: TypeAlias = Leaf | Scope


def scope_tree(nodes: Sequence[Node]) -> Scope:
    """The scopes of nodes; nodes that are folded into others are left out."""
    kept = _fold_constants(nodes)
    root = Scope("", "")
    scopes = {"": root}
    for number, node in enumerate(kept):
        parts = node.name.split("/", _DEEPEST)
        scope = root
        for depth, part in enumerate(parts[:-1], 1):
            name = "/".join(parts[:depth])
            if name not in scopes:
                scopes[name] = Scope(name, part)
                scope.children.append(scopes[name])
            scope = scopes[name]
        scope.children.append(Leaf(node, parts[-1], number))
    _join_namesakes(scopes)
    _simplify(root)
    return root


def _fold_constants(nodes: Sequence[Node]) -> list[Node]:
    """The nodes without constants that are taken by others, which tell of them instead."""
    by_name = {node.name: node for node in nodes}
    takers: dict[str, int] = {}
    for node in nodes:
        for source, text in node.inputs:
            if not text.startswith("^"):
                takers[source] = takers.get(source, 0) + 1
    folded: dict[str, Node] = {}
    for node in nodes:
        sources = [source for source, text in node.inputs if not text.startswith("^")]
        if node.op in _FOLDED_OPS and node.name in takers and not node.functions:
            if node.op == "Const" and not sources:
                folded[node.name] = node
            elif len(sources) == 1 and sources[0] in folded:
                folded[node.name] = folded[sources[0]]
    kept = [node for node in nodes if node.name not in folded]
    for node in kept:
        for source in dict.fromkeys(source for source, _ in node.inputs if source in folded):
            dtype, _, shape = "".join(by_name[source].outputs[:1]).partition(" ")
            node.folded.append((folded[source].name, shape or dtype))
            node.folded_names += dict.fromkeys([source, folded[source].name])
    return kept


def _join_namesakes(scopes: dict[str, Scope]) -> None:
    """Put nodes that are called as a scope beside them into that scope."""
    for scope in scopes.values():
        inside = {child.name: child for child in scope.children if isinstance(child, Scope)}
        moved = [
            child
            for child in scope.children
            if isinstance(child, Leaf) and child.node.name in inside
        ]
        for leaf in moved:
            inside[leaf.node.name].children.append(leaf)
        gone = set(moved)
        scope.children = [child for child in scope.children if child not in gone]


def _simplify(root: Scope) -> None:
    """Take scopes of one child away, and cut scopes of too many."""
    order: list[Scope] = []
    stack = [root]
    while stack:
        scope = stack.pop()
        order.append(scope)
        stack += [child for child in scope.children if isinstance(child, Scope)]
    for scope in reversed(order):
        scope.children = [_without_lonely_scope(child) for child in scope.children]
    for scope in order:
        scope.children.sort(key=lambda child: child.number)
        scope.children = _in_parts(scope.name, scope.children)


def _without_lonely_scope(item: Item) -> Item:
    if isinstance(item, Leaf) or len(item.children) != 1:
        return item
    (child,) = item.children
    is_namesake = isinstance(child, Leaf) and child.node.name == item.name
    child.label = item.label if is_namesake else f"{item.label}/{child.label}"
    return child


def _first(item: Item) -> Item:
    """The first thing in a part; the thing itself if it is no part."""
    while isinstance(item, Scope) and item.is_part:
        item = item.children[0]
    return item


def _last(item: Item) -> Item:
    while isinstance(item, Scope) and item.is_part:
        item = item.children[-1]
    return item


def _in_parts(name: str, children: list[Item]) -> list[Item]:
    while len(children) > _MOST_CHILDREN:
        parts: list[Item] = []
        for start in range(0, len(children), _PART):
            some = children[start : start + _PART]
            label = f"{_first(some[0]).label} … {_last(some[-1]).label}"
            parts.append(Scope(f"{name}[{label}]", label, some, is_part=True))
        children = parts
    return children
