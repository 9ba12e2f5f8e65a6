"""DataflowExecutor: a graph, for certain feeds and fetches, ready to be run by dataflow."""

from collections.abc import Sequence
from typing import Any

from opkernel.kernel import Step
from opkernel.runtime.dataflow.graph_view import GraphView
from opkernel.runtime.dataflow.node_item import NodeItem
from opkernel.runtime.dataflow.run import DataflowRun


class DataflowExecutor:
    """Runs a graph node by node; used from any thread.

    Args:
        view: The graph.

    Attributes:
        view: The graph.
        uses_step: Whether any node looks at the step: one may.
    """

    uses_step = True

    def __init__(self, view: GraphView) -> None:
        self.view = view

    def run(self, step: Step, *feeds: Any) -> Sequence[Any]:
        """Run one step; the fetched values.

        Raises:
            OpError: the first that a node raised.
            InvalidArgumentError: a fetch is dead.
        """
        run = DataflowRun(self.view.root, step)
        if step.stats_collector is None:
            return run.run(feeds)
        from opkernel.runtime.traces.traced_run import run_traced  # rarely needed

        traced: Sequence[Any] = run_traced(run, step.stats_collector, feeds)
        return traced

    def run_counting(self, step: Step, *feeds: Any) -> tuple[Sequence[Any], dict[str, int]]:
        """Run one step; the fetched values, and how many times each node was computed, by name.

        The nodes of functions that are executed by dataflow, too, count as `function:node`. Constants
        outside loops are not computed: steps begin with them. Dead nodes do not count.
        """
        counts: dict[str, int] = {}
        return DataflowRun(self.view.root, step, counts).run(feeds), counts

    def __repr__(self) -> str:
        loops = len(self.view.frames) - 1
        return f"<opkernel.DataflowExecutor of {loops:,} loops; `.source` lists its operations>"

    @property
    def source(self) -> str:
        """The nodes as text, loop by loop, each with the nodes that it waits for."""
        lines = ["# Run by the dataflow executor, node by node as inputs arrive."]
        for frame in self.view.frames.values():
            lines.append(f"loop {frame.name!r}:" if frame.name else "graph:")
            lines += [f"    {_described(item)}" for item in frame.items if item.op.type]
        return "\n".join(lines) + "\n"


def _described(item: NodeItem) -> str:
    op = item.op
    inputs = [tensor.name for tensor in op.inputs]
    inputs += [f"^{control.name}" for control in op.control_inputs]
    return f"{op.name!r} = {op.type}({', '.join(map(repr, inputs))})"
