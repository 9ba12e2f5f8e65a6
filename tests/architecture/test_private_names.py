"""A name with a leading underscore is used in the folder that defines it, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.architecture.source_code import Module, imports_of, modules

FOREIGN_NAMES = {
    "_asdict": "NamedTuple's own",
    "_fields": "NamedTuple's own",
    "_replace": "NamedTuple's own",
    "_current_frames": "of sys",
    "_exit": "of C",
    "_ZSt13set_terminatePFvvE": "of C++: std::set_terminate",
    "_getframe": "of sys",
    "_SwitchN": "the name of an op, which `nodes` has as a method",
}
"""Names with an underscore that are none of ours to rename."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name != "_"


@cache
def definers() -> dict[str, set[str]]:
    """The folders in which a private name is defined: as a function, class, attribute or slot."""
    found: dict[str, set[str]] = {}
    for module in modules().values():
        for name in definitions(module.tree):
            found.setdefault(name, set()).add(module.folder)
    return found


def definitions(tree: ast.AST) -> Iterator[str]:
    """The private names that a module defines."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                names = [name]
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr, ctx=ast.Store()):
                names = [attr]
            case ast.Name(id=name, ctx=ast.Store()):
                names = [name]
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                names = [str(c.value) for c in ast.walk(value) if isinstance(c, ast.Constant)]
            case _:
                names = []
        yield from filter(is_private, names)


class PrivateUses(ast.NodeVisitor):
    """Finds the private names that a module uses and that are none of its folder.

    What an object's class is, is told by the annotations of arguments, and by attributes that are set
    from these; where they do not tell, the name must be defined in the folder.

    Attributes:
        found: where and what, for the message.
    """

    def __init__(self, module: Module) -> None:
        self.found: list[str] = []
        self._module = module
        self._elsewhere = {
            name
            for name, source in imports_of(module.tree)
            if modules()[source].folder != module.folder
        }
        self._own = set(definitions(module.tree))
        self._foreign: set[str] = set()  # expressions whose class is from elsewhere
        self.visit(module.tree)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if (node.module or "").split(".")[0] == "opkernel":
            self._note(node, *[alias.name for alias in node.names if is_private(alias.name)])

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer = self._foreign
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        own = {argument.arg for argument in arguments}
        self._foreign = (outer - own) | {
            a.arg for a in arguments if a.annotation and self._is_foreign(a.annotation)
        }
        self.generic_visit(node)
        self._foreign = outer | {e for e in self._foreign if e.startswith("self.")}

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in self._foreign:
            self._foreign |= {ast.unparse(target) for target in node.targets}
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if is_private(node.attr) and not self._may_use(ast.unparse(node.value), node.attr):
            self._note(node, ast.unparse(node))

    def _may_use(self, owner: str, name: str) -> bool:
        if name in FOREIGN_NAMES or owner in self._foreign:
            return name in FOREIGN_NAMES
        homes = definers().get(name, set()) | (
            {self._module.folder} if name in self._own else set()
        )
        if owner in (
            "self",
            "cls",
            "super()",
        ):  # the class may be one of the room that it goes on from
            return self._module.folder.split("/")[0] in {folder.split("/")[0] for folder in homes}
        return self._module.folder in homes

    def _is_foreign(self, annotation: ast.expr) -> bool:
        names = {n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)} - {"None"}
        return len(names) == 1 and names <= self._elsewhere

    def _note(self, node: ast.stmt | ast.expr, *uses: str) -> None:
        self.found += [f"{self._module.path}:{node.lineno}: {use}" for use in uses]


def test_private_names_stay_in_their_folder() -> None:
    found = [use for module in modules().values() for use in PrivateUses(module).found]
    assert found == []


OF_A_GRAPH_THAT_IS_KEPT = """
from opkernel.graph.core.graph import Graph

class Kept:
    _lock = None

    def __init__(self, graph: Graph):
        self._graph = graph

    def lock(self):
        return self._graph._lock
"""


@pytest.mark.parametrize(
    "code",
    [
        "from opkernel.graph.core.graph import _kinds",
        "def f(graph): return graph._operations",
        "class A(Graph):\n  def f(self): return self._operations",
        OF_A_GRAPH_THAT_IS_KEPT,
    ],
)
def test_uses_of_private_names_are_found(code: str) -> None:
    assert PrivateUses(Module("opkernel.ops.new", Path("ops/new.py"), ast.parse(code))).found


def test_own_private_names_may_be_used() -> None:
    code = OF_A_GRAPH_THAT_IS_KEPT.replace("graph: Graph", "graph: Kept")
    assert not PrivateUses(
        Module("opkernel.device.new", Path("device/new.py"), ast.parse(code))
    ).found
