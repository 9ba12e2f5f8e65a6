"""Recording: what a step leaves in its RunMetadata.

Source: DirectSession::RunInternal in TensorFlow core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import GraphCollector
from opkernel.proto import Message, RunMetadata
from opkernel.runtime.placement.partition_graphs import graphs_of_functions, partition_graphs
from opkernel.runtime.program.builder import StepProgram
from opkernel.runtime.program.executable import Executable
from opkernel.runtime.session.executables import LruCache
from opkernel.runtime.session.session_config import Recording, RunOptions, SessionConfig, TraceLevel

if TYPE_CHECKING:
    from opkernel.runtime.traces import CostModel


class Recorder:
    """The records of the steps of a session.

    Args:
        config: What the session allows, and says of itself.
    """

    def __init__(self, config: SessionConfig) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._costs = LruCache[int, _Costs](config.max_executables)

    def begin(self, options: RunOptions, run_metadata: Any = None) -> Recording:
        """Begin with a step, which `finish` will write to a RunMetadata where one is given.

        Raises:
            InvalidArgumentError: the session does not allow what is asked for.
            TypeError: there is no writing to `run_metadata`.
        """
        kind = getattr(run_metadata, "DESCRIPTOR", None)
        if run_metadata is not None and getattr(kind, "name", "") != "RunMetadata":
            raise TypeError(
                f"run_metadata must be a RunMetadata, not a {type(run_metadata).__name__}"
            )
        if options.output_partition_graphs and self.config.disable_output_partition_graphs:
            raise InvalidArgumentError(
                "RunOptions.output_partition_graphs() is not supported when "
                "disable_output_partition_graphs is true."
            )
        return _RunRecording(self, options, run_metadata)

    def costs(self, executable: Executable) -> _Costs:
        """The costs of the steps of an executable."""
        with self._lock:
            costs = self._costs.find(id(executable))
            return costs or self._costs.keep(id(executable), _Costs(executable))


class _RunRecording(Recording):
    """The records of one step that RunOptions ask for."""

    def __init__(
        self, recorder: Recorder, options: RunOptions, run_metadata: Message | None
    ) -> None:
        self._recorder = recorder
        self._options = options
        self._run_metadata = run_metadata
        self._metadata = RunMetadata()
        metadata = recorder.config.session_metadata
        if metadata is not None:
            self._metadata.session_metadata.name = metadata.name
            self._metadata.session_metadata.version = metadata.version
        is_traced = (
            options.trace_level > TraceLevel.NO_TRACE
            or options.report_tensor_allocations_upon_oom
            or recorder.config.build_cost_model > 0
        )
        super().__init__(self._metadata.step_stats if is_traced else None)
        self.graph_collector = GraphCollector() if options.output_partition_graphs else None

    def explain(self, error: ResourceExhaustedError) -> None:
        """Add to an error which nodes hold the memory, if that is asked for."""
        if self.collector is not None and self._options.report_tensor_allocations_upon_oom:
            error.message += self.collector.report_allocs_on_resource_exhausted(error.message)

    def finish(self, executable: Executable) -> None:
        """Write the records, in the place of the RunMetadata's former contents."""
        super().finish(executable)
        if self.collector is not None:
            self._build_cost_model(executable)
        if self._options.output_partition_graphs:
            self._add_graphs(executable.program)
        if self._run_metadata is not None:
            self._run_metadata.ParseFromString(self._metadata.SerializeToString())

    def _add_graphs(self, program: StepProgram) -> None:
        """Add the graphs that run: one for each device, and for each function that nodes call."""
        self._metadata.partition_graphs.extend(partition_graphs(program))
        collectors = [*graphs_of_functions(program), self.graph_collector]
        for collector in collectors:
            if collector is not None and collector.dirty:
                self._metadata.function_graphs.add(
                    partition_graphs=collector.partitioned_graphs,
                    pre_optimization_graph=collector.raw_graph,
                    post_optimization_graph=collector.optimized_graph,
                )

    def _build_cost_model(self, executable: Executable) -> None:
        config = self._recorder.config
        if config.build_cost_model <= 0:
            return
        costs = self._recorder.costs(executable)
        costs.steps += 1
        counted = costs.steps - config.build_cost_model_after
        if counted > 0 and counted % config.build_cost_model == 0:
            for model in costs.models:
                model.record(self._metadata.step_stats)
                self._metadata.cost_graph.MergeFrom(model.cost_graph())


class _Costs:
    """The costs of an executable's nodes, and how many of its steps were recorded."""

    def __init__(self, executable: Executable) -> None:
        from opkernel.runtime.traces import CostModel  # rarely needed

        self.steps = 0
        self.executable = executable  # so that no other has its id
        self.models: Sequence[CostModel] = [
            CostModel(one.part.operations, one.device.name) for one in executable.program.partitions
        ]
