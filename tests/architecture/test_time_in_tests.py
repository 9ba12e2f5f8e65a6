"""No test measures how long something takes: what is fast here is slow on a busy machine, and says nothing."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
SHORTEST_GUARD_S = 60
"""A limit on a wait is there for what hangs, and not for what is slow."""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, node


def limits(call: ast.Call) -> Iterator[float]:
    """The seconds that a call of `run`, `join` and the like waits at most."""
    for keyword in call.keywords:
        value = getattr(keyword.value, "value", None)
        if keyword.arg == "timeout" and isinstance(value, int | float):
            yield value


def test_no_test_reads_a_stopwatch() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{call.lineno}"
        for path in TESTS.rglob("*.py")
        for name, call in calls(ast.parse(path.read_text("utf-8")))
        if name in ("perf_counter", "perf_counter_ns")
    ]
    assert found == []


def test_limits_on_waits_are_for_what_hangs() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{call.lineno}"
        for path in TESTS.rglob("*.py")
        for name, call in calls(ast.parse(path.read_text("utf-8")))
        if name in ("run", "join", "communicate", "check_output", "wait", "result", "Barrier")
        and any(seconds < SHORTEST_GUARD_S for seconds in limits(call))
    ]
    assert found == []
