"""The dataflow executor: runs each node when its inputs are there.

It runs every graph: loops of TensorFlow 1, asynchronous kernels side by side, expensive kernels on
threads. `graph_view` holds what it knows of a graph, and `frames` what it knows of a step. `run` is the
loop that computes nodes, and `executor` puts all together.

Source: TensorFlow core/common_runtime/executor.cc, graph_view.cc, propagator_state.cc.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
