"""StepOptions: what one step of a session has for itself."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from opkernel.records import dataclass
from opkernel.runtime.program.request import Variant

if TYPE_CHECKING:
    from opkernel.errors import ResourceExhaustedError
    from opkernel.kernel import CancellationManager, GraphCollector
    from opkernel.proto import StepStats
    from opkernel.runtime.program.executable import Executable
    from opkernel.runtime.traces import StepStatsCollector


class Recording:
    """The records of one step.

    Args:
        step_stats: Takes the statistics of nodes, where given.

    Attributes:
        collector: Takes the statistics of nodes, where they are asked for.
        graph_collector: Takes the graphs of functions that kernels instantiate, where graphs are asked
            for.
    """

    collector: StepStatsCollector | None = None
    graph_collector: GraphCollector | None = None

    def __init__(self, step_stats: StepStats | None = None) -> None:
        if step_stats is not None:
            from opkernel.runtime.traces import StepStatsCollector  # few steps are recorded

            self.collector = StepStatsCollector(step_stats)

    def explain(self, error: ResourceExhaustedError) -> None:
        """Add to an error which nodes hold the memory, if that is asked for."""

    def finish(self, executable: Executable) -> None:
        """End the records of a step that has succeeded."""
        if self.collector is not None:
            self.collector.finalize()


_NOTHING = Recording()


@dataclass(slots=True, eq=False)
class StepOptions:
    """The options of one step.

    Attributes:
        timeout_s: The time that the step has, in seconds; None for no limit.
        cancellation_manager: Its cancellation cancels the step, where given.
        inter_op_thread_pool: Which of the session's pools computes; -1 for the calling thread.
        recording: Takes the step's records.
        services: The services that replace the session's, by the names of SessionServices.
    """

    timeout_s: float | None = None
    cancellation_manager: CancellationManager | None = None
    inter_op_thread_pool: int = 0
    recording: Recording = _NOTHING
    services: Mapping[str, Any] = MappingProxyType({})

    def variant(self, seconds_left: float | None) -> Variant:
        """The kind of the step, if it has so much time."""
        if self.recording.collector is not None:
            return "traced"
        can_stop = seconds_left is not None or self.cancellation_manager is not None
        return "stoppable" if can_stop else ""
