"""Views as SVG: boxes, lines, and texts, in the colours of the style sheet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from opkernel.drawing.boxes import Point
from opkernel.drawing.labels import full_text, port_label, shortened
from opkernel.drawing.nodes import Node
from opkernel.drawing.scopes import Item, Leaf, Scope
from opkernel.drawing.views import Drawn, Edge, Port, ScopeFrame, View
from opkernel.escaping import html_text
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.core.structural_ops import INPUT_OPS, STRUCTURAL_OPS

Target = Callable[[Item, bool], str]
"""The id of the view that a box leads to, or a box at the rim of a view; empty if none."""

_MARGIN = 12.0
_LINE = 13.0
_ARROW = 5.0
_HOT = (0.02, 0.1, 0.3)
"""The shares of the time above which boxes are warm, hot and hottest."""


def view_svg(view: View, target: Target, total_seconds: float = 0.0) -> str:
    """The drawing of a view, as an element `svg`.

    Args:
        view: the view.
        target: gives the view that a box leads to.
        total_seconds: the time of all nodes; shares of it tell how hot a node is.
    """
    frame = view.frame
    width, height = frame.width + 2 * _MARGIN, frame.height + 2 * _MARGIN
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    writer = _Writer(target, total_seconds)
    body = "".join(writer.frame(frame, _MARGIN, _MARGIN))
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="ok-view" role="img" {size}>{body}</svg>'


class _Writer:
    """Writes the parts of a view."""

    def __init__(self, target: Target, total_seconds: float) -> None:
        self._target = target
        self._total = total_seconds

    def frame(self, frame: ScopeFrame, x: float, y: float) -> Iterator[str]:
        """The contents of an open scope, from its corner on."""
        for inner in frame.frames.values():
            yield from self._open_scope(inner, x, y)
        yield f'<g transform="translate({x:.1f} {y:.1f})">'
        for edge in frame.edges:
            yield _edge(edge)
        for port in frame.ports.values():
            if port.box.height:
                yield self._port(port)
        for drawn in frame.drawn.values():
            yield self._drawn(drawn)
        yield "</g>"

    def _open_scope(self, inner: ScopeFrame, x: float, y: float) -> Iterator[str]:
        box, name = inner.box, shortened(inner.scope.label)
        x, y = x + box.x, y + box.y
        yield (
            f'<g class="ok-frame"><title>{_text(full_text(inner.scope))}</title>'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6"/>'
        )
        yield from self.frame(inner, x + 10, y + 20)
        yield f'<text x="{x + 8:.1f}" y="{y + 14:.1f}">{html_text(name)}</text></g>'

    def _port(self, port: Port) -> str:
        text = port_label(port.item)
        lines = f'<text x="{port.box.width / 2:.1f}" y="15">{html_text(text)}</text>'
        rect = f'<rect width="{port.box.width:.1f}" height="{port.box.height:.1f}" rx="11"/>'
        return self._group("ok-port", port.item, port.box.x, port.box.y, rect + lines)

    def _drawn(self, drawn: Drawn) -> str:
        box, item = drawn.box, drawn.item
        lines = "".join(
            f'<text class="ok-{line.kind}" x="{box.width / 2:.1f}" '
            f'y="{16 + _LINE * number:.1f}">{html_text(line.text)}</text>'
            for number, line in enumerate(drawn.lines)
        )
        radius = 4 if isinstance(item, Leaf) else 9
        rect = f'<rect width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}"/>'
        kind = _kind(item.node) if isinstance(item, Leaf) else "ok-scope"
        return self._group(f"ok-node {kind}{self._heat(item)}", item, box.x, box.y, rect + lines)

    def _group(self, kind: str, item: Item, x: float, y: float, inside: str) -> str:
        names = ""
        if isinstance(item, Leaf) and "ok-node" in kind:
            names = f' data-name="{html_text(item.node.name)}"'
            if item.node.folded_names:
                folded = "\n".join(item.node.folded_names)
                names += f' data-folded="{_text(folded)}"'
        at = f'transform="translate({x:.1f} {y:.1f})"'
        group = f'<g class="{kind}" {at}{names}><title>{_text(full_text(item))}</title>{inside}</g>'
        target = self._target(item, kind == "ok-port")
        return f'<a href="#{target}">{group}</a>' if target else group

    def _heat(self, item: Item) -> str:
        nodes = [leaf.node for leaf in item.leaves()] if isinstance(item, Scope) else [item.node]
        seconds = sum(node.seconds or 0.0 for node in nodes)
        share = seconds / self._total if self._total else 0.0
        degree = sum(share >= limit for limit in _HOT)
        return f" ok-hot{degree}" if degree else ""


def _edge(edge: Edge) -> str:
    link = edge.link
    kind = "ok-edge" + " ok-control" * edge.is_control + " ok-back" * link.is_back
    points = link.points[::-1] if link.is_back else link.points
    title = f"<title>{edge.count:,} edges</title>" if edge.count > 1 else ""
    width = (
        f' stroke-width="{min(1 + edge.count.bit_length() / 4, 2.5):.1f}"' if edge.count > 1 else ""
    )
    path = f'<path class="{kind}" d="{_path(points)}"{width}>{title}</path>'
    return path + (_arrow(points, kind) if edge.has_arrow else "")


def _path(points: Sequence[Point]) -> str:
    (x, y), *_ = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        if abs(x - to_x) < 0.5:
            parts.append(f"V{to_y:.1f}")
        elif abs(y - to_y) < 0.5:
            parts.append(f"H{to_x:.1f}")
        else:
            middle = (y + to_y) / 2
            parts.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
    return "".join(parts)


def _arrow(points: Sequence[Point], kind: str) -> str:
    (_, before), (x, y) = points[-2], points[-1]
    back = -_ARROW if y >= before else _ARROW
    return (
        f'<path class="{kind} ok-arrow" d="M{x:.1f} {y:.1f}l{-_ARROW / 1.6:.1f} {back:.1f}'
        f'h{_ARROW * 1.25:.1f}z"/>'
    )


def _kind(node: Node) -> str:
    """The class of a box, which says its colour."""
    if node.is_missing:
        return "ok-missing"
    if node.op in INPUT_OPS or node.op in STRUCTURAL_OPS:
        return "ok-input"
    if node.functions or node.op in LOW_LEVEL_CONTROL_FLOW:
        return "ok-flow"
    return "ok-state" if node.op == "Const" else f"ok-{node.kind}"


def _text(text: str) -> str:
    return html_text(text, keep="\n")
