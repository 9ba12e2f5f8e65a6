"""A deadline and a missing permission are OSErrors: no handler for the system's errors takes them for one of these.

A block that calls code of the package lets OpErrors pass, by `file_errors` or a handler before that of OSError.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.source_code import Module, modules

OF_THE_SYSTEM = {"OSError", "TimeoutError", "PermissionError", "EnvironmentError", "IOError"}
PASSES_ON = {"OpError", "DeadlineExceededError"}
ALLOWED = {
    "opkernel.checkpoint.bundle_reader: _open_file": "what is wrong is told when the file is read",
    "opkernel.checkpoint.sstable: Table": "raises DataLossError, and no other OpError",
    "opkernel.cli.completion: choose_signature": "whatever is wrong, the shell gets no completions",
    "opkernel.cli.completion: ports_of": "as above",
    "opkernel.cli.limits: _told_after_first_line": "raises no OpError",
    "opkernel.cli.new: echo": "prints",
    "opkernel.cli.new: new_package": "makes texts",
    "opkernel.cli.new: one_line": "makes a text",
    "opkernel.graph.io.graph_files: scan_fields": "reads bytes in memory",
    "opkernel.plugins.discovery: _module_names": "raises InvalidArgumentError, and no other OpError",
    "opkernel.plugins.discovery: _text": "as above",
    "opkernel.plugins.discovery: plugins_in_folder": "keeps the errors of plugins as theirs",
}
"""What such a block may call, and why."""


def caught(kind: ast.expr | None) -> set[str]:
    """The names of the exceptions of a handler."""
    if isinstance(kind, ast.Tuple):
        return set().union(*map(caught, kind.elts))
    return {kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", "")}


def guarded(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The blocks whose OSErrors are handled before OpErrors."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            passed: set[str] = set()
            for handler in node.handlers:
                if caught(handler.type) & OF_THE_SYSTEM and not passed & PASSES_ON:
                    yield node.body
                passed |= caught(handler.type)
        elif isinstance(node, ast.With) and any(map(is_suppressing, node.items)):
            yield node.body


def is_suppressing(item: ast.withitem) -> bool:
    found = item.context_expr
    if not isinstance(found, ast.Call) or getattr(found.func, "id", "") != "suppress":
        return False
    return bool(set().union(*map(caught, found.args)) & OF_THE_SYSTEM)


def of_the_package(module: Module) -> set[str]:
    """The names in a module that stand for code of the package; its messages are code of protobuf."""
    own = {n.name for n in ast.walk(module.tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    imports = (n for n in ast.walk(module.tree) if isinstance(n, ast.ImportFrom))
    taken = {
        alias.asname or alias.name
        for one in imports
        if (one.module or "").startswith("opkernel") and one.module != "opkernel.proto"
        for alias in one.names
    }
    return own | taken


def calls(body: list[ast.stmt], names: set[str]) -> Iterator[str]:
    """What a block calls of the package."""
    for node in (found for statement in body for found in ast.walk(statement)):
        if isinstance(node, ast.Yield | ast.YieldFrom):
            yield "yield"
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in names:
                yield called.id
            if isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == "self":
                yield called.attr


def test_handlers_of_the_systems_errors_let_ours_pass() -> None:
    found = {
        f"{name}: {call}"
        for name, module in modules().items()
        for body in guarded(module.tree)
        for call in calls(body, of_the_package(module))
    }
    assert sorted(found - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - found) == []
