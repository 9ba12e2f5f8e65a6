"""Views: what is drawn at a time, a scope with what is in it, scopes that are small enough opened.

Lines are drawn between what can be seen. A line that enters an open scope passes its rim at a port; what
is outside of the view stands at the view's own rim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from opkernel.drawing.boxes import Box, Link
from opkernel.drawing.labels import Line, label_lines, port_label, shortened, text_width
from opkernel.drawing.layout import lay_out
from opkernel.drawing.scopes import Item, Leaf, Scope
from opkernel.graph.core.control_flow_ops import LOOP_HEAD_OPS, NEXT_ITERATION_OPS
from opkernel.records import dataclass, field

__all__ = ["Drawn", "Edge", "Frame", "Port", "ScopeIndex", "View", "draw_view"]

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
    """Where lines pass the rim; of a view it is drawn, with what is outside."""

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
class Frame:
    """An open scope: what is in it, laid out from its own corner.

    Attributes:
        scope: the scope.
        box: the room that it takes in the scope around it.
        drawn: the nodes and closed scopes in it.
        frames: the open scopes in it.
        ports: where lines pass its rim, by whose they are and the side.
        edges: the lines in it.
        width: of what is in it.
        height: of what is in it.
    """

    scope: Scope
    box: Box
    drawn: list[Drawn] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    ports: dict[tuple[Item, Side], Port] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def port(self, item: Item, side: Side, *, is_view: bool = False) -> Port:
        """The port of an item's lines at a side; made when it is first asked for."""
        if (item, side) not in self.ports:
            box = Box(6.0, 0.0, side)
            if is_view:
                box = Box(text_width(port_label(item)) + 16, _LINE + 9, side)
            self.ports[item, side] = Port(box, item)
        return self.ports[item, side]


@dataclass(slots=True, eq=False)
class View:
    """A scope that is drawn, with the scopes in it that stay closed."""

    frame: Frame
    closed: list[Scope]


class ScopeIndex:
    """Where nodes stand in the tree of scopes, and which node takes what."""

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
class _Stretch:
    """The lines from one thing to another in one open scope.

    Attributes:
        count: how many there are.
        is_control: whether all are control edges.
        is_back: whether all are the back edges of loops.
    """

    count: int = 0
    is_control: bool = True
    is_back: bool = True


_End = tuple[Item | None, Item]
"""What a line touches in an open scope: a child, the scope's own rim (None); and whose port it is."""


def draw_view(index: ScopeIndex, scope: Scope) -> View:
    """The view of a scope."""
    opened = _to_open(scope)
    stretches = _stretches(index, scope, opened)
    frame = _lay_out(scope, opened, stretches, is_view=True)
    shown = [item for one in (scope, *opened) for item in one.children]
    closed = [item for item in shown if isinstance(item, Scope) and item not in opened]
    return View(frame, closed)


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


def _stretches(
    index: ScopeIndex, scope: Scope, opened: Mapping[Scope, None]
) -> dict[Scope, dict[tuple[_End, _End], _Stretch]]:
    """What lines there are in each open scope, from which end to which."""
    found: dict[Scope, dict[tuple[_End, _End], _Stretch]] = {}
    shown: dict[Leaf, list[Item]] = {}

    def visible_path(leaf: Leaf) -> list[Item]:
        """The open scopes around what stands for a node, from the view on, and that itself."""
        if leaf not in shown:
            path = index.path(leaf)
            if scope in path:
                path = path[path.index(scope) :]
                end = next(n for n, one in enumerate(path) if n and one not in opened)
                path = path[: end + 1]
            else:
                around = index.path(scope)
                path = [next(one for one in path if one not in around)]
            shown[leaf] = path
        return shown[leaf]

    for source, taker, is_control in index.edges_of(scope):
        start, end = visible_path(source), visible_path(taker)
        if start[-1] is end[-1]:
            continue
        is_back = source.node.op in NEXT_ITERATION_OPS and taker.node.op in LOOP_HEAD_OPS
        for place, ends in _route(scope, start, end):
            stretch = found.setdefault(place, {}).setdefault(ends, _Stretch())
            stretch.count += 1
            stretch.is_control &= is_control
            stretch.is_back &= is_back
    return found


def _route(
    scope: Scope, start: Sequence[Item], end: Sequence[Item]
) -> Iterable[tuple[Scope, tuple[_End, _End]]]:
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
    leaves: _End = (None, key)
    if start[0] is scope:
        for depth in range(len(start) - 2, top, -1):
            yield _scope(start[depth]), ((start[depth + 1], key), (None, key))
        leaves = start[top + 1], key
    arrives: _End = (None, end[-1])
    if end[0] is scope:
        arrives = end[top + 1], key
        for depth in range(top + 1, len(end) - 1):
            yield _scope(end[depth]), ((None, key), (end[depth + 1], key))
    yield home, (leaves, arrives)


def _scope(item: Item) -> Scope:
    assert isinstance(item, Scope)
    return item


def _lay_out(
    scope: Scope,
    opened: Mapping[Scope, None],
    stretches: Mapping[Scope, Mapping[tuple[_End, _End], _Stretch]],
    *,
    is_view: bool = False,
) -> Frame:
    """Lay out an open scope, after those in it; its ports are the boxes at its rim."""
    frame = Frame(scope, Box(0.0, 0.0, is_open=True))
    boxes: dict[Item, Box] = {}
    inner: dict[Item, Frame] = {}
    for child in scope.children:
        if isinstance(child, Scope) and child in opened:
            inner[child] = _lay_out(child, opened, stretches)
            boxes[child] = inner[child].box
        else:
            drawn = _drawn(child)
            boxes[child] = drawn.box
            frame.drawn.append(drawn)
    frame.frames = list(inner.values())

    def touched(end: _End, side: Side) -> tuple[Box, float]:
        """The box that a line touches, and where."""
        item, key = end
        if item is None:
            port = frame.port(key, "top" if side == "bottom" else "bottom", is_view=is_view)
            return port.box, port.box.width / 2
        if item in inner:
            port = inner[item].port(key, side)
            return boxes[item], _PADDING + port.box.x + port.box.width / 2
        return boxes[item], boxes[item].width / 2

    for (start, end), stretch in stretches.get(scope, {}).items():
        upper, upper_at = touched(start, "bottom")
        lower, lower_at = touched(end, "top")
        ends_here = end[0] not in inner and (is_view or end[0] is not None)
        link = Link(upper, lower, upper_at, lower_at)
        if stretch.is_back and start[0] is not None and end[0] is not None:
            link.turn()
        frame.edges.append(Edge(link, ends_here, stretch.is_control, stretch.count))
    ports = {side: [p.box for (_, at), p in frame.ports.items() if at == side] for side in SIDES}
    every = [*ports["top"], *boxes.values(), *ports["bottom"]]
    frame.width, frame.height = lay_out(every, [edge.link for edge in frame.edges])
    if not is_view:
        _fit(frame)
    return frame


def _fit(frame: Frame) -> None:
    """Give an open scope the size that it takes with its title, and have lines reach its rim."""
    frame.width = max(
        frame.width, text_width(shortened(frame.scope.label), is_bold=True) - _PADDING
    )
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
