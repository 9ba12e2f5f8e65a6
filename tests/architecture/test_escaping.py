"""Text of models goes into documents through the functions of `escaping`, and by no other way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.source_code import modules

WRITERS = {
    "click.echo": {"opkernel.cli.output": "escapes what it prints"},
    "click.secho": {},
    "click.echo_via_pager": {},
    "click.style": {"opkernel.cli.output": "after it has escaped the text"},
    "click.confirm": {},
    "click.prompt": {},
    "print": {},
    "sys.stdout": {
        "opkernel.cli.output": "asks whether it is a terminal",
        "opkernel.ops.logging_ops": "PrintV2, which escapes what a terminal gets",
    },
    "sys.stderr": {
        "opkernel.cli.limits": "asks whether it is a terminal",
        "opkernel.ops.logging_ops": "Print and PrintV2, which escape what a terminal gets",
    },
    "json.dumps": {
        "opkernel.escaping": "the function for JSON",
        "opkernel.cli.exported_ops": "a script of its own, whose answer only opkernel reads",
        "opkernel.cli.op_sources": "asks that script",
    },
    "json.dump": {},
    "np.savez": {},
    "np.savez_compressed": {},
    "numpy.savez": {},
}
"""What writes text, or names, as they stand; the modules that may, and why."""

IMPORTED = {"click": "echo secho style", "json": "dumps dump", "sys": "stdout stderr"}
"""Writers that could hide behind a name of their own."""


def used(tree: ast.AST) -> Iterator[str]:
    """The writers that a module uses."""
    for one in ast.walk(tree):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            yield f"{one.value.id}.{one.attr}"
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            yield one.func.id
        elif isinstance(one, ast.ImportFrom):
            names = IMPORTED.get(one.module or "", "").split()
            yield from (f"{one.module}.{a.name}" for a in one.names if a.name in names)


def test_nothing_is_printed_or_written_past_the_functions_for_it() -> None:
    found = [
        f"{name}: {writer}"
        for name, module in modules().items()
        for writer in sorted({*used(module.tree)})
        if name not in WRITERS.get(writer, {name: ""})
    ]
    assert found == []


def test_those_that_may_do() -> None:
    """A permission that nobody needs is none."""
    wanted = {(writer, name) for writer, names in WRITERS.items() for name in names}
    found = {(w, name) for name, module in modules().items() for w in used(module.tree)}
    assert wanted - found == set()


def test_terminal_text_is_made_in_one_place() -> None:
    """`TerminalText("...")` passes for escaped: only `shown` and `one_line` may say so of a text."""
    found = [
        f"{name}:{one.lineno}"
        for name, module in modules().items()
        for one in ast.walk(module.tree)
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Name)
        and one.func.id == "TerminalText"
        and name != "opkernel.cli.output"
    ]
    assert found == []
