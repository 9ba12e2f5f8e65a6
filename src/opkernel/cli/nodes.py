"""Nodes of a model by name; a node of a function is named FUNCTION/NODE."""

import fnmatch
from collections.abc import Iterator
from typing import NamedTuple

from opkernel.cli.output import abridged
from opkernel.errors import NotFoundError
from opkernel.graph import Graph, Operation
from opkernel.messages import did_you_mean
from opkernel.proto import GraphDef, NodeDef
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS


def nodes_of(graph: Graph) -> Iterator[tuple[str, NodeDef]]:
    """The nodes of a graph by their names, then the nodes of its functions."""
    for op in graph.get_operations():
        yield op.name, op.slim_node_def
    for function in graph.function_library.values():
        for node in function.node_def:
            yield f"{function.signature.name}/{node.name}", node


def all_nodes(graph_def: GraphDef) -> Iterator[NodeDef]:
    """The nodes of a GraphDef and of its functions."""
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def find_node(graph: Graph, name: str) -> tuple[str, NodeDef]:
    """The node of a name, and its whole name: the given one, or the only one that ends with a `/` and the given one.

    Raises:
        NotFoundError: there is none, or several end so; the message names these, or the nearest.
    """
    nodes: dict[str, NodeDef] = {}
    for known, node in nodes_of(graph):
        if known == name:
            return name, node
        nodes[known] = node
    ending = [known for known in nodes if known.endswith(f"/{name}")]
    if len(ending) == 1:
        return ending[0], nodes[ending[0]]
    if ending:
        raise NotFoundError(
            f"the graph has no node {name!r}, and {len(ending)} nodes whose names end so: {abridged(ending)}"
        )
    raise NotFoundError(f"the graph has no node {name!r}{did_you_mean(name, nodes)}")


def find_operation(graph: Graph, name: str) -> Operation:
    """The operation of a name, as `find_node`; one of a function in a graph of the function's body.

    Raises:
        NotFoundError: there is none, or an op of its function is not registered.
        InvalidArgumentError: a node of its function breaks a rule.
    """
    name, node = find_node(graph, name)
    if name in graph.by_name:
        return graph.by_name[name]
    from opkernel.graph.functions.function_body import instantiate_function  # for few nodes

    function = name.removesuffix(node.name).removesuffix("/")
    body = instantiate_function(graph.function_library, function)
    return body.graph.get_operation_by_name(node.name)


def run_by(graph: Graph, op: str) -> str:
    """The kind of thing that runs an op in a session: a `kernel`, the `executor`, or a `function`."""
    if op in graph.function_library:
        return "function"
    return "executor" if op in RUN_BY_EXECUTORS else "kernel"


def slim(node: NodeDef) -> NodeDef:
    """A copy of a node without its weights."""
    copy = NodeDef(name=node.name, op=node.op, input=node.input, device=node.device)
    for attr, value in node.attr.items():
        if not value.HasField("tensor"):
            copy.attr[attr].CopyFrom(value)
    return copy


def has_wildcards(pattern: str) -> bool:
    """Whether a pattern is one of shells, and not a part of names."""
    return any(character in pattern for character in "*?[")


def is_match(text: str, pattern: str) -> bool:
    """Whether a pattern is a part of a text or, where it has shell wildcards, all of it."""
    return fnmatch.fnmatchcase(text, pattern if has_wildcards(pattern) else f"*{pattern}*")


class NodeFilter(NamedTuple):
    """A filter of nodes: a node must meet all that is given.

    Attributes:
        op: the op; may have shell wildcards.
        name: a part of the name, or a pattern with shell wildcards.
        scope: the beginning of the name, up to a `/`.
    """

    op: str | None
    name: str | None
    scope: str | None

    @property
    def is_empty(self) -> bool:
        """Whether it takes every node."""
        return self == (None, None, None)

    def takes(self, name: str, node: NodeDef) -> bool:
        """Whether a node of this name is looked for."""
        scope = (self.scope or "").rstrip("/")
        return (
            (self.op is None or fnmatch.fnmatchcase(node.op, self.op))
            and (self.name is None or is_match(name, self.name))
            and (not scope or name == scope or name.startswith(f"{scope}/"))
        )
