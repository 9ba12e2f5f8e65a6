"""Views: a view draws one scope with its contents; scopes in it that are small enough are opened.

Lines are drawn between visible items. A line that enters an open scope passes its rim at a port: its route. Items outside
of the view stand at the view's own rim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from opkernel.drawing.labels import Line, label_lines, port_label, shortened, text_width
from opkernel.drawing.layout import Box, Link, lay_out
from opkernel.drawing.scopes import Item, Leaf, Scope
from opkernel.graph.core.structural_ops import MERGE_OPS, NEXT_ITERATION_OPS
from opkernel.records import dataclass, field


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
        is_back = source.node.op in NEXT_ITERATION_OPS and taker.node.op in MERGE_OPS
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
    top = 0
    if start[0] is scope and end[0] is scope:
        while start[top + 1] is end[top + 1]:
            top += 1
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


Side = Literal["top", "bottom"]
SIDES: tuple[Side, Side] = ("top", "bottom")

_MOST_BOXES = 45
"""That opening scopes may lead to."""
_TITLE = 20.0
_PADDING = 10.0
_LINE = 13.0


@dataclass(slots=True, eq=False)
class Drawn:
    """A box with text: a node or a closed scope."""

    item: Item
    box: Box
    lines: Sequence[Line]


@dataclass(slots=True, eq=False)
class Port:
    """A place where lines pass the rim; the ports of a view are drawn, with the items outside."""

    box: Box
    item: Item


@dataclass(slots=True, eq=False)
class Edge:
    """A line; where it ends at a port of an open scope, another one goes on."""

    link: Link
    has_arrow: bool
    is_control: bool
    count: int


@dataclass(slots=True, eq=False)
class ScopeFrame:
    """An open scope with its contents, laid out from its own corner.

    Attributes:
        scope: the scope.
        box: the room that it takes in the scope around it.
        is_view: whether it is a view, whose ports are drawn.
        drawn: the nodes and closed scopes in it.
        frames: the open scopes in it.
        ports: where lines pass its rim, by the item that they belong to and the side.
        edges: the lines in it.
        width: the width of the contents.
        height: the height of the contents.
    """

    scope: Scope
    box: Box
    is_view: bool = False
    drawn: dict[Item, Drawn] = field(default_factory=dict)
    frames: dict[Item, ScopeFrame] = field(default_factory=dict)
    ports: dict[tuple[Item, Side], Port] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def port(self, item: Item, side: Side) -> Port:
        """The port of an item's lines at a side; made when it is first asked for."""
        if (item, side) not in self.ports:
            box = Box(6.0, 0.0, side)
            if self.is_view:
                box = Box(text_width(port_label(item)) + 16, _LINE + 9, side)
            self.ports[item, side] = Port(box, item)
        return self.ports[item, side]


def draw_view(index: ScopeIndex, scope: Scope) -> tuple[ScopeFrame, list[Scope]]:
    """The view of a scope, and the scopes in it that stay closed."""
    opened = _to_open(scope)
    stretches = find_stretches(index, scope, opened)
    frame = _lay_out(scope, opened, stretches, is_view=True)
    shown = [item for one in (scope, *opened) for item in one.children]
    closed = [item for item in shown if isinstance(item, Scope) and item not in opened]
    return frame, closed


def _to_open(scope: Scope) -> dict[Scope, None]:
    """The scopes in one that are drawn open: the small ones, as long as there is room."""
    opened: dict[Scope, None] = {}
    count = len(scope.children)
    waiting = [child for child in scope.children if isinstance(child, Scope)]
    while waiting:
        smallest = min(waiting, key=lambda one: len(one.children))
        waiting.remove(smallest)
        if count + len(smallest.children) > _MOST_BOXES:
            break
        count += len(smallest.children)
        opened[smallest] = None
        waiting += [child for child in smallest.children if isinstance(child, Scope)]
    return opened


def _lay_out(
    scope: Scope, opened: Mapping[Scope, None], stretches: Stretches, *, is_view: bool = False
) -> ScopeFrame:
    """Lay out an open scope, after the open scopes in it; its ports are the boxes at its rim."""
    frame = ScopeFrame(scope, Box(0.0, 0.0, is_open=True), is_view=is_view)
    boxes: list[Box] = []
    for child in scope.children:
        if isinstance(child, Scope) and child in opened:
            frame.frames[child] = _lay_out(child, opened, stretches)
            boxes.append(frame.frames[child].box)
        else:
            frame.drawn[child] = _drawn(child)
            boxes.append(frame.drawn[child].box)
    for (start, end), stretch in stretches.get(scope, {}).items():
        frame.edges.append(_edge(frame, start, end, stretch))
    ports = {side: [p.box for (_, at), p in frame.ports.items() if at == side] for side in SIDES}
    every = [*ports["top"], *boxes, *ports["bottom"]]
    frame.width, frame.height = lay_out(every, [edge.link for edge in frame.edges])
    if not is_view:
        _fit(frame)
    return frame


def _edge(frame: ScopeFrame, start: End, end: End, stretch: Stretch) -> Edge:
    upper, upper_at = _touched(frame, start, "bottom")
    lower, lower_at = _touched(frame, end, "top")
    link = Link(upper, lower, upper_at, lower_at)
    if stretch.is_back and start[0] is not None and end[0] is not None:
        link.turn()
    goes_on = end[0] in frame.frames or (end[0] is None and not frame.is_view)
    return Edge(link, not goes_on, stretch.is_control, stretch.count)


def _touched(frame: ScopeFrame, end: End, side: Side) -> tuple[Box, float]:
    """The box that a line touches at a side, and where."""
    item, key = end
    if item is None:
        port = frame.port(key, "top" if side == "bottom" else "bottom")
        return port.box, port.box.width / 2
    inner = frame.frames.get(item)
    if inner is not None:
        port = inner.port(key, side)
        return inner.box, _PADDING + port.box.x + port.box.width / 2
    box = frame.drawn[item].box
    return box, box.width / 2


def _fit(frame: ScopeFrame) -> None:
    """Give an open scope the size that it takes with its title, and have lines reach its rim."""
    title = text_width(shortened(frame.scope.label), is_bold=True)
    frame.width = max(frame.width, title - _PADDING)
    frame.box.width = frame.width + 2 * _PADDING
    frame.box.height = frame.height + _TITLE + _PADDING
    for edge in frame.edges:
        points = edge.link.points
        if edge.link.upper.place == "top":
            points.insert(0, (points[0][0], -_TITLE))
        if edge.link.lower.place == "bottom":
            points.append((points[-1][0], frame.height + _PADDING))


def _drawn(item: Item) -> Drawn:
    lines = label_lines(item)
    width = max(line.width for line in lines) + 16
    return Drawn(item, Box(width, _LINE * len(lines) + 9), lines)
