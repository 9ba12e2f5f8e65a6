"""The nodes that `opkernel explain MODEL NAME` explains, and the table of several of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from opkernel.cli.explain_steps import Steps
from opkernel.cli.kernel_choice import KernelChoice
from opkernel.cli.model import Model, load_model
from opkernel.cli.nodes import nodes_of, run_by, slim
from opkernel.cli.output import counted, one_line, print_table, print_text
from opkernel.errors import NotFoundError, OpError
from opkernel.graph import Graph, Tensor
from opkernel.interrupts import contextmanager
from opkernel.messages import did_you_mean
from opkernel.opdef import add_defaults_to_node_def
from opkernel.proto import NodeDef

if TYPE_CHECKING:
    from opkernel.cli.model_program import ModelProgram

_MOST = 20


class ExplainedGraph(NamedTuple):
    """A graph whose nodes are explained.

    Attributes:
        graph: the graph.
        nodes: its nodes by their names, and the nodes of its functions as FUNCTION/NODE.
        fetches: the outputs that steps fetch; those that no node takes if None.
    """

    graph: Graph
    nodes: Mapping[str, NodeDef]
    fetches: Sequence[Tensor] | None = None

    def named(self, name: str) -> list[str]:
        """The node of a name; else the nodes of the op of this name; else those whose names end so."""
        if name in self.nodes:
            return [name]
        of_op = [node for node, node_def in self.nodes.items() if node_def.op == name]
        return of_op or self.ending(name)

    def ending(self, name: str, op: str | None = None) -> list[str]:
        """The nodes whose names end with a `/` and a name; of an op, if one is given."""
        end = f"/{name}"
        return [n for n, one in self.nodes.items() if n.endswith(end) and op in (None, one.op)]

    def steps(self, nodes: Sequence[str], providers: Sequence[str]) -> Steps:
        """The steps that run in the place of some nodes."""
        by_name = self.graph.by_name
        ops = [by_name[node] for node in nodes if node in by_name]
        return Steps(self.graph, ops, self.fetches, providers)

    def fate(
        self, steps: Steps, node: str, *, with_statements: bool = True
    ) -> dict[str, Any] | None:
        """The facts of what runs in the place of a node; None for a node of a function."""
        op = self.graph.by_name.get(node)
        return None if op is None else steps.fate(op, with_statements=with_statements)._asdict()


@contextmanager
def explained_nodes(model: Model, name: str) -> Iterator[tuple[ExplainedGraph, list[str]]]:
    """The nodes that a name means in a model, and the graph that has them; it is to be used within the block.

    In a SavedModel the name is looked for in the program of the signature, and then in the graph of the file.

    Raises:
        NotFoundError: there is neither a node nor an op of the name.
        OpError: the model cannot be loaded.
    """
    with _program(model) as opened:
        program = None
        if opened is not None:
            program = ExplainedGraph(opened.inlined.graph, opened.nodes, opened.inlined.fetches)
        named = [] if program is None else program.named(name)
        yield (program, named) if program and named else _in_file(model, name, program)


def _program(model: Model) -> AbstractContextManager[ModelProgram | None]:
    """The program of a SavedModel's signature, where there is one."""
    if not model.is_saved_model:
        return nullcontext()
    from opkernel.cli.model_program import open_signature  # graphs need none of it

    return open_signature(model)


def _in_file(
    model: Model, name: str, program: ExplainedGraph | None
) -> tuple[ExplainedGraph, list[str]]:
    """The nodes of a name in the graph of the file; in the program those of a function that is inlined there."""
    graph = load_model(model)
    explained = ExplainedGraph(graph, dict(nodes_of(graph)))
    found = explained.named(name)
    if not found:
        known = dict.fromkeys(explained.nodes)
        for one in (explained, program):
            known |= dict.fromkeys(node.op for node in one.nodes.values()) if one else {}
        raise NotFoundError(f"the graph has no node or op {name!r}{did_you_mean(name, known)}")
    if program is not None and len(found) == 1 and found[0] not in graph.by_name:
        node = explained.nodes[found[0]]
        inlined = program.ending(node.name, node.op)
        if inlined:
            return program, inlined
    return explained, found


def several_facts(
    explained: ExplainedGraph, name: str, nodes: Sequence[str], steps: Steps, device: str
) -> dict[str, Any]:
    """The facts of several nodes: of each its kernel and what steps run in its place.

    Only the first twenty are listed; `kinds` counts all of them.
    """
    rows = []
    kinds = Counter[tuple[str, str | None, str]]()
    for node in nodes:
        fate = explained.fate(steps, node, with_statements=False)
        op, kernel = explained.nodes[node].op, _kernel(explained, node, device)
        rows.append({"node": node, "op": op, "kernel": kernel, "in_steps": fate})
        kinds[op, kernel, _way(fate)] += 1
    names = ("op", "kernel", "in_steps", "count")
    return {
        "name": name,
        "count": len(rows),
        "kinds": [dict(zip(names, (*kind, n), strict=True)) for kind, n in kinds.most_common()],
        "nodes": rows[:_MOST],
    }


def _kernel(explained: ExplainedGraph, node: str, device: str) -> str | None:
    """The kernel of a node on devices of a type; None where it has none."""
    graph = explained.graph
    light = slim(explained.nodes[node])
    if run_by(graph, light.op) != "kernel":
        return None
    ops = graph.function_library
    with suppress(OpError):
        add_defaults_to_node_def(light, ops.look_up_op_def(light.op))
        chosen = KernelChoice(light, ops, device).chosen
        return None if chosen is None else chosen.registration.class_name
    return None


def _way(fate: Mapping[str, Any] | None) -> str:
    """How steps run a node, in the words that nodes share."""
    if fate is None:
        return "within its function"
    return f"as {fate['as_op']}" if fate["as_op"] else str(fate["sentence"]).rstrip(".")


def print_several(facts: dict[str, Any]) -> None:
    """Print the facts of several nodes for people."""
    title = one_line(f"{facts['name']}: {counted(facts['count'], 'node')}")
    rows = [
        (one["count"], one["op"], one["kernel"] or "none", one["in_steps"])
        for one in facts["kinds"]
    ]
    print_table(title, ("nodes", "op", "kernel", "in steps"), rows, ("nodes",))
    nodes = [(one["node"], _place_in_steps(one)) for one in facts["nodes"]]
    hidden = facts["count"] - len(nodes)
    print_table(f"The first {len(nodes)}" if hidden else "Nodes", ("node", "in steps"), nodes)
    print_text("`opkernel explain MODEL NODE` tells all of one.")


def _place_in_steps(row: Mapping[str, Any]) -> str:
    """How steps run a node; the name of the node that it became part of."""
    fate = row["in_steps"]
    whole = next(iter(fate["runs_as"]), row["node"]) if fate else row["node"]
    return _way(fate) if whole == row["node"] else f"{_way(fate)}, in {whole}"
