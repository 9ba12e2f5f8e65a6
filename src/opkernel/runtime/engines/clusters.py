"""clusters_of: which parts of a graph an engine would compile, and why it leaves out the rest."""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.edit.jit_options import JitOptions
from opkernel.optimization import Grouping, copy_to_optimize
from opkernel.records import dataclass
from opkernel.runtime.engines.engine import Engine


@dataclass(frozen=True)
class ClusterNodes:
    """A cluster.

    Attributes:
        name: The name of the node that launches it.
        nodes: The names of its nodes, in the order of the graph.
    """

    name: str
    nodes: Sequence[str]


@dataclass(frozen=True)
class Clusters:
    """What an engine makes of a graph.

    Attributes:
        clusters: The clusters, in the order of the graph.
        outside: Why nodes are in none, by their names.
        left: How many operations the graph has then, constants and clusters not counted.
    """

    clusters: Sequence[ClusterNodes]
    outside: dict[str, str]
    left: int


def clusters_of(
    graph: Graph,
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor] = (),
    targets: Sequence[Operation] = (),
    *,
    engine: Engine,
    min_cluster_size: int | None = None,
) -> Clusters:
    """The clusters of what computes `fetches`, once all passes have run.

    Raises:
        OpError: the graph is not in order.
    """
    options = JitOptions(engine, True, min_cluster_size)
    copied = copy_to_optimize(graph, fetches, feeds, targets)
    copied.editor.jit = options
    copied.run_passes(Grouping)
    clusters = [
        ClusterNodes(
            one.what.split()[2], [name for name in one.parts if name not in options.outside]
        )
        for one in copied.changes
        if one.pass_name == "mark_for_compilation"
    ]
    there = {op.name for op in copied.operations}
    kept = [one for one in clusters if one.name in there]
    others = {op.name for op in copied.operations if op.type not in ("Const", "XlaLaunch")}
    outside = {name: why for name, why in options.outside.items() if name in others}
    return Clusters(kept, outside, len(others))
