"""Freezing: variables become constants with the values that they have in a session.

Source: TensorFlow python/framework/convert_to_constants.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from opkernel.errors import FailedPreconditionError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.edit.graph_edit import GraphEdit, listed
from opkernel.graph.freezing.freeze_graph import TABLES, freeze_with, table_initializers
from opkernel.proto import NodeDef
from opkernel.runtime.session.session import Session
from opkernel.types import DataType

_FROM_TENSORS = frozenset({"InitializeTable", "InitializeTableV2"})


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
    session._runtime.check_open()
    read = partial(_values, session)
    if not with_tables:
        return freeze_with(session.graph, outputs, inputs, read)
    part = _with_table_contents(session, outputs, inputs)
    names = [session.graph.as_graph_element(one).name for one in listed(outputs)]
    return freeze_with(part, names, (), read)


def _values(session: Session, variables: Sequence[Operation]) -> list[Any]:
    """The values of variables in a session."""
    graph = Graph(session.graph.op_registry)
    with graph.edit() as edit:
        reads = []
        for variable in variables:
            own = edit.add_node(_of_session(variable)).outputs[0]
            attrs = {"dtype": variable.attr["dtype"]}
            if own.dtype is DataType.DT_RESOURCE:
                own = edit.add("ReadVariableOp", [own], f"{variable.name}/read", attrs).outputs[0]
            reads.append(own)
    values: list[Any] = session._runner.for_graph(graph).run(reads, {})
    return values


def _with_table_contents(
    session: Session,
    outputs: Iterable[Tensor | Operation | str] | Tensor | Operation | str,
    inputs: Iterable[Tensor | str] | Tensor | str,
) -> Graph:
    """The part of a session's graph that some outputs need.

    A table that constants initialise keeps its initialisation. Any other gets a new one, with the keys
    and values that it has in the session now.

    Raises:
        FailedPreconditionError: a table is not initialised.
        NotFoundError: the graph lacks an output or an input.
    """
    graph = session.graph
    edit = GraphEdit(graph)
    tables = [op for op in edit.needed(outputs, inputs) if op.type in TABLES]
    kept = {op: _from_constants(graph, op) for op in tables}
    initializers = [one for some in kept.values() for one in some]
    part = edit.extract([*listed(outputs), *initializers], inputs)
    changed = [op for op in tables if not kept[op]]
    for op, contents in zip(changed, _contents(session, changed), strict=True):
        _initialize(part, op.name, contents)
    return part


def _of_session(node: Operation) -> NodeDef:
    """The node of a variable or table, which keeps its name whatever the node is called."""
    copy = NodeDef()
    copy.CopyFrom(node.message)
    del copy.input[:]
    copy.attr.pop("_class", None)
    if not copy.attr["shared_name"].s:
        copy.attr["shared_name"].s = node.name.encode("utf-8", "surrogateescape")
    return copy


def _from_constants(graph: Graph, table: Operation) -> list[Operation]:
    """The operations that initialise a table from constants."""
    try:
        initializers = table_initializers(graph, [table])
    except FailedPreconditionError:  # the graph has none
        return []
    from_tensors = [op for op in initializers if op.type in _FROM_TENSORS]
    return [op for op in from_tensors if all(t.op.type == "Const" for t in op.inputs[1:])]


def _contents(session: Session, tables: Sequence[Operation]) -> list[Any]:
    """The keys and values of tables in a session."""
    if not tables:
        return []
    graph = Graph(session.graph.op_registry)
    with graph.edit() as edit:
        exports: list[Tensor] = []
        for table in tables:
            own = edit.add_node(_of_session(table)).outputs[0]
            op = "LookupTableExportV2" if table.type.endswith("V2") else "LookupTableExport"
            types = {"Tkeys": table.attr["key_dtype"], "Tvalues": table.attr["value_dtype"]}
            exports += edit.add(op, [own], f"{table.name}/export", types).outputs
    found = session._runner.for_graph(graph).run(exports, {})
    return [*zip(found[::2], found[1::2], strict=True)]


def _initialize(graph: Graph, name: str, contents: Sequence[Any]) -> None:
    """Add the initialisation of a table."""
    with graph.edit() as edit:
        table = graph.by_name[name]
        types = [table.attr[attr].type for attr in ("key_dtype", "value_dtype")]
        parts = [
            edit.constant(value, DataType(dtype), f"{name}/{what}")
            for value, what, dtype in zip(contents, ("keys", "values"), types, strict=True)
        ]
        op = "InitializeTableV2" if table.type.endswith("V2") else "InitializeTable"
        attrs = {"Tkey": table.attr["key_dtype"], "Tval": table.attr["value_dtype"]}
        edit.add(op, [table.outputs[0], *parts], f"{name}/initialize", attrs)
