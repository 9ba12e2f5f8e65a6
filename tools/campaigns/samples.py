"""What campaigns start from: graphs that run, and calls of single ops."""

import functools
import lzma
from collections import defaultdict
from pathlib import Path

from tests.cli.hostile_models import model
from tests.runtime.small_graph import small_graph

from opkernel.proto import FunctionDefLibrary, GraphDef, NodeDef

__all__ = ["calls", "functions_of_calls", "graphs"]

_DATA = Path(__file__).parents[2] / "tests" / "data"


@functools.cache
def graphs() -> list[bytes]:
    """GraphDefs with data flow, functions, and control flow of both kinds."""
    with_functions = (_DATA / "graph_with_functions.pb").read_bytes()
    return [small_graph(), with_functions, model().SerializeToString()]


@functools.cache
def calls() -> list[list[NodeDef]]:
    """The nodes of calls, a few of each op: what is called stands last, on constants."""
    found: dict[str, list[NodeDef]] = defaultdict(list)
    for node in _calls().node:
        found["/".join(node.name.split("/")[:2])].append(node)
    return list(found.values())


def functions_of_calls() -> FunctionDefLibrary:
    """The functions that some calls name."""
    return _calls().library


@functools.cache
def _calls() -> GraphDef:
    return GraphDef.FromString(lzma.decompress((_DATA / "op_calls.pb.xz").read_bytes()))
