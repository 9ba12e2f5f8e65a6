"""StepSignature: the feeds, fetches and targets of a step by name, as TensorFlow's C++ API takes them.

Where tensor connections are asked for, what reads one tensor gets another.

Source: RewriteGraphForExecution in TensorFlow core/graph/subgraph.cc; TensorConnection in
core/protobuf/config.proto, TensorConnectionPruneRewrite in core/common_runtime/graph_execution_state.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opkernel.errors import InvalidArgumentError, NotFoundError, OutOfRangeError
from opkernel.graph import Graph, Operation, Tensor, import_graph_def
from opkernel.graph.core.tensor_name import format_input, parse_input
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.messages import did_you_mean


@dataclass(frozen=True, slots=True)
class StepSignature:
    """Feeds, fetches and targets that were found in a graph.

    Attributes:
        feeds: The tensors that are fed.
        fetches: The tensors that are fetched, with duplicates.
        targets: The operations that are run besides.
    """

    feeds: Sequence[Tensor]
    fetches: Sequence[Tensor]
    targets: Sequence[Operation]

    @property
    def elements(self) -> list[list[Tensor | Operation]]:
        """What `Session.run` fetches: the values of the fetches, and then None for each target."""
        return [list(self.fetches), list(self.targets)]

    @classmethod
    def of(
        cls,
        graph: Graph,
        inputs: Sequence[str],
        outputs: Sequence[str],
        targets: Sequence[str],
        *,
        is_partial: bool = False,
    ) -> StepSignature:
        """Find what names mean.

        Args:
            graph: Where they are.
            inputs: The names of feeds; the output index may be left out.
            outputs: The names of fetches, likewise.
            targets: The names of operations, or of their outputs.
            is_partial: The step is run in parts, of which TensorFlow has other errors.

        Raises:
            InvalidArgumentError: there is nothing to fetch or run, the graph lacks a feed or fetch,
                or something is fed twice or both fed and fetched.
            NotFoundError: the graph lacks a target; of a partial run, a feed or fetch.
            OutOfRangeError: a node has no such output.
        """
        if not outputs and not targets:
            raise InvalidArgumentError("Must specify at least one target to fetch or execute.")
        for index, name in enumerate(inputs):
            if name in inputs[:index]:
                raise InvalidArgumentError(f'Endpoint "{name}" fed more than once.')
        fed = set(inputs)
        for name in outputs:
            if name in fed:
                raise InvalidArgumentError(f"{name} is both fed and fetched.")
        if is_partial:
            _check_there(graph, inputs, outputs)
        feeds = [_tensor(graph, name) for name in inputs]
        fetches = [_tensor(graph, name) for name in outputs]
        return cls(feeds, fetches, _targets(graph, targets))


def _check_there(graph: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    told = [(name, f"FeedInputs: unable to find feed output {name}") for name in inputs]
    told += [(name, f"FetchOutputs node {name}: not found") for name in outputs]
    for name, message in told:
        if (node := parse_input(name)[0]) not in graph.by_name:
            raise NotFoundError(f"{message}{did_you_mean(node, graph.by_name)}")


def _tensor(graph: Graph, name: str) -> Tensor:
    node, index = parse_input(name)
    op = graph.by_name.get(node)
    if op is None:
        raise InvalidArgumentError(
            f"Tensor {node}:{index}, specified in either feed_devices or fetch_devices was not "
            f"found in the Graph{did_you_mean(node, graph.by_name)}",
            node=node,
        )
    if not 0 <= index < len(op.outputs):
        raise OutOfRangeError(
            f"Node '{node}' (type: '{op.type}', num of outputs: {len(op.outputs)}) does not have "
            f"output {index}",
            node=node,
            op=op.type,
        )
    return op.outputs[index]


def _targets(graph: Graph, names: Sequence[str]) -> list[Operation]:
    found = {name: graph.by_name.get(parse_input(name)[0]) for name in names}
    missing = [name for name, op in found.items() if op is None]
    if missing:
        raise NotFoundError(
            f"PruneForTargets: Some target nodes not found: {' '.join(missing)}"
            f"{did_you_mean(parse_input(missing[0])[0], graph.by_name)}",
            node=missing[0],
        )
    return [op for op in found.values() if op is not None]


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
    if any(replaced in op.inputs for op in prune_and_order([source], (), ())):
        raise InvalidArgumentError(
            f'Requested Tensor connection between nodes "{replaced.op.name}" and '
            f'"{source.op.name}" would create a cycle.',
            node=source.op.name,
        )
