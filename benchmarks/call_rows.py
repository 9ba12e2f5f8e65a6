"""What `catalogue.py --every` has its workers measure: a graph whose last node is the call of an op.

The graph is run by a session, without optimization and without fetching results: both systems compute the same, and neither
makes arrays of its results.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any


def step_of(name: str, system: Any, inputs: list[Any]) -> Callable[[], object]:
    """The step that runs the last node of a serialized graph, by `opkernel` or `tensorflow`.

    Args:
        name: The op; with ` in NumPy` after it, opkernel's loops run in NumPy, otherwise compiled.
        system: The module.
        inputs: The serialized GraphDef.
    """
    (serialized,) = inputs
    if system.__name__ == "tensorflow":
        return _by_tensorflow(system.compat.v1, serialized)
    return _by_opkernel(serialized, "numpy" if name.endswith(" in NumPy") else "compiled")


def _by_tensorflow(tf: Any, serialized: bytes) -> Callable[[], object]:
    graph = tf.Graph()
    with graph.as_default():
        graph_def = tf.GraphDef.FromString(serialized)
        tf.import_graph_def(graph_def, name="")
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1  # L0
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    session = tf.Session(graph=graph, config=config)
    step: Callable[[], object] = session.make_callable(
        graph.get_operation_by_name(graph_def.node[-1].name)
    )
    return step


def _by_opkernel(serialized: bytes, form: Any) -> Callable[[], object]:
    from opkernel.graph import Graph, import_graph_def
    from opkernel.proto import GraphDef
    from opkernel.providers.loops import loops_run
    from opkernel.runtime import Session

    graph, graph_def = Graph(), GraphDef.FromString(serialized)
    import_graph_def(graph_def, name="", graph=graph)
    session = Session(graph, optimize=False)
    run = session.make_callable(graph.get_operation_by_name(graph_def.node[-1].name))

    def step() -> object:
        with ExitStack() as stack:
            stack.enter_context(loops_run(form))
            return run()

    return step
