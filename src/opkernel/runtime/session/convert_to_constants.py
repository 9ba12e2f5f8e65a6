"""Freezing: variables become constants with the values that they have in a session.

Source: TensorFlow python/framework/convert_to_constants.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.freezing.freeze_graph import freeze_with
from opkernel.proto import NodeDef
from opkernel.runtime.session.session import Session
from opkernel.types import DataType

__all__ = ["convert_variables_to_constants"]


def convert_variables_to_constants(
    session: Session,
    outputs: Iterable[Tensor | Operation | str] | Tensor | Operation | str,
    inputs: Iterable[Tensor | str] | Tensor | str = (),
) -> Graph:
    """A new graph with what some outputs need, and constants for variables.

    As `opkernel.graph.freeze_graph`, with the values that the variables have in the session now.

    Args:
        session: it has the graph and the values; both stay as they are.
        outputs: the tensors and operations that the new graph is for, or a single one.
        inputs: as for `GraphEdit.extract`: tensors that get a Placeholder there.

    Raises:
        FailedPreconditionError: a needed node changes a variable, or takes its handle and does not simply
            read it; the message names the node. Or a variable has no value, nothing initialises a table,
            or the session is closed.
        NotFoundError: the graph lacks an output or an input.
        UnimplementedError: a handle may belong to a variable or to another resource.
    """
    session._check_open()
    return freeze_with(session.graph, outputs, inputs, partial(_values, session))


def _values(session: Session, variables: Sequence[Operation]) -> list[Any]:
    """The values of variables in a session."""
    graph = Graph(session.graph.op_registry)
    with graph.edit() as edit:
        reads = []
        for variable in variables:
            own = edit.add_node(_variable(variable)).outputs[0]
            attrs = {"dtype": variable.attr["dtype"]}
            if own.dtype is DataType.DT_RESOURCE:
                own = edit.add("ReadVariableOp", [own], f"{variable.name}/read", attrs).outputs[0]
            reads.append(own)
    values: list[Any] = session._callable(session._executables.for_graph(graph), reads, ())()
    return values


def _variable(variable: Operation) -> NodeDef:
    """The node of a variable, which keeps the name of the variable whatever the node is called."""
    node = NodeDef()
    node.CopyFrom(variable.message)
    del node.input[:]
    node.attr.pop("_class", None)
    if not node.attr["shared_name"].s:
        node.attr["shared_name"].s = variable.name.encode("utf-8", "surrogateescape")
    return node
