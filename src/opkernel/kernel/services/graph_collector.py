"""GraphCollector: takes the graphs that are made of the functions that a step calls.

Source: GraphCollector in TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

import threading

from opkernel.proto import GraphDef


class GraphCollector:
    """The graphs that functions became; filled from any thread.

    A kernel that instantiates functions has its step's collector take theirs, too:

        options = InstantiateOptions(graph_collector=ctx.graph_collector)
        handle = ctx.function_library.instantiate(name, attrs, options)

    Attributes:
        raw_graph: The bodies as written; the bodies of several functions are in one graph.
        optimized_graph: The bodies as passes have left them, likewise.
        partitioned_graphs: The part of them that each device runs.
        dirty: Whether anything was collected since `clear_graphs`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear_graphs()

    def collect_raw_graph(self, graph_def: GraphDef) -> None:
        """Take a body as it is."""
        with self._lock:
            self.raw_graph.MergeFrom(graph_def)
            self.dirty = True

    def collect_optimized_graph(self, graph_def: GraphDef) -> None:
        """Take a body as passes have left it."""
        with self._lock:
            self.optimized_graph.MergeFrom(graph_def)
            self.dirty = True

    def collect_partitioned_graph(self, graph_def: GraphDef) -> None:
        """Take the graph that one device runs."""
        with self._lock:
            self.partitioned_graphs.append(graph_def)
            self.dirty = True

    def clear_graphs(self) -> None:
        """Forget everything."""
        with self._lock:
            self.raw_graph, self.optimized_graph = GraphDef(), GraphDef()
            self.partitioned_graphs: list[GraphDef] = []
            self.dirty = False
