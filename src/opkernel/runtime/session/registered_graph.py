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
from opkernel.proto import GraphDef
from opkernel.records import replace
from opkernel.runtime.program.limits import step_time
from opkernel.runtime.session.step_options import StepOptions

if TYPE_CHECKING:
    from opkernel.runtime.program.executable import Executable
    from opkernel.runtime.program.request import Variant
    from opkernel.runtime.session.step_runner import StepRunner


class RegisteredGraph:
    """A graph whose `_Arg` nodes are fed and whose `_Retval` nodes are fetched, in the order of their index.

    All its other nodes run, too.

    Args:
        graph_def: The graph; each node says on which device of the session it runs.
        runner: Makes what runs the steps of a graph in the session.

    Raises:
        InvalidArgumentError: a node is invalid, or lacks its device.
        NotFoundError: an op is not registered, or a needed node has no kernel.
    """

    def __init__(self, graph_def: GraphDef, runner: Callable[[Graph], StepRunner]) -> None:
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
        self._runner = runner(graph)
        self._find("stoppable")  # which tells what is wrong with the graph

    def run(self, values: Sequence[Any], options: StepOptions) -> Sequence[Any]:
        """Run one step: the arrays of the fetches, which nodes may share.

        Args:
            values: an array for each feed.
            options: the step's.

        Raises:
            OpError: whatever a kernel raised, with the node that failed.
        """
        variant = options.variant(options.timeout_s)
        executable = self._find(variant)
        with step_time(options.timeout_s) as seconds_left:
            step = self._runner.step(options, variant, seconds_left)
            with step.cancelled_by(options.cancellation_manager):
                try:
                    results: Sequence[Any] = executable.step(values, step)
                except CancelledError:
                    step.check()  # which knows why a wait was cancelled: the time was over, say
                    raise
            options.recording.finish(executable)
        return results

    def _find(self, variant: Variant) -> Executable:
        executable = self._runner.executables.find(self._fetches, self._feeds, variant)
        return replace(executable, answer=list)


def _by_index(operations: Sequence[Operation], types: frozenset[str]) -> list[Operation]:
    found = [op for op in operations if op.type in types]
    return sorted(found, key=lambda op: op.node_def.attr["index"].i)
