"""Calls that want much: each keeps to the time and the memory that it is allowed.

A recorded call is made larger: its inputs, their values, the attrs, the number of inputs. It runs in a process, with 2 s
and 256 MB allowed. The call ends within 4 s of the processor, and its process grows by at most 400 MB.

`--case` shows a call again. With OPKERNEL_SCALED_OPS="Fill Range", only calls of these ops are drawn. OPKERNEL_SCALED_DOWN=8
makes all numbers an eighth, for a quick search.
"""

import os
import random
import time

import numpy as np
from tools.campaigns.campaign import Finding
from tools.campaigns.measured import Measure, measured
from tools.campaigns.scaled_samples import samples
from tools.campaigns.scaling import Arrays, scale

import opkernel
from opkernel.device.budget import Budget
from opkernel.graph import Graph, import_graph_def
from opkernel.kernel import under_budget
from opkernel.ops.loader import load_all_ops
from opkernel.proto import GraphDef, NodeDef

__all__ = ["SECONDS_A_CASE", "begin", "case"]

SECONDS_A_CASE = 120
_DOWN = float(os.environ.get("OPKERNEL_SCALED_DOWN", "1"))
_INPUT_BYTES = int((1 << 25) / _DOWN)
"""So many bytes the inputs of a call take at most."""
_ALLOWED_S, _ALLOWED_BYTES = 2 / _DOWN, int((1 << 28) / _DOWN)
_MOST_S, _MOST_BYTES = 4 / _DOWN, int(400_000_000 / _DOWN)
_OUTPUTS = 8
"""So many outputs are fetched at most: more, and the caller wants much."""


def begin() -> None:
    """Load what calls need, once for all their processes."""
    load_all_ops()
    samples()


def case(rng: random.Random) -> str:
    """Make a call larger, and run it."""
    ops = os.environ.get("OPKERNEL_SCALED_OPS", "").split() or sorted(samples())
    sample, graph_def = rng.choice(samples()[rng.choice(ops)]), GraphDef()
    graph_def.CopyFrom(sample)
    arrays = scale(graph_def, _INPUT_BYTES, rng)
    measure = measured(
        lambda: _run(sample, {}),  # loads what the op loads when it is first called
        lambda: _run(graph_def, arrays),
        2 * _MOST_S,
    )
    problem = _problem(measure)
    if problem:
        raise Finding(f"{problem}: {measure}\n{_shown(graph_def, arrays)}")
    return measure.outcome


def _problem(measure: Measure) -> str:
    if measure.fault:
        return f"it broke\n{measure.fault}\n"
    if measure.seconds > _MOST_S:
        return "it took too long"
    return "it took too much memory" if measure.grown_bytes > _MOST_BYTES else ""


def _run(graph_def: GraphDef, feeds: Arrays) -> None:
    """Import a graph and run its last node, all of it within the time and the memory allowed."""
    with under_budget(Budget(deadline=time.monotonic() + _ALLOWED_S)):
        graph = Graph()
        import_graph_def(_with_placeholders(graph_def, feeds), name="", graph=graph)
        called = graph.get_operations()[-1]
        with opkernel.Session(graph, memory_limit_bytes=_ALLOWED_BYTES) as session:
            session.run(
                list(called.outputs)[:_OUTPUTS] or [called],
                {f"{name}:0": value for name, value in feeds.items()},
            )


def _with_placeholders(graph_def: GraphDef, feeds: Arrays) -> GraphDef:
    """The graph with placeholders for the constants that are fed."""
    nodes = [_placeholder(node) if node.name in feeds else node for node in graph_def.node]
    return GraphDef(node=nodes, library=graph_def.library, versions=graph_def.versions)


def _placeholder(constant: NodeDef) -> NodeDef:
    node = NodeDef(name=constant.name, op="Placeholder")
    node.attr["dtype"].CopyFrom(constant.attr["dtype"])
    return node


def _shown(graph_def: GraphDef, arrays: Arrays) -> str:
    node = graph_def.node[-1]
    attrs = [f"{name}={' '.join(str(node.attr[name]).split())[:200]}" for name in sorted(node.attr)]
    return f"{node.op}({', '.join([*map(_text, arrays.values()), *attrs])})"


def _text(array: np.ndarray) -> str:
    first = ", ".join(str(one)[:30] for one in array.flat[:3])
    return f"{array.dtype}{list(array.shape)} of {first} ..."
