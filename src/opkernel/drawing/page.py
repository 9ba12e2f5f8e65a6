"""Pages: the drawing of a model as HTML that needs nothing else, no network above all.

A page holds the data of all nodes and draws the scopes that are open: it opens at once for large graphs, too. The
scripts lay out rows as `layout.py` does for notebooks, where no scripts run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opkernel.drawing.nodes import NodeFacts, nodes_of_function, nodes_of_graph
from opkernel.drawing.page_data import DrawnCluster, DrawnProgram, packed, page_data
from opkernel.drawing.style import dark_rule, resource, style_sheet
from opkernel.escaping import html_text
from opkernel.graph import Graph
from opkernel.graph.functions.function_library import functions_named_by

_LEGEND = {
    "input": "inputs, outputs",
    "product": "products",
    "state": "state",
    "flow": "control flow, calls",
    "scope": "scopes",
    "missing": "no kernel",
}
_SCRIPTS = ("page_layout.js", "page_program.js", "page.js")


def html_page(
    programs: Graph | Sequence[DrawnProgram],
    title: str,
    seconds: Mapping[str, float] | None = None,
    clusters: Sequence[DrawnCluster] = (),
) -> str:
    """A page with drawings and a search, with shapes, kernels and times.

    Args:
        programs: a graph, which is drawn with its functions; or what is drawn, the first one first.
        title: the title of the page.
        seconds: how long nodes of the graph take in a step, by name; a node in a function is named
            `call/node`. The nodes of programs have their times.
        clusters: what engines computed in a step; each is listed with its operations.
    """
    if isinstance(programs, Graph):
        programs = programs_of_graph(programs, seconds or {})
    legend = "".join(
        f'<span style="background:var(--{kind});border-color:var(--{kind}-rim)">{text}</span>'
        for kind, text in _LEGEND.items()
    )
    scripts = "\n".join(resource(name) for name in _SCRIPTS)
    return f"""<!DOCTYPE html>
<html lang="en" class="ok-graph">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{html_text(title)}</title>
<style>
{style_sheet(':root[data-theme="dark"].ok-graph')}
@media (prefers-color-scheme: dark) {{ {dark_rule(":root:not([data-theme=light]).ok-graph")} }}
{resource("page.css")}</style>
</head>
<body>
<header><h1>{html_text(title)}</h1><span id="facts" class="ok-facts"></span>
<button id="smaller" type="button" title="smaller">−</button><button id="larger" type="button" title="larger">+</button>
<button id="fit" type="button">fit</button><button id="close" type="button">fold all</button>
<button id="theme" type="button">light / dark</button></header>
<aside>
<input id="search" type="search" placeholder="Search names, ops, shapes" aria-label="Search">
<span id="count" class="ok-faint"></span>
<ul id="found"></ul>
<ul id="programs"></ul>
<ul id="clusters"></ul>
<ul id="tree"></ul>
<div class="legend">{legend}</div>
<pre id="details">Click a box to see its node. Click a scope to open it, and its title to fold it.</pre>
<p id="calls"></p>
</aside>
<main><noscript>The drawing needs JavaScript. It loads nothing from the network.</noscript></main>
<script type="application/gzip" id="data">{packed(page_data(programs, clusters))}</script>
<script>
"use strict";
{scripts}</script>
</body>
</html>
"""


def programs_of_graph(
    graph: Graph, seconds: Mapping[str, float], labels: Mapping[str, str] | None = None
) -> list[DrawnProgram]:
    """A graph and the functions of its library, to be drawn.

    Args:
        graph: the graph.
        seconds: how long nodes take in a step, by name; a node in a function is named `call/node`.
        labels: names for people of functions that have one.
    """
    facts = NodeFacts(graph.function_library, with_kernels=True)
    programs = [DrawnProgram("graph", nodes_of_graph(graph, facts, seconds))]
    programs += drawn_functions(graph, [*graph.function_library], facts, seconds, labels or {})
    return programs


def drawn_functions(
    graph: Graph,
    names: Sequence[str],
    facts: NodeFacts,
    seconds: Mapping[str, float],
    labels: Mapping[str, str],
) -> Iterator[DrawnProgram]:
    """Functions of a graph's library, to be drawn."""
    of_functions = _seconds_in_functions(graph, seconds) if seconds else {}
    for name in names:
        function = graph.function_library[name]
        nodes = nodes_of_function(function, graph, facts, of_functions.get(name, {}))
        yield DrawnProgram(labels.get(name, name), nodes, "function", name)


def _seconds_in_functions(
    graph: Graph, seconds: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """How long the nodes of each function take in all calls of a step."""
    library = graph.function_library
    prefixes = {name[: at + 1] for name in seconds for at, c in enumerate(name) if c == "/"}
    found: dict[str, dict[str, float]] = {}
    waiting = [("", [op.slim_node_def for op in graph])]
    for prefix, nodes in waiting:
        for node in nodes:
            inside = f"{prefix}{node.name}/"
            if inside not in prefixes:
                continue
            for name in functions_named_by(node):
                if name in library:
                    times = found.setdefault(name, {})
                    body = list(library[name].node_def)
                    for inner in body:
                        took = seconds.get(inside + inner.name)
                        if took is not None:
                            times[inner.name] = times.get(inner.name, 0.0) + took
                    waiting.append((inside, body))
    return found
