"""RegisteredGraph: a task's part of a graph, made ready once for the steps of a session.

Source: TensorFlow core/distributed_runtime/graph_mgr.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opkernel.errors import CancelledError
from opkernel.graph import Graph, Operation
from opkernel.graph.core.structural_ops import ARG_OPS, RETVAL_OPS
from opkernel.graph.io.importer import GraphImporter, ImportOptions
from opkernel.proto import GraphDef, StepStats
from opkernel.records import dataclass, replace
from opkernel.runtime.program.limits import in_time
from opkernel.runtime.step.run_step import RunStep

if TYPE_CHECKING:
    from opkernel.device.permissions import Permissions
    from opkernel.kernel import CancellationManager, CollectiveExecutor, Rendezvous
    from opkernel.runtime.program.executable import Executable
    from opkernel.runtime.program.request import Variant
    from opkernel.runtime.session.executables import Executables

__all__ = ["RegisteredGraph", "StepOptions"]


@dataclass(frozen=True)
class StepOptions:
    """What a step of a registered graph shares with the step's parts in other tasks.

    Attributes:
        rendezvous: Where the parts meet.
        cancellation_manager: Its cancellation cancels the step here.
        timeout_s: The time that the step has, in seconds; None for no limit.
        step_stats: Takes the statistics of the nodes, where given.
        permissions: Which files the step may read and write; those of the session if None.
        collective_executor: Where groups of collective ops meet; all of the process meet in one if None.
        coordination_service_agent: The task's agent of the coordination service, where it has one.
    """

    rendezvous: Rendezvous
    cancellation_manager: CancellationManager
    timeout_s: float | None = None
    step_stats: StepStats | None = None
    permissions: Permissions | None = None
    collective_executor: CollectiveExecutor | None = None
    coordination_service_agent: Any = None


class RegisteredGraph:
    """A graph whose `_Arg` nodes are fed and whose `_Retval` nodes are fetched, in the order of their index.

    All its other nodes run, too.

    Args:
        graph_def: The graph; each node says on which device of the session it runs.
        executables_of: Makes the executables of a graph.
        new_step: Makes a step.

    Raises:
        InvalidArgumentError: a node is invalid, or lacks its device.
        NotFoundError: an op is not registered, or a needed node has no kernel.
    """

    def __init__(
        self,
        graph_def: GraphDef,
        executables_of: Callable[[Graph], Executables],
        new_step: Callable[[StepOptions, Variant, Executables], RunStep],
    ) -> None:
        graph = Graph()
        options = ImportOptions(allow_internal_names=True, expect_device=True, origin=None)
        importer = GraphImporter(graph, graph_def, options)
        importer.prepare()
        importer.commit()
        operations = graph.get_operations()
        self._feeds = tuple([op.outputs[0] for op in _by_index(operations, ARG_OPS)])
        fetches = [op.inputs[0] for op in _by_index(operations, RETVAL_OPS)]
        ends = [op for op in operations if not any(True for _ in op.consumer_edges())]
        targets = [op for op in ends if op.type not in ARG_OPS | RETVAL_OPS]
        self._fetches = [fetches, targets]
        self._executables = executables_of(graph)
        self._new_step = new_step
        self._find("stoppable")  # which tells what is wrong with the graph

    def run(self, values: Sequence[Any], options: StepOptions) -> Sequence[Any]:
        """Run one step: the arrays of the fetches, which nodes may share.

        Args:
            values: an array for each feed.
            options: the step's.

        Raises:
            OpError: whatever a kernel raised, with the node that failed.
        """
        variant: Variant = "stoppable" if options.step_stats is None else "traced"
        executable = self._find(variant)
        with in_time(options.timeout_s):
            step = self._new_step(options, variant, self._executables)
            with step.cancelled_by(options.cancellation_manager):
                try:
                    results: Sequence[Any] = executable.step(values, step)
                except CancelledError:
                    step.check()  # which knows why a wait was cancelled: the time was over, say
                    raise
            if step.stats_collector is not None:
                step.stats_collector.finalize()
        return results

    def _find(self, variant: Variant) -> Executable:
        executable = self._executables.find(self._fetches, self._feeds, variant)
        return replace(executable, answer=list)


def _by_index(operations: Sequence[Operation], types: frozenset[str]) -> list[Operation]:
    found = [op for op in operations if op.type in types]
    return sorted(found, key=lambda op: op.node_def.attr["index"].i)
