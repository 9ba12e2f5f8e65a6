from opkernel.runtime.traces.node_exec_stats import NodeExecStatsWrapper as NodeExecStatsWrapper
from opkernel.runtime.traces.profile import CostModel as CostModel
from opkernel.runtime.traces.profile import Profile as Profile
from opkernel.runtime.traces.profile import ProfileRow as ProfileRow
from opkernel.runtime.traces.profile import profile_of as profile_of
from opkernel.runtime.traces.step_stats_collector import StepStatsCollector as StepStatsCollector
from opkernel.runtime.traces.trace_files import write_chrome_trace as write_chrome_trace
from opkernel.runtime.traces.trace_files import write_perfetto_trace as write_perfetto_trace
from opkernel.runtime.traces.tracing_watcher import TracingWatcher as TracingWatcher

__all__: list[str]
