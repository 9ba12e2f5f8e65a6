"""ModelProgram: a model in the session that runs it, and the graph of what the session runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from opkernel.cli.limits import progress
from opkernel.cli.model import Model
from opkernel.cli.output import WrongUse, echo, one_line
from opkernel.cli.program_graph import ProgramGraph, fed_inputs
from opkernel.cli.run import open_model
from opkernel.cli.signature import (
    GraphInterface,
    check_asked,
    choose_signature,
    interface_of,
    signature_names,
)
from opkernel.errors import DeadlineExceededError, OpError
from opkernel.interrupts import contextmanager
from opkernel.records import dataclass
from opkernel.runtime import Session


@dataclass(frozen=True, eq=False)
class ModelProgram(ProgramGraph):
    """What a session runs of a model.

    Attributes:
        interface: how callers name the inputs and outputs.
        session: the session; it has the values of the variables.
    """

    interface: GraphInterface
    session: Session


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
    feeds = fed_inputs(graph, asked)
    name = choose_signature(model.meta_graph, model.signature_name) if model.is_saved_model else ""
    with open_session() as session:
        with progress(f"Compiling {model.name}"):
            program = session.program(asked, feeds)
        yield ModelProgram(name or "", graph, asked, program.request.part, interface, session)


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
