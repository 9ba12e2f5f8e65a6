"""No module imports itself by way of others, but where this is argued for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.source_code import imports_of, modules

RINGS = {
    "graph": (
        32,
        "a Graph, its Operations and Tensors hold each other; what a Graph infers knows them",
    ),
    "kernel": (15, "a kernel is constructed from, and runs in, contexts that know kernels"),
    "opdef": (
        3,
        "an op's registration has a shape function, whose context reads the op's full types",
    ),
    "device": (
        2,
        "`allocate` asks the allocator of the thread, which checks sizes as `allocate` does",
    ),
    "runtime/traces": (3, "a node's statistics go to their collector, which makes them"),
    "runtime/program": (2, "kernels with state stand in the segment that their caches share"),
    "runtime/calls": (3, "a function that is instantiated calls others of its library"),
}
"""The rings of imports that there are, all closed by an import for types alone: size, and why."""


def rings() -> list[set[str]]:
    """The sets of modules of which each imports all others, by way of some."""
    graph = {
        name: {source for _, source in imports_at_load(module.tree)} - {name}
        for name, module in modules().items()
    }
    reached = {name: behind(name, graph) for name in graph}
    found = {frozenset(n for n in reached[m] if m in reached[n]) for m in graph if m in reached[m]}
    return [set(ring) for ring in found]


def imports_at_load(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The imports that are not put off to when a function runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom):
            yield from imports_of(node)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports_at_load(node)


def behind(start: str, graph: dict[str, set[str]]) -> set[str]:
    """The modules that one imports, by way of others, too."""
    found: set[str] = set()
    stack = [start]
    while stack:
        new = graph[stack.pop()] - found
        found |= new
        stack += new
    return found


def test_there_are_no_other_rings_of_imports_than_those_that_are_argued_for() -> None:
    for ring in rings():
        paths = [modules()[name].path.as_posix() for name in ring]
        places = [place for place in RINGS if all(path.startswith(f"{place}/") for path in paths)]
        assert places, f"a ring of imports: {sorted(paths)}"
        size = RINGS[places[0]][0]
        assert len(ring) <= size, f"a ring of {len(ring)} modules, not {size}: {sorted(paths)}"
