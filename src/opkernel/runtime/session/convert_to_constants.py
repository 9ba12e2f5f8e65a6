"""Freezing: variables become constants with the values that they have in a session.

Source: TensorFlow python/framework/convert_to_constants.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.edit.graph_edit import listed
from opkernel.graph.freezing.freeze_graph import freeze_with
from opkernel.runtime.session.session import Session
from opkernel.runtime.session.table_contents import of_session, with_table_contents
from opkernel.types import DataType


def convert_variables_to_constants(
    session: Session,
    outputs: Iterable[Tensor | Operation | str] | Tensor | Operation | str,
    inputs: Iterable[Tensor | str] | Tensor | str = (),
    *,
    with_tables: bool = False,
) -> Graph:
    """A new graph with what some outputs need, and constants for variables.

    As `opkernel.graph.freeze_graph`, with the values that the variables have in the session now.

    Args:
        session: it has the graph and the values; both stay as they are.
        outputs: the tensors and operations that the new graph is for, or a single one.
        inputs: as for `GraphEdit.extract`: tensors that get a Placeholder there.
        with_tables: tables that are not initialised from constants, but from a file, say, are initialised
            with constants of the keys and values that they have in the session now.

    Raises:
        FailedPreconditionError: a needed node changes a variable, or takes its handle and does not simply
            read it; the message names the node. Or a variable has no value, nothing initialises a table,
            or the session is closed.
        NotFoundError: the graph lacks an output or an input.
        UnimplementedError: a handle may belong to a variable or to another resource.
    """
    session._steps.check_open()
    read = partial(_values, session)
    if not with_tables:
        return freeze_with(session.graph, outputs, inputs, read)
    part = with_table_contents(session, outputs, inputs)
    names = [session.graph.as_graph_element(one).name for one in listed(outputs)]
    return freeze_with(part, names, (), read)


def _values(session: Session, variables: Sequence[Operation]) -> list[Any]:
    """The values of variables in a session."""
    graph = Graph(session.graph.op_registry)
    with graph.edit() as edit:
        reads = []
        for variable in variables:
            own = edit.add_node(of_session(variable)).outputs[0]
            attrs = {"dtype": variable.attr["dtype"]}
            if own.dtype is DataType.DT_RESOURCE:
                own = edit.add("ReadVariableOp", [own], f"{variable.name}/read", attrs).outputs[0]
            reads.append(own)
    values: list[Any] = session._runner.for_graph(graph).run(reads, {})
    return values
