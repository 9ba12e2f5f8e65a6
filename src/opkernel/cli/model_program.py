"""ModelProgram: a model as a session runs it, with constants for variables and the bodies of functions for their calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any

from opkernel.cli.limits import progress
from opkernel.cli.model import Model
from opkernel.cli.output import WrongUse, echo, one_line
from opkernel.cli.run import open_model
from opkernel.cli.signature import (
    Element,
    GraphInterface,
    check_asked,
    choose_signature,
    graph_inputs,
    interface_of,
    needed_operations,
    signature_names,
)
from opkernel.errors import DeadlineExceededError, OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import VARIABLE_OPS
from opkernel.interrupts import contextmanager
from opkernel.optimization import OptimizedGraph, optimize_graph
from opkernel.proto import NodeDef
from opkernel.records import dataclass
from opkernel.runtime import Session
from opkernel.runtime.program.builder import StepProgram
from opkernel.runtime.program.request import Subgraph

_INLINING = "function_inlining"
_SEAM = "Func/"
"""The names of the nodes begin so that stand for arguments and results of functions that are inlined."""


@dataclass(frozen=True, eq=False)
class ModelProgram:
    """What a session runs of a model: of a SavedModel a signature, of a graph all of its outputs.

    Attributes:
        signature: the signature; empty for a graph.
        graph: the graph of the model, as the file has it.
        interface: how callers name the inputs and outputs.
        fetches: what steps compute.
        feeds: what they are fed.
        session: the session; it has the values of the variables.
        program: the session's program, once variables have kept their values.
    """

    signature: str
    graph: Graph
    interface: GraphInterface
    fetches: Sequence[Element]
    feeds: Sequence[Tensor]
    session: Session
    program: StepProgram

    @property
    def part(self) -> Subgraph:
        """The graph of the program before any pass: variables that no node assigns to are constants."""
        return self.program.request.part

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
        return [op for op in self.inlined.operations if not op.name.startswith(_SEAM)]

    @cached_property
    def nodes(self) -> dict[str, NodeDef]:
        """The nodes of that graph by their names, and as FUNCTION/NODE those of functions that it still calls."""
        found = {op.name: op.node_def for op in self.operations}
        called = self.inlined.graph.function_library.reachable_definitions([*found.values()])
        for function, definition in called.items():
            found |= {f"{function}/{node.name}": node for node in definition.node_def}
        return found

    def facts(self) -> dict[str, Any]:
        """The signature, how many nodes compute, the functions of the file, and how many variables are constants or are read."""
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
            "variables_as_constants": _variables(needed_operations(self.fetches, ())) - read,
            "variables_read": read,
        }


def _variables(operations: Iterable[Operation]) -> int:
    """How many operations stand for variables."""
    return sum(op.type in VARIABLE_OPS for op in operations)


@contextmanager
def open_program(model: Model, **session_options: Any) -> Iterator[ModelProgram]:
    """Open a model in a session, whose end is that of the block, and make the program that its steps will run.

    Args:
        model: the model; a SavedModel is restored and initialised.
        session_options: what the session gets.

    Raises:
        WrongUse: the graph has no outputs, or the model is one of TF2 without signatures.
        OpError: the model cannot be loaded, restored or run.
    """
    graph, open_session = open_model(model, **session_options)
    interface = interface_of(model, graph)
    if model.is_saved_model and model.meta_graph.object_graph_def.nodes:
        check_asked(model, interface, ())
    asked = [*interface.fetches(()).values()]
    needed = needed_operations(asked, ())
    feeds = [tensor for tensor in graph_inputs(graph) if tensor.op in needed]
    name = choose_signature(model.meta_graph, model.signature_name) if model.is_saved_model else ""
    with open_session() as session:
        with progress(f"Compiling {model.name}"):
            program = session.program(asked, feeds)
        yield ModelProgram(name or "", graph, interface, asked, feeds, session, program)


@contextmanager
def open_signature(model: Model, **session_options: Any) -> Iterator[ModelProgram | None]:
    """As `open_program`, for a signature; None where there is none, or where the program cannot be made, as a warning says.

    Raises:
        NotFoundError: there is no signature of the name that was given.
    """
    with ExitStack() as stack:
        opened = None
        if model.signature_name is not None and model.is_saved_model:
            choose_signature(model.meta_graph, model.signature_name)
        if model.is_saved_model and signature_names(model.meta_graph):
            try:
                opened = stack.enter_context(open_program(model, **session_options))
            except DeadlineExceededError:
                raise
            except (OpError, WrongUse) as error:
                why = str(error).partition("\n")[0]
                told = f"Warning: these are the nodes of the file, not what a signature runs: {why}"
                echo(one_line(told), err=True)
        yield opened
