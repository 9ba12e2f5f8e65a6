"""Graphs that are copied, and graphs in pickles: both go by way of a GraphDef.

What a GraphDef does not say goes beside it: the ops of the registry, collections, whether the graph is
finalized. Shapes that were set by hand and the places of definitions stay behind.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from opkernel.device.origins import without_origins
from opkernel.errors import NotFoundError
from opkernel.graph.core.graph import Graph
from opkernel.graph.io.graph_files import serialized_graph_def
from opkernel.graph.io.importer import GraphImporter, ImportOptions
from opkernel.graph.io.producer_ops import ops_used_by_graph
from opkernel.opdef import OpRegistrationData, OpRegistry, global_op_registry
from opkernel.proto import GraphDef, OpList

if TYPE_CHECKING:
    from opkernel.proto import OpDef


def copied_graph(graph: Graph, memo: dict[int, Any]) -> Graph:
    """A copy of a graph, over the same registry of ops; what `memo` has of it is not copied again."""
    made = _graph_of(graph.as_graph_def(), graph.op_registry, origin=None)
    memo[id(graph)] = made
    _set_state(made, copy.deepcopy(_state(graph), memo))
    return made


def pickled_graph(graph: Graph) -> tuple[Any, ...]:
    """What a pickle holds of a graph, as `__reduce__` gives it.

    Raises:
        InvalidArgumentError: the graph is too large for a protocol buffer (2 GiB).
    """
    graph_def = without_origins(graph.as_graph_def())
    ops = OpList(
        op=filter(None, [_op_def(graph.op_registry, name) for name in ops_used_by_graph(graph_def)])
    )
    data = serialized_graph_def(graph_def), ops.SerializeToString()
    return _unpickled_graph, data, _state(graph), None, None, _set_state


def _unpickled_graph(graph_def: bytes, ops: bytes) -> Graph:
    """The graph of a pickle."""
    registry = _registry_for(OpList.FromString(ops))
    return _graph_of(GraphDef.FromString(graph_def), registry, origin=b"")


def _graph_of(graph_def: GraphDef, registry: OpRegistry, origin: bytes | None) -> Graph:
    graph = Graph(registry)
    graph.graph_def_versions.CopyFrom(graph_def.versions)
    options = ImportOptions(
        validate_colocation=False,
        allow_internal_names=True,
        allow_unregistered=True,
        origin=origin,
    )
    importer = GraphImporter(graph, graph_def, options)
    importer.prepare()
    importer.commit()
    return graph


def _registry_for(ops: OpList) -> OpRegistry:
    """The process's registry if it has these ops, else a new one with their known declarations."""
    if all(op == _op_def(global_op_registry(), op.name) for op in ops.op):
        return global_op_registry()
    registry = OpRegistry()
    for op in ops.op:
        is_known = op == _op_def(global_op_registry(), op.name)
        known = global_op_registry().look_up(op.name) if is_known else OpRegistrationData(op)
        registry.register(known)
    return registry


def _op_def(registry: OpRegistry, name: str) -> OpDef | None:
    """The op of a name; None where a registry has none."""
    try:
        return registry.look_up_op_def(name)
    except NotFoundError:
        return None


def _state(graph: Graph) -> dict[str, Any]:
    collections = {name: graph.get_collection(name) for name in graph.get_all_collection_keys()}
    return {"collections": collections, "finalized": graph.finalized}


def _set_state(graph: Graph, state: dict[str, Any]) -> None:
    for name, values in state["collections"].items():
        graph.get_collection_ref(name).extend(values)
    graph.finalized = state["finalized"]
