"""Damaged GraphDefs: each is refused with an OpError, or runs, and then alike in all executors."""

import random

from tools.campaigns.damage import MUTATIONS
from tools.campaigns.samples import calls, graph_of_call, graphs
from tools.campaigns.ways import check_alike, ends_of, feeds_of

import opkernel.proto
from opkernel.graph import Graph, import_graph_def
from opkernel.proto import GraphDef

__all__ = ["case"]


def case(rng: random.Random) -> str:
    """Damage a graph, import it, and run what nothing else consumes."""
    damaged = rng.choice(MUTATIONS)(_sample(rng), rng)
    try:
        graph_def = GraphDef.FromString(damaged)
    except opkernel.proto.DecodeError:
        return "no GraphDef"
    graph = Graph()
    import_graph_def(graph_def, name="", graph=graph)
    return check_alike(graph, ends_of(graph), feeds_of(graph))


def _sample(rng: random.Random) -> bytes:
    """One of the graphs, or some calls side by side."""
    if rng.random() < 0.4:
        return rng.choice(graphs())
    chosen = rng.sample(calls(), rng.choice([1, 2, 4]))
    nodes = {node.name: node for call in chosen for node in call}  # calls may need the same ones
    graph_def = graph_of_call([*nodes.values()])
    graph_def.versions.producer = rng.choice([2474, 2474, 24, 0])
    return graph_def.SerializeToString()
