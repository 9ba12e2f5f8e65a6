"""Graphs whose operations are marked for compilation."""

from collections.abc import Collection, Iterable

from opkernel.graph import Graph, Operation
from opkernel.graph.edit.jit_options import JitOptions
from opkernel.optimization.clusters.mark_for_compilation import mark_for_compilation
from opkernel.optimization.clusters.marks import CLUSTER
from opkernel.optimization.optimize import Grouping, copy_to_optimize
from opkernel.proto import NodeDef
from opkernel.runtime.engines.engine import engine_named

__all__ = ["Marked", "clusters", "ends", "mark", "passed"]


class Marked:
    """The marks of a graph.

    Attributes:
        clusters: The names of the nodes of each cluster.
        outside: Why nodes are in none.
    """

    def __init__(self, clusters: Collection[frozenset[str]], outside: dict[str, str]) -> None:
        self.clusters, self.outside = set(clusters), outside

    def together(self, *names: str) -> bool:
        """Whether nodes are in one cluster."""
        return any(set(names) <= one for one in self.clusters)

    def has(self, name: str) -> bool:
        """Whether a node is in a cluster."""
        return self.together(name)


def ends(graph: Graph):
    """The operations that nothing needs."""
    return [op for op in graph.get_operations() if not op.consumer_edges()]


def passed(graph: Graph, *names: str) -> dict[str, Operation]:
    """What is left of a graph after some of the passes that form clusters for XLA, by name."""
    copied = copy_to_optimize(graph, [], [], ends(graph))
    copied.editor.jit = JitOptions(engine_named("xla"), True, 1)
    copied.run_passes([Grouping.POST_REWRITE_FOR_EXEC], names)
    return {op.name: op for op in copied.operations}


def mark(graph: Graph, *, is_global=True, min_size=1, max_size=1 << 31, targets=None) -> Marked:
    """Mark what some operations of a graph need, by default all of them."""
    copied = copy_to_optimize(graph, [], [], ends(graph) if targets is None else targets)
    options = JitOptions(engine_named("xla"), is_global, min_size, max_size)
    copied.editor.jit = options
    copied.editor.begin("mark_for_compilation")
    mark_for_compilation(copied.editor)
    return Marked(clusters(op.message for op in copied.graph.get_operations()), options.outside)


def clusters(nodes: Iterable[NodeDef]) -> set[frozenset[str]]:
    """The nodes of each cluster, by the attrs of NodeDefs."""
    found: dict[bytes, set[str]] = {}
    for node in nodes:
        if CLUSTER in node.attr:
            found.setdefault(node.attr[CLUSTER].s, set()).add(node.name)
    return {frozenset(one) for one in found.values()}
