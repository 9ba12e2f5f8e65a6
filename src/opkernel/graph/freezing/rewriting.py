"""Rewriting: a new graph from a body whose handles have been followed, with values in their place.

Each node has its counterpart, of the same name and with as many outputs, in the new graph.
"""

from __future__ import annotations

from collections.abc import Mapping

from opkernel.device.budget import check_time
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation, check_inputs
from opkernel.graph.edit.graph_copy import link_copies
from opkernel.graph.freezing.body import Body
from opkernel.graph.freezing.counterparts import Constants, Counterpart, counterpart
from opkernel.proto import NodeDef
from opkernel.types import DataType, tensor_to_proto


def rewrite(
    body: Body, constants: Constants, names: Mapping[Body, str]
) -> tuple[Graph, dict[Operation, Operation]]:
    """A new graph with the nodes of a body, in which values take the place of handles.

    Args:
        body: the body.
        constants: gives the values of its variables.
        names: the names of the functions that take the place of others.

    Returns:
        The graph, which shares the library of the body's, and the counterparts of the nodes.

    Raises:
        FailedPreconditionError: a node takes a handle and does not simply read it.
        UnimplementedError: a node may have the handle of a variable, and may have another.
        InvalidArgumentError: a node reads a value of another type than the variable has.
    """
    graph = Graph(function_library=body.graph.function_library)
    graph.graph_def_versions.CopyFrom(body.graph.graph_def_versions)
    found = {}
    for op in body.ops:
        check_time("freezing", op.name)
        found[op] = counterpart(body, op, constants, names)
    copies = {op: _operation(graph, op, new) for op, new in found.items()}
    axes = _link(graph, copies, found)
    for op, new in found.items():
        if new is not None:
            _resolve(graph, copies[op])
    graph.append([*axes, *copies.values()])
    graph.put_in_order(graph.get_operations())
    for copy in copies.values():
        check_inputs(copy, copy.inputs, copy.signature)
    for op, device in body.graph.assigned_devices.items():
        if op in copies:
            graph.assigned_devices[copies[op]] = device
    return graph, copies


def _operation(graph: Graph, op: Operation, new: Counterpart | None) -> Operation:
    """The counterpart of an operation, without edges; without signature, too, where it differs."""
    copy = Operation(graph, op.name, op.node_def if new is None else new.node, op.number)
    copy.definition_site = op.definition_site
    if new is None:
        copy.signature = op.signature
    return copy


def _resolve(graph: Graph, op: Operation) -> None:
    """Give an operation its signature."""
    op.write_inputs()
    op.signature = graph.resolve(op.message, len(op.edges) // 2)


def _link(
    graph: Graph,
    copies: Mapping[Operation, Operation],
    found: Mapping[Operation, Counterpart | None],
) -> list[Operation]:
    """Give the counterparts their edges; returns the constants among their inputs that are new."""
    link_copies(copies, found)
    taken, axes = {op.name for op in found}, []
    for op, new in found.items():
        if new is not None and not new.takes_inputs:
            copies[op].edges = ()
        if new is not None and new.axis is not None:
            name = _free_name(f"{op.name}/axis", taken)
            axes.append(_axis(graph, name, new.axis, op.message.device))
            copies[op].edges = (*copies[op].edges, axes[-1], 0)
    return axes


def _axis(graph: Graph, name: str, value: int, device: str) -> Operation:
    node = NodeDef(name=name, op="Const", device=device)
    node.attr["dtype"].type = DataType.DT_INT32
    node.attr["value"].tensor.CopyFrom(tensor_to_proto(value, DataType.DT_INT32))
    axis = Operation(graph, name, node, 0)
    _resolve(graph, axis)
    return axis


def _free_name(wanted: str, taken: set[str]) -> str:
    """The name, or the first `name_N` that is free; it is taken then."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name
