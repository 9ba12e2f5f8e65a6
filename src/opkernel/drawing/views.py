"""Views: a view draws one scope with its contents; scopes in it that are small enough are opened.

Lines are drawn between visible items. A line that enters an open scope passes its rim at a port. Items
outside of the view stand at the view's own rim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from opkernel.drawing.boxes import Box, Link
from opkernel.drawing.labels import Line, label_lines, port_label, shortened, text_width
from opkernel.drawing.layout import lay_out
from opkernel.drawing.routes import End, ScopeIndex, Stretch, Stretches, find_stretches
from opkernel.drawing.scopes import Item, Scope
from opkernel.records import dataclass, field

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


@dataclass(slots=True, eq=False)
class View:
    """A scope that is drawn, with the scopes in it that stay closed."""

    frame: ScopeFrame
    closed: list[Scope]


def draw_view(index: ScopeIndex, scope: Scope) -> View:
    """The view of a scope."""
    opened = _to_open(scope)
    stretches = find_stretches(index, scope, opened)
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
