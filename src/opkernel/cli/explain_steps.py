"""What steps run in the place of a node: the node itself, a node that it became part of, a constant, or nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from opkernel.cli.signature import graph_inputs, graph_outputs, needed_operations
from opkernel.errors import OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.edges import behind
from opkernel.optimization import Change, optimize_graph
from opkernel.runtime import Session

_CONSTANT = "Plans have its value as a constant."


class NodeFate(NamedTuple):
    """The fate of a node in a step.

    Attributes:
        sentence: the fate in a sentence.
        runs_as: the nodes of the optimised graph that the node became, or became part of.
        because: the changes of optimisation to the node and to `runs_as`, each as `pass: change`.
        statements: the lines of the plan for `runs_as`.
        as_op: the op of `runs_as`; empty if there is none.
    """

    sentence: str
    runs_as: Sequence[str] = ()
    because: Sequence[str] = ()
    statements: Sequence[str] = ()
    as_op: str = ""


class Steps:
    """The steps of a graph that feed its inputs and fetch those of its outputs that need some nodes.

    Args:
        graph: the graph.
        ops: the nodes.
        fetches: the outputs of the graph; those that no node takes if None.
        providers: the kernel providers to ask; the default ones of a session if empty.
    """

    def __init__(
        self,
        graph: Graph,
        ops: Sequence[Operation],
        fetches: Sequence[Tensor] | None = None,
        providers: Sequence[str] = (),
    ) -> None:
        self._needed: set[Operation] = set()
        self._problem = self._source = ""
        try:
            needing = behind(ops)
            outputs = graph_outputs(graph) if fetches is None else fetches
            wanted = [tensor for tensor in outputs if tensor.op in needing]
            self._needed = needed_operations(wanted, [])
            inputs = [tensor for tensor in graph_inputs(graph) if tensor.op in self._needed]
            self._fed = {tensor.op for tensor in inputs}
            if not wanted:
                return
            self._optimized = optimize_graph(graph, wanted, inputs)
            with Session(graph, providers=providers or None) as session:
                self._source = session.plan(wanted, inputs).source
        except OpError as error:
            self._problem = error.message.partition("\n")[0]

    def fate(self, op: Operation, *, with_statements: bool = True) -> NodeFate:
        """What runs in the place of one of the nodes; `with_statements`, with the lines of the plan."""
        if self._problem:
            return NodeFate(f"The graph cannot be run: {self._problem}")
        if op not in self._needed:
            return NodeFate("Steps that fetch the graph's outputs do not need it.")
        if op in self._fed:
            return NodeFate("Steps are fed its value.")
        own = self._changes_of(op.name)
        kept = self._fused(op.name)
        if kept is None:
            is_constant = any(text.endswith(": is constant") for text in own)
            return NodeFate(_CONSTANT if is_constant else "Steps do without it.", because=own)
        statements = _plan_statements(self._source, kept.name) if with_statements else []
        if kept.name == op.name:
            sentence = _sentence(op, kept, is_in_group=any(map(_is_group, statements)))
        else:
            sentence = f"Steps run it as part of {kept.name} ({kept.type})."
            own = [*own, *self._changes_of(kept.name, with_name=True)]
        return NodeFate(sentence, [kept.name], own, statements, kept.type)

    @cached_property
    def _left(self) -> dict[str, Operation]:
        """The operations that optimisation leaves, by name."""
        return {one.name: one for one in self._optimized.operations}

    @cached_property
    def _wholes(self) -> dict[str, str]:
        """The nodes that others became part of."""
        changes = self._optimized.changes
        return {part: one.node for one in changes for part in one.parts if part != one.node}

    @cached_property
    def _changes(self) -> dict[str, list[Change]]:
        """The changes that passes made to each node."""
        found: dict[str, list[Change]] = {}
        for one in self._optimized.changes:
            found.setdefault(one.node, []).append(one)
        return found

    def _changes_of(self, node: str, *, with_name: bool = False) -> list[str]:
        """The changes that passes made to a node."""
        return [
            f"{one.pass_name}: {f'{node} ' if with_name else ''}{one.what}"
            for one in self._changes.get(node, ())
        ]

    def _fused(self, node: str) -> Operation | None:
        """The remaining operation that a node is or became part of; None if there is none."""
        while node not in self._left and node in self._wholes:
            node = self._wholes[node]
        return self._left.get(node)


def _sentence(op: Operation, kept: Operation, *, is_in_group: bool) -> str:
    """How a remaining operation runs."""
    if kept.type == "Const":
        return _CONSTANT
    way = "as it is" if kept.type == op.type else f"as {kept.type}"
    if is_in_group:
        return f"Steps run it {way}; together with others, tile by tile, where arrays are large."
    return f"Steps run it {way}."


def _plan_statements(source: str, node: str) -> list[str]:
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
