"""The dataflow executor: runs each node when its inputs are there.

It runs every graph: loops of TensorFlow 1, asynchronous kernels side by side, expensive kernels on
threads. `graph_view` holds what it knows of a graph, and `frames` what it knows of a step. `run` has
the executor, and the loop that computes nodes. `parts` finds the pieces of a graph that run as plans,
and `shortcuts` the nodes that need not run.

Source: TensorFlow core/common_runtime/executor.cc, graph_view.cc, propagator_state.cc.
"""
