"""Tensor connections: a graph in which what reads one tensor gets another.

Source: TensorConnection in TensorFlow core/protobuf/config.proto,
core/common_runtime/graph_execution_state.cc (TensorConnectionPruneRewrite).
"""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import Graph, Tensor, import_graph_def
from opkernel.graph.core.tensor_name import format_input, parse_input
from opkernel.messages import did_you_mean


def connected(graph: Graph, connections: Sequence[tuple[str, str]]) -> Graph:
    """A copy of a graph with other edges; it shares the graph's functions.

    Args:
        graph: The graph, which stays as it is.
        connections: Pairs of names of tensors; what reads the second one gets the first.

    Raises:
        InvalidArgumentError: a tensor does not exist, gets two others, or is of another type than
            the one in its place; or there would be a cycle.
        NotFoundError: the tensor to be replaced does not exist.
    """
    sources: dict[tuple[str, int], Tensor] = {}
    for from_name, to_name in connections:
        if parse_input(to_name) in sources:
            raise InvalidArgumentError(f'Endpoint "{to_name}" fed more than once.')
        source, replaced = _source(graph, from_name, to_name), _replaced(graph, to_name)
        _check_acyclic(source, replaced)
        sources[parse_input(to_name)] = source
    graph_def = graph.as_graph_def()
    graph_def.ClearField("library")
    for node in graph_def.node:
        for index, text in enumerate(node.input):
            found = sources.get(parse_input(text))
            if found is not None:
                node.input[index] = format_input(found.op.name, found.value_index)
    copy = Graph(graph.op_registry, function_library=graph.function_library)
    import_graph_def(graph_def, name="", graph=copy)
    return copy


def _source(graph: Graph, name: str, to_name: str) -> Tensor:
    node, index = parse_input(name)
    op = graph.by_name.get(node)
    if op is None:
        raise InvalidArgumentError(
            f'Requested tensor connection from unknown node: "{name}" to "{to_name}"'
            f"{did_you_mean(node, graph.by_name)}.",
            node=node,
        )
    outputs = op.outputs
    if not 0 <= index < len(outputs):
        raise InvalidArgumentError(
            f'Requested tensor connection from unknown edge: "{name}" to "{to_name}" (actual '
            f"number of outputs = {len(outputs)}).",
            node=node,
        )
    return outputs[index]


def _replaced(graph: Graph, name: str) -> Tensor:
    node, index = parse_input(name)
    try:
        return graph.get_tensor_by_name(f"{node}:{index}")
    except (NotFoundError, InvalidArgumentError):
        raise NotFoundError(f"FeedInputs: unable to find feed output {name}") from None


def _check_acyclic(source: Tensor, replaced: Tensor) -> None:
    """Raise InvalidArgumentError where `source` is computed from what reads `replaced`."""
    key = replaced.op.name, replaced.value_index
    ops, seen = [source.op], {source.op.name}
    while ops:
        op = ops.pop()
        if any((tensor.op.name, tensor.value_index) == key for tensor in op.inputs):
            raise InvalidArgumentError(
                f'Requested Tensor connection between nodes "{replaced.op.name}" and '
                f'"{source.op.name}" would create a cycle.',
                node=source.op.name,
            )
        for before in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
            if before.name not in seen:
                seen.add(before.name)
                ops.append(before)
