"""Graphs before and after FunctionalizeControlFlow, in few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.runtime.dataflow.loop_builders import Builder

import opkernel
from opkernel.engines import ClusterArgument, CompiledCluster, Engine
from opkernel.graph import FunctionBody, Operation, Tensor
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.jit_options import JitOptions
from opkernel.optimization import OptimizedGraph
from opkernel.optimization.optimize import Grouping, copy_to_optimize


class TakesLoops(Engine):
    """A compiler that takes loops, and nothing else: no clusters are formed."""

    name, takes_loops = "takes loops", True

    def check_installed(self) -> None:
        pass

    def refusal(self, op: Operation) -> str:
        return "it takes nothing"

    def compile(self, body: FunctionBody, arguments: Sequence[ClusterArgument]) -> CompiledCluster:
        raise AssertionError("there are no clusters")


def functionalized(
    b: Builder,
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor] = (),
    targets: Sequence[Operation] = (),
) -> OptimizedGraph:
    """What the pass makes of a graph."""
    copied = copy_to_optimize(b.graph, fetches, feeds, targets)
    copied.editor.jit = JitOptions(TakesLoops())
    copied.run_passes([Grouping.PRE_PLACEMENT], {"functionalize_control_flow"})
    return copied


def run(graph: OptimizedGraph, values: Sequence[Any] = (), executor: str = "") -> list[Any]:
    """The fetches of such a graph."""
    fed = dict(zip(graph.feeds, values, strict=True))
    with opkernel.Session(graph.graph, executor_type=executor, optimize=False) as session:
        return list(session.run([*graph.fetches, *graph.targets], fed)[: len(graph.fetches)])


def all_ops(graph: OptimizedGraph) -> list[str]:
    """The ops of a graph and of the functions that it calls, sorted, without constants and placeholders."""
    needed = [op.node_def for op in graph.operations]
    called = graph.graph.function_library.reachable_definitions(needed).values()
    nodes = [*needed, *(node for function in called for node in function.node_def)]
    return sorted(node.op for node in nodes if node.op not in ("Const", "Placeholder"))


def control_flow(graph: OptimizedGraph) -> list[str]:
    """The ops of TensorFlow 1's control flow that are left."""
    return [op for op in all_ops(graph) if op in LOW_LEVEL_CONTROL_FLOW]


def check(
    b: Builder,
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor],
    values: Sequence[Any],
    wanted: Sequence[Any],
) -> OptimizedGraph:
    """The graph has the wanted values before and after, and no control flow of TensorFlow 1 after."""
    fed = dict(zip(feeds, values, strict=True))
    graph = functionalized(b, fetches, feeds)
    for found in (b.run(list(fetches), fed), run(graph, values), run(graph, values, "DATAFLOW")):
        for value, answer in zip(found, wanted, strict=True):
            np.testing.assert_allclose(value, answer, rtol=1e-5)
    assert control_flow(graph) == []
    return graph
