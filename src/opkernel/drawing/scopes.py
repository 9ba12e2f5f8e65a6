"""Scopes: the nodes of a graph, or of the body of a function, as a tree by the slashes in their names.

Constants, and variables that are only read, stand with the nodes that take them. A scope of one node becomes that node. A scope
of one scope is joined with it. Children of a large scope whose names share a beginning with a number, such as `block_1_conv` and
`block_1_relu`, form a layer. A scope that stays too large is cut into parts of consecutive children.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from opkernel.drawing.nodes import Node
from opkernel.graph.core.structural_ops import ARG_OPS, RETVAL_OPS, VARIABLE_OPS
from opkernel.records import dataclass, field

_DEEPEST = 12
"""The slashes of a name that count."""
_MOST_CHILDREN = 60
_MOST_WITHOUT_LAYERS = 20
_DEEPEST_LAYERS = 3
_LAYER = re.compile(r"(.*?\d)[_./-].")
"""The beginning of a name that the nodes of a layer share."""
_FOLDED_OPS = frozenset({"Const", "Identity", "ReadVariableOp"})


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
        is_layer: whether it holds the children of a scope whose names begin alike.
    """

    name: str
    label: str
    children: list[Item] = field(default_factory=list)
    is_part: bool = False
    is_layer: bool = False

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


def scope_tree(nodes: Sequence[Node], most_children: int = _MOST_CHILDREN) -> Scope:
    """The scopes of nodes; nodes that are folded into others are left out.

    Args:
        nodes: the nodes; `folded` of those that are kept is filled.
        most_children: the most children of a scope: one with more is cut into parts.
    """
    kept = _fold_constants(nodes)
    root = Scope("", "")
    scopes = {"": root}
    for number, node in enumerate(kept):
        parts = (node.path or node.name).split("/", _DEEPEST)
        scope = root
        for depth, part in enumerate(parts[:-1], 1):
            name = "/".join(parts[:depth])
            if name not in scopes:
                scopes[name] = Scope(name, part)
                scope.children.append(scopes[name])
            scope = scopes[name]
        scope.children.append(Leaf(node, parts[-1], number))
    _join_namesakes(scopes)
    _simplify(root, most_children)
    return root


def _fold_constants(nodes: Sequence[Node]) -> list[Node]:
    """The nodes without constants and variables that are taken by others, which name them instead."""
    by_name = {node.name: node for node in nodes}
    takers: dict[str, list[Node]] = {}
    awaited: set[str] = set()
    for node in nodes:
        for source, text in node.inputs:
            if text.startswith("^"):
                awaited.add(source)
            else:
                takers.setdefault(source, []).append(node)
    folded: dict[str, Node] = {}
    for node in nodes:
        is_read = node.only_reads and node.name in awaited
        root = _folded_root(node, takers.get(node.name, []), folded, is_read=is_read)
        if root is not None:
            folded[node.name] = root
    kept = [node for node in nodes if node.name not in folded]
    for node in kept:
        taken = [source for source, text in node.inputs if not text.startswith("^")]
        for source in dict.fromkeys(source for source in taken if source in folded):
            dtype, _, shape = "".join(by_name[source].outputs[:1]).partition(" ")
            node.folded.append((folded[source].name, shape or dtype))
    return kept


def _folded_root(
    node: Node, takers: Sequence[Node], folded: Mapping[str, Node], *, is_read: bool
) -> Node | None:
    """The constant or variable that a node is or reads, if the nodes that take it name it instead.

    Args:
        node: the node.
        takers: the nodes that take tensors of it.
        folded: the roots of nodes before it.
        is_read: whether it reads a variable and others wait for it.
    """
    sources = [source for source, text in node.inputs if not text.startswith("^")]
    if node.op == "NoOp" and node.inputs and all(name in folded for name, _ in node.inputs):
        return node  # it waits for reads of variables
    if not (takers or is_read) or node.functions:
        return None
    if not sources:
        is_variable = node.op in VARIABLE_OPS or (
            node.op in ARG_OPS and _is_resource(node) and not node.is_port
        )
        is_quiet = is_variable and all(map(_leaves_alone, takers))
        return node if node.op == "Const" or is_quiet else None
    if node.op in _FOLDED_OPS and len(sources) == 1:
        return folded.get(sources[0])
    return None


def _leaves_alone(taker: Node) -> bool:
    """Whether a node that takes a variable reads it, passes it on or gives it to functions."""
    passes_on = taker.op == "Identity" or taker.op in RETVAL_OPS
    return passes_on or taker.only_reads or bool(taker.functions)


def _is_resource(node: Node) -> bool:
    return "".join(node.outputs[:1]).startswith("resource")


def _join_namesakes(scopes: dict[str, Scope]) -> None:
    """Put nodes that are called as a scope beside them into that scope."""
    for scope in scopes.values():
        inside = {child.name: child for child in scope.children if isinstance(child, Scope)}
        moved = [
            child
            for child in scope.children
            if isinstance(child, Leaf) and (child.node.path or child.node.name) in inside
        ]
        for leaf in moved:
            inside[leaf.node.path or leaf.node.name].children.append(leaf)
        gone = set(moved)
        scope.children = [child for child in scope.children if child not in gone]


def _simplify(root: Scope, most_children: int) -> None:
    """Take scopes of one child away, and divide scopes of too many."""
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
        _divide(scope, most_children)


def _divide(scope: Scope, most_children: int) -> None:
    """Put the children of a large scope into layers, and if there are still too many, into parts."""
    waiting = [(scope, 0, 0)]
    for one, at, depth in waiting:
        if len(one.children) > _MOST_WITHOUT_LAYERS and depth < _DEEPEST_LAYERS:
            one.children = _in_layers(one, at)
            waiting += [
                (child, len(child.label) + 1, depth + 1)
                for child in one.children
                if isinstance(child, Scope) and child.is_layer
            ]
        one.children = _in_parts(one.name, one.children, most_children)


def _in_layers(scope: Scope, at: int) -> list[Item]:
    """The children of a scope, consecutive ones with the same beginning of their names in one scope.

    Consecutive children lead to no node outside from which others of them come: layers make no cycles.

    Args:
        scope: the scope.
        at: how many characters all names have in common because the scope is itself a layer.
    """
    children: list[Item] = []
    for name, run in groupby(scope.children, lambda child: _layer_name(child.label, at)):
        some = [*run]
        if name and len(some) > 1:
            some = [Scope(f"{scope.name}/{name}", name, some, is_layer=True)]
        children += some
    return children if len(children) > 1 else scope.children


def _layer_name(label: str, at: int) -> str:
    found = _LAYER.match(label, at)
    return label[: found.end(1)] if found else ""


def _without_lonely_scope(item: Item) -> Item:
    if isinstance(item, Leaf) or len(item.children) != 1:
        return item
    (child,) = item.children
    is_namesake = isinstance(child, Leaf) and (child.node.path or child.node.name) == item.name
    child.label = item.label if is_namesake else f"{item.label}/{child.label}"
    return child


def _end(item: Item, which: int) -> Item:
    """The first (0) or last (-1) thing in a part; the thing itself if it is no part."""
    while isinstance(item, Scope) and item.is_part:
        item = item.children[which]
    return item


def _in_parts(name: str, children: list[Item], most_children: int) -> list[Item]:
    while len(children) > most_children:
        parts: list[Item] = []
        size = most_children // 2
        for start in range(0, len(children), size):
            some = children[start : start + size]
            label = f"{_end(some[0], 0).label} … {_end(some[-1], -1).label}"
            parts.append(Scope(f"{name}[{label}]", label, some, is_part=True))
        children = parts
    return children
