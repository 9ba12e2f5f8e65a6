"""The modules of the package as syntax trees, and what each imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["PACKAGE", "Module", "imports_of", "modules"]

PACKAGE = Path(__file__).resolve().parent.parent.parent / "src" / "opkernel"


@dataclass(frozen=True, eq=False)
class Module:
    """A module of the package.

    Attributes:
        name: its name, from `opkernel` on.
        path: its file, as it stands in the package.
        tree: its syntax tree.
    """

    name: str
    path: Path
    tree: ast.Module

    @property
    def folder(self) -> str:
        """The folder that it is in: modules of one folder are friends."""
        return self.path.parent.as_posix()


@cache
def modules() -> dict[str, Module]:
    """All modules of the package, by name."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE)
        name = ".".join(["opkernel", *path.with_suffix("").parts]).removesuffix(".__init__")
        found[name] = Module(name, path, ast.parse(file.read_text(encoding="utf-8")))
    return found


@cache
def exports(package: str) -> dict[str, tuple[str, str]]:
    """Where the names of a package stand that loads them when they are first used."""
    stub = PACKAGE / modules()[package].path.with_suffix(".pyi")
    if stub.name != "__init__.pyi" or not stub.exists():
        return {}
    imports = [
        n for n in ast.walk(ast.parse(stub.read_text("utf-8"))) if isinstance(n, ast.ImportFrom)
    ]
    return {a.asname or a.name: (n.module or "", a.name) for n in imports for a in n.names}


def source_of(module: str, name: str) -> str:
    """The module that `from module import name` takes a name from."""
    while module in modules() and f"{module}.{name}" not in modules() and name in exports(module):
        module, name = exports(module)[name]
    return f"{module}.{name}" if f"{module}.{name}" in modules() else module


def imports_of(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a piece of code imports, each with the module of the package it stands in."""
    for found in ast.walk(node):
        if isinstance(found, ast.ImportFrom):
            for alias in found.names:
                source = source_of(found.module or "", alias.name)
                if source in modules():
                    yield alias.asname or alias.name, source
