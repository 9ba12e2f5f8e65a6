"""No module imports itself by way of others in another room, nor by way of more than two.

Imports within functions, for types alone and by name (`"opkernel.xla.engine"`, `"opkernel.drawing:notebook_html"`)
count, too. `opkernel.slots` imports the wiring, on top of the house, by a name that is none of these: that is what slots
are for (decision 4).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.architecture.source_code import imports_of, modules

LARGEST = 3
"""How many modules may import one another in a room."""

_MODULE = re.compile(r"(opkernel(?:\.\w+)+)(?::\w+)?")


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules that a module imports in any way."""
    yield from (source for _, source in imports_of(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and (found := _MODULE.fullmatch(str(node.value))):
            yield found[1]


@cache
def graph() -> dict[str, set[str]]:
    """The modules that each module imports."""
    found = {name: {*imports(module.tree)} - {name} for name, module in modules().items()}
    return {name: sources & found.keys() for name, sources in found.items()}


def behind(start: str) -> set[str]:
    """The modules that one imports, by way of others, too."""
    found: set[str] = set()
    stack = [start]
    while stack:
        new = graph()[stack.pop()] - found
        found |= new
        stack += new
    return found


@cache
def rings() -> list[set[str]]:
    """The sets of modules of which each imports all others, by way of some."""
    reached = {name: behind(name) for name in graph()}
    found = {
        frozenset(n for n in reached[m] if m in reached[n]) for m in reached if m in reached[m]
    }
    return [set(ring) for ring in found]


def rooms_of(ring: set[str]) -> set[str]:
    """The rooms of some modules."""
    return {".".join(name.split(".")[1:2]) for name in ring}


def test_imports_of_all_kinds_are_seen():
    code = (
        'import opkernel.files\nx = "opkernel.xla.engine"\ny = "opkernel.drawing:notebook_html"\n'
    )
    inside = "def f():\n    from opkernel.graph import Graph\n"
    assert {*imports(ast.parse(code + inside))} == {
        "opkernel.files", "opkernel.xla.engine", "opkernel.drawing", "opkernel.graph.core.graph",
    }  # fmt: skip


def test_no_ring_of_imports_goes_through_several_rooms():
    assert [sorted(ring) for ring in rings() if len(rooms_of(ring)) > 1] == []


def test_rings_of_imports_are_small():
    assert [sorted(ring) for ring in rings() if len(ring) > LARGEST] == []
