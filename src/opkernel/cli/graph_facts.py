"""What is known of a graph without running it: inputs, outputs, ops, and which of these cannot run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from opkernel.cli.refusals import refusals
from opkernel.cli.signature import graph_outputs, split_by_need
from opkernel.device.device_factory import offered_device_types
from opkernel.errors import NotFoundError, OpError
from opkernel.graph import Graph, GraphShapes, Tensor
from opkernel.kernel import get_registered_kernels_for_op, kernel_def_available
from opkernel.opdef import add_defaults_to_node_def
from opkernel.proto import GraphDef, NodeDef
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS
from opkernel.types import DataType, PartialTensorShape, TensorShape


def graph_facts(graph: Graph) -> dict[str, Any]:
    """The facts of a graph."""
    nodes = [*_nodes(graph)]
    shapes, contradiction = _shapes(graph)
    refused = refusals(graph, nodes)
    inputs, unused = split_by_need(graph)
    return {
        "producer": graph.graph_def_versions.producer,
        "nodes": len(graph.get_operations()),
        "functions": len(graph.function_library),
        "weight_bytes": sum(_constant_bytes(node) for node in nodes if node.op == "Const"),
        "inputs": [_described(tensor, shapes) for tensor in inputs],
        **({"unused_inputs": [_described(t, shapes) for t in unused]} if unused else {}),
        "outputs": [_described(tensor, shapes) for tensor in graph_outputs(graph)],
        "ops": dict(Counter(node.op for node in nodes).most_common()),
        "not_runnable": not_runnable(graph, nodes),
        **({} if contradiction is None else {"contradiction": contradiction}),
        **({"refused": refused} if refused else {}),
    }


def facts_of_nodes(graph_def: GraphDef) -> dict[str, Any]:
    """The facts of nodes that make no graph."""
    functions = graph_def.library.function
    nodes = [*all_nodes(graph_def)]
    return {
        "producer": graph_def.versions.producer,
        "nodes": len(graph_def.node),
        "functions": len(functions),
        "weight_bytes": sum(node.attr["value"].ByteSize() for node in nodes if node.op == "Const"),
        "ops": dict(Counter(node.op for node in nodes).most_common()),
    }


def _shapes(graph: Graph) -> tuple[GraphShapes | None, str | None]:
    """The shapes of the graph; none, and the reason, where they contradict each other."""
    try:
        return graph.infer_shapes(), None
    except OpError as error:
        return None, error.message


def all_nodes(graph_def: GraphDef) -> Iterator[NodeDef]:
    """The nodes of a GraphDef and of its functions."""
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _nodes(graph: Graph) -> Iterator[NodeDef]:
    """The nodes of a graph and of its functions."""
    for op in graph.get_operations():
        yield op.node_def
    for function in graph.function_library.values():
        yield from function.node_def


def not_runnable(graph: Graph, nodes: Sequence[NodeDef]) -> dict[str, str]:
    """The ops of nodes that cannot run, each with the reason of the first of its nodes."""
    reasons: dict[str, str] = {}
    examined = set()
    for node in nodes:
        kind = node.op, _attr_key(node)
        if node.op in reasons or kind in examined:
            continue
        examined.add(kind)
        reason = _reason_not_to_run(graph, node)
        if reason is not None:
            reasons[node.op] = reason
    return reasons


def _attr_key(node: NodeDef) -> frozenset[tuple[str, bytes]]:
    """Equal for nodes of an op that the same kernel fits."""
    return frozenset(
        [
            (name, value.SerializeToString())
            for name, value in node.attr.items()
            if not value.HasField("tensor")
        ]
    )


def _reason_not_to_run(graph: Graph, node: NodeDef) -> str | None:
    if node.op in RUN_BY_EXECUTORS or node.op in graph.function_library:
        return None
    try:
        op_def = graph.op_registry.look_up_op_def(node.op)
    except NotFoundError:
        return "unknown op"
    slim = _without_tensors(node)
    add_defaults_to_node_def(slim, op_def)
    if any(kernel_def_available(device_type, slim) for device_type in offered_device_types()):
        return None
    types = {
        name: value for name, value in slim.attr.items() if value.WhichOneof("value") == "type"
    }
    if not get_registered_kernels_for_op(node.op).kernel or not types:
        return "no CPU kernel"
    of = ", ".join(f"{name} = {DataType(types[name].type).string}" for name in sorted(types))
    return f"no CPU kernel for {of}"


def _without_tensors(node: NodeDef) -> NodeDef:
    """A copy of a node without its weights."""
    slim = NodeDef(name=node.name, op=node.op)
    for name, value in node.attr.items():
        if not value.HasField("tensor"):
            slim.attr[name].CopyFrom(value)
    return slim


def _constant_bytes(node: NodeDef) -> int:
    """The size of a constant: of its elements, or of its strings."""
    tensor = node.attr["value"].tensor
    if tensor.dtype == DataType.DT_STRING:
        return sum(map(len, tensor.string_val))
    shape = TensorShape.from_proto(tensor.tensor_shape)
    return math.prod(shape.as_list()) * DataType(tensor.dtype).size


def _described(tensor: Tensor, shapes: GraphShapes | None) -> dict[str, Any]:
    shape = PartialTensorShape(None) if shapes is None else shapes[tensor]
    dims = None if shape.rank is None else shape.as_list()
    return {"name": tensor.name, "dtype": tensor.dtype.tf_name, "shape": dims}
