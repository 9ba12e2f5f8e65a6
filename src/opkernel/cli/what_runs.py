"""The fate of a node in a step: it runs as it is, as part of another, or not at all; and why.

The step feeds the inputs of the graph and fetches the outputs that need the node.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from opkernel.cli.signature import graph_inputs, graph_outputs
from opkernel.errors import OpError
from opkernel.graph import Graph, Operation
from opkernel.graph.edit.prune import prune_and_order
from opkernel.optimization import OptimizedGraph, optimize_graph
from opkernel.records import dataclass
from opkernel.runtime import Session

_CONSTANT = "Plans have its value as a constant."


@dataclass(frozen=True)
class WhatRuns:
    """The fate of a node in a step.

    Attributes:
        sentence: the fate in a sentence.
        runs_as: the nodes of the optimised graph that the node became, or became part of.
        because: the changes of optimisation to the node and to `runs_as`, each as `pass: change`.
        statements: the lines of the plan for `runs_as`.
    """

    sentence: str
    runs_as: Sequence[str] = ()
    because: Sequence[str] = ()
    statements: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        names = "sentence", "runs_as", "because", "statements"
        return {name: getattr(self, name) for name in names}


def what_runs(graph: Graph, node: str, providers: Sequence[str] = ()) -> WhatRuns | None:
    """The fate of a node of a graph; None for a node of a function.

    Args:
        graph: the graph.
        node: the name of the node.
        providers: the kernel providers to ask; the default ones of a session if empty.
    """
    op = graph.by_name.get(node)
    if op is None:
        return None
    try:
        behind = _behind(op)
        fetches = [tensor for tensor in graph_outputs(graph) if tensor.op in behind]
        if not fetches:
            return WhatRuns("Steps that fetch the graph's outputs do not need it.")
        needed = prune_and_order(fetches, [], [])
        inputs = [tensor for tensor in graph_inputs(graph) if tensor.op in needed]
        if op in {tensor.op for tensor in inputs}:
            return WhatRuns("Steps are fed its value.")
        optimized = optimize_graph(graph, fetches, inputs)
        with Session(graph, providers=providers or None) as session:
            source = session.plan(fetches, inputs).source
    except OpError as error:
        return WhatRuns(f"The graph cannot be run: {error.message.partition(chr(10))[0]}")
    return _found(op, optimized, source)


def _behind(op: Operation) -> set[Operation]:
    """An operation and all that need it."""
    found = {op}
    waiting = [op]
    while waiting:
        new = {consumer for consumer, _ in waiting.pop().consumer_edges()} - found
        found |= new
        waiting += new
    return found


def _found(op: Operation, optimized: OptimizedGraph, source: str) -> WhatRuns:
    left = {one.name: one for one in optimized.operations}
    own = _changes(optimized, op.name)
    if op.name in left:
        statements = _statements(source, op.name)
        sentence = _sentence(op, left[op.name], is_in_group=any(map(_is_group, statements)))
        return WhatRuns(sentence, [op.name], own, statements)
    fused = _fused(op.name, optimized, left)
    if fused is None:
        is_constant = any(text.endswith(": is constant") for text in own)
        return WhatRuns(_CONSTANT if is_constant else "Steps do without it.", because=own)
    sentence = f"Steps run it as part of {fused.name} ({fused.type})."
    because = [*own, *_changes(optimized, fused.name, with_name=True)]
    return WhatRuns(sentence, [fused.name], because, _statements(source, fused.name))


def _fused(node: str, optimized: OptimizedGraph, left: Mapping[str, Operation]) -> Operation | None:
    """The remaining operation that a node became part of; None if there is none."""
    wholes = {part: one.node for one in optimized.changes for part in one.parts if part != one.node}
    while node in wholes:
        node = wholes[node]
    return left.get(node)


def _sentence(op: Operation, kept: Operation, *, is_in_group: bool) -> str:
    """How a remaining operation runs."""
    if kept.type == "Const":
        return _CONSTANT
    way = "as it is" if kept.type == op.type else f"as {kept.type}"
    if is_in_group:
        return f"Steps run it {way}; together with others, tile by tile, where arrays are large."
    return f"Steps run it {way}."


def _changes(optimized: OptimizedGraph, node: str, *, with_name: bool = False) -> list[str]:
    """The changes that passes made to a node."""
    return [
        f"{one.pass_name}: {f'{node} ' if with_name else ''}{one.what}"
        for one in optimized.changes
        if one.node == node
    ]


def _statements(source: str, node: str) -> list[str]:
    """The lines of a plan for a node; first the line of its group, where it is computed in one."""
    found = []
    group, group_indent = "", 0
    for line in source.splitlines():
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if _is_group(text):
            group, group_indent = text, indent
            continue
        if indent <= group_indent and not text.startswith(("if ", "else:")):
            group = ""
        if text.endswith(f"  # {node!r}") or text.startswith((f"{node} = ", f"{node!r} = ")):
            found += [group, text] if group else [text]
    return found


def _is_group(statement: str) -> bool:
    """Whether a line of a plan computes nodes together, where they are big."""
    return re.search(r" else None  # \d+ nodes$", statement) is not None
