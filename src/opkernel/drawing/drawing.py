"""Drawing: the views of a graph and of its functions, each scope that is closed in one with its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opkernel.drawing.nodes import (
    Kernels,
    Node,
    called_functions,
    nodes_of_function,
    nodes_of_graph,
)
from opkernel.drawing.routes import ScopeIndex
from opkernel.drawing.scopes import Item, Scope, scope_tree
from opkernel.drawing.svg import view_svg
from opkernel.drawing.views import ScopeFrame, View, draw_view
from opkernel.graph import Graph
from opkernel.records import dataclass


@dataclass(slots=True, eq=False)
class DrawnView:
    """A view in a drawing.

    Attributes:
        number: its number, from 0 on.
        view: the view that is drawn.
        above: the view in which its scope is closed; None for a whole graph or function.
        function: the name of the function that it is of; empty for the graph.
    """

    number: int
    view: View
    above: DrawnView | None
    function: str

    @property
    def scope(self) -> Scope:
        """The scope that it shows."""
        return self.view.frame.scope


class Drawing:
    """The views of a graph.

    Args:
        graph: the graph.
        most_boxes: the most boxes in all views; `left_out` counts the nodes that have no view then.
        with_kernels: whether the kernels of nodes are told.
        seconds: how long nodes take in a step, by name; a node in a function is named `call/node`.

    Attributes:
        views: the view of the graph first, then the views of the functions and of closed scopes.
        left_out: how many nodes stand in no view.
        total_seconds: the time of all nodes of the graph.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        most_boxes: int,
        with_kernels: bool = False,
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        seconds = seconds or {}
        kernels = Kernels(graph.function_library) if with_kernels else None
        of_functions = _seconds_in_functions(graph, seconds) if seconds else {}
        bodies = {"": nodes_of_graph(graph, kernels, seconds)}
        for name, function in graph.function_library.items():
            times = of_functions.get(name)
            bodies[name] = nodes_of_function(function, graph, kernels, times)
        self.total_seconds = sum(node.seconds or 0.0 for node in bodies[""])
        self.views: list[DrawnView] = []
        self._view_of: dict[Scope, DrawnView] = {}
        self._home: dict[Item, DrawnView] = {}
        self._functions: dict[str, DrawnView] = {}
        self.left_out = 0
        self._draw(bodies, most_boxes)

    def svg(self, one: DrawnView, *, has_links: bool) -> str:
        """A view as SVG; with links its boxes lead to other views, `#view-3`."""
        target = self._target if has_links else _nowhere
        return view_svg(one.view, target, self.total_seconds)

    def _draw(self, bodies: Mapping[str, Sequence[Node]], most_boxes: int) -> None:
        waiting: list[tuple[Scope, ScopeIndex, DrawnView | None, str]] = []
        for name, nodes in bodies.items():
            index = ScopeIndex(scope_tree(nodes))
            waiting.append((index.root, index, None, name))
        count = 0
        for scope, index, above, function in waiting:
            if count >= most_boxes:
                self.left_out += sum(1 for _ in scope.leaves())
                continue
            drawn = DrawnView(len(self.views), draw_view(index, scope), above, function)
            self.views.append(drawn)
            self._view_of[scope] = drawn
            if above is None and function:
                self._functions[function] = drawn
            for item in _shown(drawn.view.frame):
                self._home.setdefault(item, drawn)
                count += 1
            waiting += [(inner, index, drawn, function) for inner in drawn.view.closed]

    def _target(self, item: Item, is_port: bool) -> str:
        """The view that a box leads to, by its id: of a closed scope, a function, or a node outside."""
        found: DrawnView | None = None
        if isinstance(item, Scope):
            found = self._view_of.get(item)
        elif not is_port:
            called = [self._functions[f] for f in item.node.functions if f in self._functions]
            found = called[0] if called else None
        if found is None and is_port:
            found = self._home.get(item)
        return "" if found is None else f"view-{found.number}"


def _nowhere(item: Item, is_port: bool) -> str:
    return ""


def _shown(frame: ScopeFrame) -> Iterator[Item]:
    """The contents of a view: boxes, and open scopes."""
    yield frame.scope
    yield from frame.drawn
    for inner in frame.frames.values():
        yield from _shown(inner)


def _seconds_in_functions(
    graph: Graph, seconds: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """How long the nodes of each function take in all calls of a step."""
    library = graph.function_library
    prefixes = {name[: at + 1] for name in seconds for at, c in enumerate(name) if c == "/"}
    found: dict[str, dict[str, float]] = {}
    waiting = [("", [op.node_def for op in graph])]
    for prefix, nodes in waiting:
        for node in nodes:
            inside = f"{prefix}{node.name}/"
            if inside not in prefixes:
                continue
            for name in called_functions(node):
                if name not in library:
                    continue
                times = found.setdefault(name, {})
                body = list(library[name].node_def)
                for inner in body:
                    if inside + inner.name in seconds:
                        times[inner.name] = (
                            times.get(inner.name, 0.0) + seconds[inside + inner.name]
                        )
                waiting.append((inside, body))
    return found
