"""What campaigns start from: graphs that run, and calls of single ops."""

import functools
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cli.hostile_models import model
from tests.runtime.small_graph import small_graph

from opkernel.graph import FunctionLibraryDefinition
from opkernel.proto import GraphDef, NodeDef

__all__ = ["calls", "graph_of_call", "graphs"]

_PRODUCER = 2474
"""The version of TensorFlow 2.21's graphs."""
_DATA = Path(__file__).parents[2] / "tests" / "data"


@functools.cache
def graphs() -> list[bytes]:
    """GraphDefs with data flow, functions, and control flow of both kinds."""
    with_functions = (_DATA / "graph_with_functions.pb").read_bytes()
    return [small_graph(), with_functions, model().SerializeToString()]


@functools.cache
def calls() -> list[list[NodeDef]]:
    """The nodes of calls, a few of each op: what is called stands last, behind all that it needs."""
    nodes = {node.name: node for node in _calls().node}
    taken = {_name(edge) for node in nodes.values() for edge in node.input}
    order = {name: number for number, name in enumerate(nodes)}
    found = []
    for name, node in nodes.items():
        if node.op != "Const" or name not in taken:
            before = sorted(_needed(nodes, name) - {name}, key=order.__getitem__)
            found.append([*(nodes[one] for one in before), node])
    return found


def _needed(nodes: Mapping[str, NodeDef], name: str) -> set[str]:
    """The names of a node and of all that it needs."""
    found, waiting = set[str](), [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += map(_name, nodes[one].input)
    return found


def _name(edge: str) -> str:
    """The node that an input comes from."""
    return edge.removeprefix("^").partition(":")[0]


def graph_of_call(nodes: Sequence[NodeDef]) -> GraphDef:
    """The nodes of a call as a graph, with the functions that they need."""
    graph_def = GraphDef(node=nodes, library=_functions().reachable_definitions(nodes).to_proto())
    graph_def.versions.producer = _PRODUCER
    return graph_def


@functools.cache
def _functions() -> FunctionLibraryDefinition:
    return FunctionLibraryDefinition(library=_calls().library)


@functools.cache
def _calls() -> GraphDef:
    return GraphDef.FromString(lzma.decompress((_DATA / "op_calls.pb.xz").read_bytes()))
