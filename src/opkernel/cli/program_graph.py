"""ProgramGraph: the graph of what runs of a model, with constants for variables and the bodies of functions for their calls.

`declared_program` makes it from the model's file: it reads no values, runs nothing, and takes the ops that cannot run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from opkernel.cli.meta_graph_needs import MetaGraphNeeds
from opkernel.cli.output import counted, one_line, print_text
from opkernel.cli.show_graph import op_counts, running_facts
from opkernel.cli.signature import (
    Element,
    choose_signature,
    graph_inputs,
    needed_operations,
    ports_of,
    split_elements,
)
from opkernel.errors import DeadlineExceededError, NotFoundError, OpError, UnimplementedError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import VARIABLE_OPS
from opkernel.graph.edit.inline_function import is_seam
from opkernel.graph.freezing.body import HeldValue
from opkernel.graph.freezing.freeze_graph import ReadingPart
from opkernel.optimization import OptimizedGraph, optimize_graph
from opkernel.proto import MetaGraphDef, NodeDef, TensorProto
from opkernel.records import dataclass
from opkernel.runtime.adaptive.variables import frozen_part
from opkernel.runtime.program.request import Subgraph

_INLINING = "function_inlining"


@dataclass(frozen=True, eq=False)
class ProgramGraph:
    """The graph of what runs: of a SavedModel a signature, of a graph all of its outputs.

    Attributes:
        signature: the signature; empty for a graph.
        graph: the graph of the model, as the file has it.
        fetches: what steps compute.
        part: the graph of the program before any pass: variables that no node assigns to are constants.
    """

    signature: str
    graph: Graph
    fetches: Sequence[Element]
    part: Subgraph

    @cached_property
    def inlined(self) -> OptimizedGraph:
        """The graph of the program with the bodies of functions in the place of calls, else as it is."""
        part = self.part
        return optimize_graph(
            part.graph or self.graph, part.fetches, part.feeds, part.targets, passes={_INLINING}
        )

    @property
    def operations(self) -> list[Operation]:
        """The operations of that graph; without those that stand for arguments and results of functions."""
        return [op for op in self.inlined.operations if not is_seam(op.name)]

    @cached_property
    def nodes(self) -> dict[str, NodeDef]:
        """The nodes of that graph by their names, and as FUNCTION/NODE those of functions that it still calls."""
        found = {op.name: op.node_def for op in self.operations}
        called = self.inlined.graph.function_library.reachable_definitions([*found.values()])
        for function, definition in called.items():
            found |= {f"{function}/{node.name}": node for node in definition.node_def}
        return found

    def facts(self) -> dict[str, Any]:
        """The signature, how many nodes compute, how many of these call functions, and how many variables are constants.

        `functions` are those of the file, `variables_read` the variables that stay.
        """
        library = self.inlined.graph.function_library
        computing = [
            node
            for node in self.nodes.values()
            if node.input and not library.traits(node.op).passes_on
        ]
        read = _variables(self.part.operations)
        return {
            "signature": self.signature,
            "operations": len(computing),
            "functions": len(self.graph.function_library),
            "calls": sum(library.traits(node.op).calls == "function" for node in computing),
            "variables_as_constants": _variables(needed_operations(self.fetches, ())) - read,
            "variables_read": read,
        }


def _variables(operations: Iterable[Operation]) -> int:
    """How many operations stand for variables."""
    return sum(op.type in VARIABLE_OPS for op in operations)


def fed_inputs(graph: Graph, asked: Sequence[Element]) -> list[Tensor]:
    """The inputs of a graph that what is asked for needs."""
    needed = needed_operations(asked, ())
    return [tensor for tensor in graph_inputs(graph) if tensor.op in needed]


# From the file.


def declared_program(
    meta_graph: MetaGraphDef, graph: Graph, signature: str | None
) -> ProgramGraph | None:
    """What a signature runs, as the file tells it.

    A session makes the same of it, unless a variable has no value, or another shape than its node declares.

    Args:
        meta_graph: the MetaGraph.
        graph: its graph.
        signature: the signature; serving_default or the only one if None.

    Returns:
        The program; None where the model has no signatures, or several and none is meant, or where the graph lacks what the
        signature names.

    Raises:
        NotFoundError: there is no signature of the name.
    """
    try:
        name = choose_signature(meta_graph, signature)
    except NotFoundError:
        raise
    except OpError:  # several, and none was chosen
        return None
    if name is None:
        return None
    try:
        ports = ports_of(meta_graph.signature_def[name].outputs)
        asked: list[Element] = [graph.get_tensor_by_name(port.tensor) for port in ports]
        feeds = fed_inputs(graph, asked)
        frozen = ProgramGraph(name, graph, asked, _declared_part(graph, asked, feeds))
        with suppress(OpError):
            frozen.inlined  # noqa: B018  # constants without values may contradict what shapes need
            return frozen
        plain = ProgramGraph(name, graph, asked, Subgraph(feeds, *split_elements(asked)))
        plain.inlined  # noqa: B018  # raises where there is none
        return plain
    except DeadlineExceededError:
        raise
    except (OpError, ValueError):
        return None


def _declared_part(graph: Graph, asked: Sequence[Element], feeds: Sequence[Tensor]) -> Subgraph:
    """The part of a graph that sessions run, with constants of unknown values for the variables."""
    part = Subgraph(feeds, *split_elements(asked))
    if part.acts or not part.has_variables:
        return part
    with suppress(OpError):
        reading = ReadingPart(graph, asked, feeds, {})
        if reading.variables and reading.is_mostly_read():
            return frozen_part(part, reading.frozen(_unknown_value))[0]
    return part


def _unknown_value(variable: Operation, held: HeldValue) -> TensorProto:
    """The value of a variable whose type and shape are known."""
    if not held.shape.is_fully_defined():
        raise UnimplementedError(f"Variable {held.variable!r} has an unknown shape")
    return TensorProto(dtype=held.dtype, tensor_shape=held.shape.to_proto())


def program_facts(
    meta_graph: MetaGraphDef, graph: Graph | None, signature: str | None, needs: MetaGraphNeeds
) -> dict[str, Any]:
    """What a signature runs, and what else the file has.

    Returns:
        `runs`: the facts of the program, its `ops`, and those of them that cannot run; None where there is no program.
        `beside`: how many nodes `others` and `plumbing` have, as `MetaGraphNeeds.beside` counts them.
    """
    program = None if graph is None else declared_program(meta_graph, graph, signature)
    if program is None:
        return {"runs": None, "beside": needs.beside(None)}
    nodes = [*program.nodes.values()]
    runs = {
        **program.facts(),
        "ops": op_counts(nodes),
        **running_facts(program.inlined.graph, nodes),
    }
    return {"runs": runs, "beside": needs.beside(program.signature)}


# For people.


def program_text(facts: dict[str, Any]) -> str:
    """A sentence on what runs, from the facts of a ProgramGraph."""
    whose = f"Signature {facts['signature']}" if facts["signature"] else "The graph"
    constants, read = facts["variables_as_constants"], facts["variables_read"]
    calls = facts["calls"]
    how = [f"{counted(calls, 'call')} of stateful functions"] if calls else []
    how += ["functions inlined"] if facts["functions"] and not calls else []
    if constants:
        kept = "a constant" if constants == 1 else "constants"
        how.append(f"{counted(constants, 'variable')} as {kept}")
    told = f"{whose} runs {counted(facts['operations'], 'operation')}"
    told += f" with {' and '.join(how)}" if how else ""
    return f"{told}; steps read {counted(read, 'variable')}." if read else f"{told}."


def print_program(facts: dict[str, Any]) -> None:
    """Print what runs and what else the file has, from `program_facts`; nothing for a graph."""
    beside = facts.get("beside")
    if beside is None:
        return
    others, plumbing = beside["others"], beside["plumbing"]
    if facts["runs"] is None:
        if plumbing:
            print_text(f"{plumbing:,} of the nodes save, restore and initialise the model.")
        return
    print_text(one_line(program_text(facts["runs"])))
    also = [f"{counted(others, 'node')} of other signatures and functions"] if others else []
    if plumbing:
        also.append(f"{counted(plumbing, 'node')} to save, restore and initialise the model")
    if also:
        print_text(f"The file also has {' and '.join(also)}.")
