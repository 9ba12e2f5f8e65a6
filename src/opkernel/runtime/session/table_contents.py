"""Tables of a session with their contents as constants of a graph, which needs no files to initialise them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opkernel.errors import FailedPreconditionError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.edit.graph_edit import GraphEdit, listed
from opkernel.graph.edit.prune import prune_and_order
from opkernel.graph.freezing.tables import TABLES, table_initializers
from opkernel.proto import NodeDef
from opkernel.runtime.session.session import Session
from opkernel.types import DataType

_FROM_TENSORS = frozenset({"InitializeTable", "InitializeTableV2"})


def with_table_contents(
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
    elements = [graph.as_graph_element(one) for one in listed(outputs)]
    tensors = [one for one in elements if isinstance(one, Tensor)]
    ops = [one for one in elements if isinstance(one, Operation)]
    feeds = [
        one if isinstance(one, Tensor) else graph.get_tensor_by_name(one) for one in listed(inputs)
    ]
    needed = prune_and_order(tensors, ops, feeds)
    tables = [op for op in needed if op.type in TABLES]
    kept = {op: _from_constants(graph, op) for op in tables}
    initializers = [one for some in kept.values() for one in some]
    part = GraphEdit(graph).extract([*elements, *initializers], inputs)
    changed = [op for op in tables if not kept[op]]
    for op, contents in zip(changed, _contents(session, changed), strict=True):
        _initialize(part, op.name, contents)
    return part


def of_session(node: Operation) -> NodeDef:
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
    return [
        op
        for op in initializers
        if op.type in _FROM_TENSORS and all(t.op.type == "Const" for t in op.inputs[1:])
    ]


def _contents(session: Session, tables: Sequence[Operation]) -> list[Any]:
    """The keys and values of tables in a session."""
    if not tables:
        return []
    graph = Graph(session.graph.op_registry)
    with graph.edit() as edit:
        exports: list[Tensor] = []
        for table in tables:
            own = edit.add_node(of_session(table)).outputs[0]
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
