"""Views as SVG: boxes, lines, and texts, in the colours of the style sheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from opkernel.drawing.labels import box_kind, full_text, port_label, shortened
from opkernel.drawing.layout import Point
from opkernel.drawing.scopes import Item, Leaf
from opkernel.drawing.views import Drawn, Edge, Port, ScopeFrame
from opkernel.escaping import html_text

_MARGIN = 12.0
_LINE = 13.0
_ARROW = 5.0


def view_svg(frame: ScopeFrame) -> str:
    """The drawing of a view, as an element `svg`."""
    width, height = frame.width + 2 * _MARGIN, frame.height + 2 * _MARGIN
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    body = "".join(_frame(frame, _MARGIN, _MARGIN))
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="ok-view" role="img" {size}>{body}</svg>'


def _frame(frame: ScopeFrame, x: float, y: float) -> Iterator[str]:
    """The contents of an open scope, from its corner on."""
    for inner in frame.frames.values():
        yield from _open_scope(inner, x, y)
    yield f'<g transform="translate({x:.1f} {y:.1f})">'
    for edge in frame.edges:
        yield _edge(edge)
    for port in frame.ports.values():
        if port.box.height:
            yield _port(port)
    for drawn in frame.drawn.values():
        yield _drawn(drawn)
    yield "</g>"


def _open_scope(inner: ScopeFrame, x: float, y: float) -> Iterator[str]:
    box, name = inner.box, shortened(inner.scope.label)
    x, y = x + box.x, y + box.y
    yield (
        f'<g class="ok-frame"><title>{_text(full_text(inner.scope))}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6"/>'
    )
    yield from _frame(inner, x + 10, y + 20)
    yield f'<text x="{x + 8:.1f}" y="{y + 14:.1f}">{html_text(name)}</text></g>'


def _port(port: Port) -> str:
    text = port_label(port.item)
    lines = f'<text x="{port.box.width / 2:.1f}" y="15">{html_text(text)}</text>'
    rect = f'<rect width="{port.box.width:.1f}" height="{port.box.height:.1f}" rx="11"/>'
    return _group("ok-port", port.item, port.box.x, port.box.y, rect + lines)


def _drawn(drawn: Drawn) -> str:
    box, item = drawn.box, drawn.item
    lines = "".join(
        f'<text class="ok-{line.kind}" x="{box.width / 2:.1f}" '
        f'y="{16 + _LINE * number:.1f}">{html_text(line.text)}</text>'
        for number, line in enumerate(drawn.lines)
    )
    radius = 4 if isinstance(item, Leaf) else 9
    rect = f'<rect width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}"/>'
    kind = f"ok-{box_kind(item.node)}" if isinstance(item, Leaf) else "ok-scope"
    return _group(f"ok-node {kind}", item, box.x, box.y, rect + lines)


def _group(kind: str, item: Item, x: float, y: float, inside: str) -> str:
    at = f'transform="translate({x:.1f} {y:.1f})"'
    return f'<g class="{kind}" {at}><title>{_text(full_text(item))}</title>{inside}</g>'


def _edge(edge: Edge) -> str:
    link = edge.link
    kind = "ok-edge" + " ok-control" * edge.is_control + " ok-back" * link.is_back
    points = link.points[::-1] if link.is_back else link.points
    title = f"<title>{edge.count:,} edges</title>" if edge.count > 1 else ""
    width = min(1 + edge.count.bit_length() / 4, 2.5)
    stroke = f' stroke-width="{width:.1f}"' if edge.count > 1 else ""
    path = f'<path class="{kind}" d="{_path(points)}"{stroke}>{title}</path>'
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


def _text(text: str) -> str:
    return html_text(text, keep="\n")
