"""Pages and notebooks: the drawing of a graph as HTML that needs nothing else, no network above all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files

from opkernel.drawing.drawing import Drawing, DrawnView
from opkernel.drawing.labels import shortened, time_text
from opkernel.escaping import html_text
from opkernel.graph import Graph

_MOST_IN_PAGE = 10_000
_MOST_IN_NOTEBOOK = 400
_LONGEST = 80
_DARK_NOTEBOOKS = '[data-jp-theme-light="false"] .ok-graph, .vscode-dark .ok-graph'
_MORE = "<code>opkernel show MODEL --html FILE</code> draws more"
_LEGEND = {
    "input": "inputs, outputs",
    "product": "products",
    "state": "state",
    "flow": "control flow, calls",
    "scope": "scopes",
    "missing": "no kernel",
}


def html_page(graph: Graph, title: str, seconds: Mapping[str, float] | None = None) -> str:
    """A page with the drawing of a graph and a search, with shapes, kernels and times.

    Args:
        graph: the graph.
        title: the title of the page.
        seconds: how long nodes take in a step, by name; a node in a function is named `call/node`.
    """
    drawing = Drawing(graph, most_boxes=_MOST_IN_PAGE, with_kernels=True, seconds=seconds)
    sections = "\n".join(_section(drawing, view) for view in drawing.views)
    tree = "".join(
        f'<li style="padding-left:{min(depth, 12) + 1}em">{_link(view)}</li>'
        for view, depth in _tree(drawing)
    )
    legend = "".join(
        f'<span style="background:var(--{kind});border-color:var(--{kind}-rim)">{text}</span>'
        for kind, text in _LEGEND.items()
    )
    return f"""<!DOCTYPE html>
<html lang="en" class="ok-graph">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{html_text(title)}</title>
<style>
{_style(':root[data-theme="dark"].ok-graph')}
@media (prefers-color-scheme: dark) {{ {_dark(":root:not([data-theme=light]).ok-graph")} }}
{_file("page.css")}</style>
</head>
<body>
<header><h1>{html_text(title)}</h1><span class="ok-facts">{_facts(graph, drawing, "they are too many")}</span>
<button id="fit" type="button">fit to width</button><button id="theme" type="button">light / dark</button></header>
<aside>
<input id="search" type="search" placeholder="Search names, ops, shapes" aria-label="Search">
<span id="count" class="ok-faint"></span>
<ul id="found"></ul>
<ul id="tree">{tree}</ul>
<div class="legend">{legend}</div>
<pre id="details">Click a box to see its node.</pre>
</aside>
<main>
{sections}
</main>
<script>
{_file("page.js")}</script>
</body>
</html>
"""


def notebook_html(graph: Graph) -> str:
    """The drawing of a graph for notebooks: no scripts; closed scopes unfold below it."""
    drawing = Drawing(graph, most_boxes=_MOST_IN_NOTEBOOK)
    inner: dict[DrawnView | None, list[DrawnView]] = {}
    for view in drawing.views:
        inner.setdefault(view.above, []).append(view)
    whole, *functions = inner[None]
    return (
        f"<style>{_style(_DARK_NOTEBOOKS)}</style>"
        f'<div class="ok-graph" style="padding:8px"><div>{_facts(graph, drawing, _MORE)}</div>'
        f"{''.join(_folded(drawing, whole, inner))}"
        f"{''.join(map(''.join, (_details(drawing, one, inner) for one in functions)))}</div>"
    )


def _folded(
    drawing: Drawing, view: DrawnView, inner: Mapping[DrawnView | None, list[DrawnView]]
) -> Iterator[str]:
    """A view, and the views of the scopes that are closed in it."""
    yield f'<div class="ok-scroll" style="max-height:640px">{drawing.svg(view, has_links=False)}</div>'
    for one in inner.get(view, []):
        yield from _details(drawing, one, inner)


def _details(
    drawing: Drawing, view: DrawnView, inner: Mapping[DrawnView | None, list[DrawnView]]
) -> Iterator[str]:
    yield f'<details style="margin-left:14px"><summary>{_name(view)} '
    yield f'<span class="ok-faint">{sum(1 for _ in view.scope.leaves()):,} nodes</span></summary>'
    yield from _folded(drawing, view, inner)
    yield "</details>"


def _section(drawing: Drawing, view: DrawnView) -> str:
    path = [view]
    while path[-1].above is not None:
        path.append(path[-1].above)
    heading = " › ".join(_link(one) for one in reversed(path))
    return (
        f'<section id="view-{view.number}"><h2>{heading}</h2>'
        f'<div class="ok-scroll">{drawing.svg(view, has_links=True)}</div></section>'
    )


def _tree(drawing: Drawing) -> Iterator[tuple[DrawnView, int]]:
    """The views and their depths, each view before the views of the scopes in it."""
    inner: dict[DrawnView | None, list[DrawnView]] = {}
    for view in drawing.views:
        inner.setdefault(view.above, []).append(view)
    stack = [(view, 0) for view in reversed(inner[None])]
    while stack:
        view, depth = stack.pop()
        yield view, depth
        stack += [(one, depth + 1) for one in reversed(inner.get(view, []))]


def _link(view: DrawnView) -> str:
    return f'<a href="#view-{view.number}">{_name(view)}</a>'


def _name(view: DrawnView) -> str:
    """The title of a view: the name of its scope within the scope of the view above it."""
    if view.above is None:
        name = f"function {shortened(view.function, _LONGEST)}" if view.function else "graph"
    elif view.scope.is_part:
        name = shortened(view.scope.label, _LONGEST)
    else:
        around: DrawnView | None = view.above
        while around is not None and around.scope.is_part:
            around = around.above
        outer = "" if around is None else f"{around.scope.name}/"
        name = f"{shortened(view.scope.name.removeprefix(outer), _LONGEST)}/"
    return html_text(name)


def _facts(graph: Graph, drawing: Drawing, more: str) -> str:
    """The line above the drawing; `more` tells how to see nodes that are not drawn."""
    parts = [f"{len(graph):,} operations"]
    if functions := len(graph.function_library):
        parts.append(f"{functions:,} functions")
    if drawing.total_seconds:
        parts.append(f"{time_text(drawing.total_seconds)} a step")
    if drawing.left_out:
        parts.append(f"{drawing.left_out:,} nodes in closed scopes are not drawn: {more}")
    return ", ".join(parts)


def _style(dark: str) -> str:
    """The style sheet of drawings, with the selector of where they are dark."""
    return _file("drawing.css").replace("DARK", dark)


def _dark(selector: str) -> str:
    """The rule for dark drawings alone, for another selector."""
    text = _file("drawing.css")
    start = text.index("DARK")
    return text[start : text.index("}", start) + 1].replace("DARK", selector)


def _file(name: str) -> str:
    return (files("opkernel.drawing") / name).read_text("utf-8")
