"""Notebooks: the drawing of a graph as HTML without scripts.

A drawing has the views of a graph and of its functions, each scope that is closed in one with its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from opkernel.drawing.labels import shortened
from opkernel.drawing.nodes import nodes_of_function, nodes_of_graph
from opkernel.drawing.scopes import Scope, scope_tree
from opkernel.drawing.style import DARK_NOTEBOOKS, style_sheet
from opkernel.drawing.svg import view_svg
from opkernel.drawing.views import ScopeFrame, ScopeIndex, draw_view
from opkernel.escaping import html_text
from opkernel.graph import Graph
from opkernel.records import dataclass


@dataclass(slots=True, eq=False)
class DrawnView:
    """A view in a drawing.

    Attributes:
        number: its number, from 0 on.
        frame: what is drawn.
        above: the view in which its scope is closed; None for a whole graph or function.
        function: the name of the function that it is of; empty for the graph.
    """

    number: int
    frame: ScopeFrame
    above: DrawnView | None
    function: str

    @property
    def scope(self) -> Scope:
        """The scope that it shows."""
        return self.frame.scope


class Drawing:
    """The views of a graph.

    Args:
        graph: the graph.

    Attributes:
        views: the view of the graph first, then the views of the functions and of closed scopes.
        inside: the views of the scopes that are closed in each view; of the graph and the functions for None.
        left_out: how many nodes stand in no view.
    """

    def __init__(self, graph: Graph) -> None:
        self.views: list[DrawnView] = []
        self.inside: dict[DrawnView | None, list[DrawnView]] = {}
        self.left_out = 0
        waiting: list[tuple[Scope, ScopeIndex, DrawnView | None, str]] = []
        bodies = {"": nodes_of_graph(graph)}
        bodies |= {
            name: nodes_of_function(function, graph)
            for name, function in graph.function_library.items()
        }
        for name, nodes in bodies.items():
            index = ScopeIndex(scope_tree(nodes))
            waiting.append((index.root, index, None, name))
        count = 0
        for scope, index, above, function in waiting:
            if count >= _MOST_BOXES:
                self.left_out += sum(1 for _ in scope.leaves())
                continue
            frame, closed = draw_view(index, scope)
            drawn = DrawnView(len(self.views), frame, above, function)
            self.views.append(drawn)
            self.inside.setdefault(above, []).append(drawn)
            count += sum(1 for _ in _shown(frame))
            waiting += [(inner, index, drawn, function) for inner in closed]


def _shown(frame: ScopeFrame) -> Iterator[object]:
    """The contents of a view: boxes, and open scopes."""
    yield frame.scope
    yield from frame.drawn
    for inner in frame.frames.values():
        yield from _shown(inner)


_MOST_BOXES = 400
_LONGEST = 80
_MORE = "<code>opkernel show MODEL --html FILE</code> draws more"


def notebook_html(graph: Graph) -> str:
    """The drawing of a graph for notebooks: no scripts; closed scopes unfold below it."""
    drawing = Drawing(graph)
    whole, *functions = drawing.inside[None]
    return (
        f"<style>{style_sheet(DARK_NOTEBOOKS)}</style>"
        f'<div class="ok-graph" style="padding:8px"><div>{_facts(graph, drawing)}</div>'
        f"{''.join(_folded(drawing, whole))}"
        f"{''.join(map(''.join, (_details(drawing, one) for one in functions)))}</div>"
    )


def _folded(drawing: Drawing, view: DrawnView) -> Iterator[str]:
    """A view, and the views of the scopes that are closed in it."""
    yield f'<div class="ok-scroll" style="max-height:640px">{view_svg(view.frame)}</div>'
    for one in drawing.inside.get(view, []):
        yield from _details(drawing, one)


def _details(drawing: Drawing, view: DrawnView) -> Iterator[str]:
    yield f'<details style="margin-left:14px"><summary>{_name(view)} '
    yield f'<span class="ok-faint">{sum(1 for _ in view.scope.leaves()):,} nodes</span></summary>'
    yield from _folded(drawing, view)
    yield "</details>"


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


def _facts(graph: Graph, drawing: Drawing) -> str:
    """The line above the drawing."""
    parts = [f"{len(graph):,} operations"]
    if functions := len(graph.function_library):
        parts.append(f"{functions:,} functions")
    if drawing.left_out:
        parts.append(f"{drawing.left_out:,} nodes in closed scopes are not drawn: {_MORE}")
    return ", ".join(parts)
