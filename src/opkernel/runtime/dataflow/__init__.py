"""The dataflow executor: runs each node when its inputs are there.

It runs every graph: loops of TensorFlow 1, asynchronous kernels side by side, expensive kernels on
threads. `graph_view` is what it knows of a graph, `frames` what it knows of a step, `run` the loop
that computes nodes, `executor` the whole.

Source: TensorFlow core/common_runtime/executor.cc, graph_view.cc, propagator_state.cc.
"""

from opkernel.runtime.dataflow.executor import DataflowExecutor
from opkernel.runtime.dataflow.graph_view import GraphView
from opkernel.runtime.dataflow.run import node_of_frame

__all__ = ["DataflowExecutor", "GraphView", "node_of_frame"]
