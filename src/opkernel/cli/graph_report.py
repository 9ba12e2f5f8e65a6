"""How `opkernel show` prints what is known of a graph."""

from __future__ import annotations

from typing import Any

from opkernel.cli.library import HINT
from opkernel.cli.output import (
    bad,
    counted,
    echo,
    one_line,
    print_json,
    print_table,
    print_text,
    size_text,
)
from opkernel.cli.shapes import shape_text
from opkernel.types import PartialTensorShape

_TENSORS = {
    "inputs": "Inputs",
    "unused_inputs": "Inputs that no output needs",
    "outputs": "Outputs",
}


def print_graph(facts: dict[str, Any]) -> None:
    """Print the facts of a graph for people."""
    is_graph = "not_runnable" in facts
    missing: dict[str, str] = facts.get("not_runnable", {})
    print_text(f"{one_line(facts['file'])}: {facts['kind']}, {size_text(facts['file_bytes'])}")
    print_text(
        f"{counted(facts['nodes'], 'node')}, {counted(facts['functions'], 'function')}, "
        f"{size_text(facts['weight_bytes'])} of weights, producer version {facts['producer']}"
    )
    for what in filter(facts.__contains__, _TENSORS):
        rows = [
            (t["name"], t["dtype"], shape_text(PartialTensorShape(t["shape"]))) for t in facts[what]
        ]
        echo()
        print_table(_TENSORS[what], ("tensor", "type", "shape"), rows)
    echo()
    print_ops(facts)
    if "contradiction" in facts:
        echo()
        print_text(f"The shapes contradict each other: {facts['contradiction']}")
    for refused in facts.get("refused", ()) if is_graph else ():
        echo()
        print_text(f"A session of TensorFlow refuses it: {refused}")
    if is_graph:
        echo()
        print_runnable(missing)


def print_ops(facts: dict[str, Any]) -> None:
    """Print the table of ops."""
    missing: dict[str, str] = facts.get("not_runnable", {})
    rows = [(op, count, bad(missing.get(op, ""))) for op, count in facts["ops"].items()]
    print_table("Ops", ("op", "nodes", "not runnable"), rows)


def print_runnable(missing: dict[str, str]) -> None:
    """Print whether every op can run."""
    if not missing:
        echo("Every op can run.")
        return
    hint = f" (unknown ops: {HINT})" if "unknown op" in missing.values() else ""
    print_text(f"Not runnable yet: {', '.join(map(one_line, sorted(missing)))}{hint}")


def show_ops(facts: dict[str, Any], as_json: bool) -> None:
    """Print the ops alone."""
    if as_json:
        missing = facts.get("not_runnable", {})
        ops = facts["ops"].items()
        print_json([{"op": op, "nodes": n, "not_runnable": missing.get(op)} for op, n in ops])
    else:
        print_ops(facts)
