"""How a session is set up (SessionConfig), and what may be asked of its steps (RunOptions, CallableOptions).

Source: TensorFlow core/protobuf/config.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import CancellationManager
from opkernel.proto import CallableOptions as CallableOptionsProto
from opkernel.proto import ConfigProto, GraphOptions, Message, OptimizerOptions, RewriterConfig
from opkernel.proto import RunOptions as RunOptionsProto
from opkernel.records import dataclass, field
from opkernel.runtime.program.request import GlobalJitLevel, Jit, Passes, Variant, choose_jit

if TYPE_CHECKING:
    from opkernel.kernel import GraphCollector
    from opkernel.proto import StepStats
    from opkernel.runtime.program.executable import Executable
    from opkernel.runtime.program.inter_op_pool import InterOpPools, ThreadPoolOption
    from opkernel.runtime.traces import StepStatsCollector


_SWITCHES = {
    "arithmetic_optimization": ("arithmetic", "transposes"),
    "common_subgraph_elimination": ("common_subexpressions",),
    "constant_folding": ("constant_folding", "batch_norm_folding", "input_folding"),
    "dependency_optimization": ("control_edges", "identities"),
    "function_optimization": ("dead_branches", "function_inlining"),
    "layout_optimizer": ("layout",),
    "loop_optimization": ("loop_invariants", "while_invariants"),
    "remapping": ("fusion", "fusion_onednn"),
    "shape_optimization": ("shape_materialization", "shape_specialization"),
}
"""Our passes by TensorFlow's switches, the fields of RewriterConfig."""


_LEVELS: dict[int, GlobalJitLevel] = {-1: "OFF", 0: "DEFAULT", 1: "ON_1", 2: "ON_2"}


@dataclass(frozen=True)
class SessionMetadata:
    """The owner's data about a session; kernels see it as `ctx.session_metadata`.

    Attributes:
        name: The name of the model, say.
        version: Its version, not negative.
    """

    name: str = ""
    version: int = 0

    def __post_init__(self) -> None:
        if self.version < 0:
            raise InvalidArgumentError(
                f"Session version shouldn't be negative: name: {self.name!r}, "
                f"version: {self.version}"
            )


@dataclass(frozen=True)
class SessionConfig:
    """Options of a session, under the names of TensorFlow's ConfigProto.

    Whatever takes a SessionConfig takes a message `ConfigProto`, too; its other fields are ignored.

    Attributes:
        device_count: The number of devices by type; one CPU unless it says otherwise.
        intra_op_parallelism_threads: How many threads may work on one kernel; 0 for one a processor.
        inter_op_parallelism_threads: How many threads compute expensive kernels side by side. With 0,
            branches of a graph run on the threads of kernels if that is faster. With a negative number,
            the thread that runs a step computes all nodes.
        use_per_session_threads: The session has these threads to itself; otherwise all sessions with the
            same number share them.
        session_inter_op_thread_pool: The pools that steps choose from, where there are several.
        operation_timeout_in_ms: The time that a step without a timeout of its own may take; 0 for no
            limit.
        allow_soft_placement: A node on a device that does not exist runs on another one.
        log_device_placement: Log where each node is placed, to the logger `opkernel.placement`.
        log_memory: Log what kernels allocate (LogMemory), to the logger `opkernel.memory`.
        place_pruned_graph: Only the nodes that a step needs must find their device and kernel.
        session_metadata: The owner's data about the session.
        disable_optimize_for_static_graph: The graph given by `create` may be extended.
        disable_output_partition_graphs: No step may ask for its graphs.
        build_cost_model: The RunMetadata has the cost graph each time after so many recorded steps;
            never if 0.
        build_cost_model_after: How many first steps do not count for `build_cost_model`.
        executor_type: The registered name of the executor; empty for the default one.
        optimize: The optimisation passes that change the part that a step needs before it is compiled:
            all, none, or passes by name.
        providers: The names of the kernel providers to ask for kernels, in this order. Where not given,
            the providers of OPKERNEL_PROVIDERS, or all of them by falling priority.
        jit: The engine that compiles parts of graphs: `xla`, `openvino`, `auto` for the fastest of those that are
            installed, or `off`. A lower precision may follow, as in `openvino:bfloat16`. Where empty, what OPKERNEL_JIT
            says, else off. docs/engines.md says more.
        global_jit_level: ON_1 and ON_2 ask for `jit` without saying which; with OFF, nodes alone are compiled that
            are marked by `_XlaCompile` or `_XlaMustCompile`.
        min_cluster_size: Parts with fewer operations are not compiled; None for what the engine says.
        lazy_compilation: A part is compiled by one node, and run by another or, where it could not be compiled, by a
            call of its function (_XlaCompile, _XlaRun); else one node does all (XlaLaunch).
        checks_feed_shapes: Values must have the shapes of the tensors that they are fed for, as TensorFlow's Python
            checks; its C++ does not.
        max_executables: How many combinations of feeds and fetches stay compiled. Beyond that, the
            combinations that were not used for longest are dropped, and compiled again when needed.
    """

    device_count: Mapping[str, int] = field(default_factory=dict)
    intra_op_parallelism_threads: int = 0
    inter_op_parallelism_threads: int = 0
    use_per_session_threads: bool = False
    session_inter_op_thread_pool: Sequence[ThreadPoolOption] = ()
    operation_timeout_in_ms: int = 0
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    log_memory: bool = False
    place_pruned_graph: bool = False
    session_metadata: SessionMetadata | None = None
    disable_optimize_for_static_graph: bool = False
    disable_output_partition_graphs: bool = False
    build_cost_model: int = 0
    build_cost_model_after: int = 0
    executor_type: str = ""
    optimize: Passes = True
    providers: Sequence[str] | None = None
    checks_feed_shapes: bool = True
    max_executables: int = 1000
    jit: str = ""
    global_jit_level: GlobalJitLevel = "DEFAULT"
    min_cluster_size: int | None = None
    lazy_compilation: bool = False

    def __post_init__(self) -> None:
        if self.max_executables < 1:
            raise InvalidArgumentError(
                f"max_executables must be at least 1, got {self.max_executables}"
            )

    @classmethod
    def of(cls, config: AnyConfig) -> SessionConfig:
        """The options from what a caller gave: these, or the message of any library.

        Raises:
            InvalidArgumentError: a value makes no sense.
            TypeError: it is neither.
        """
        if isinstance(config, SessionConfig):
            return config
        return _from_proto(ConfigProto.FromString(_message(config, "config", cls)))

    def new_pools(self) -> InterOpPools | None:
        """The pools of a session with these options; None where steps run in their callers' threads.

        Raises:
            InvalidArgumentError: a named pool exists with another number of threads.
        """
        if not self.session_inter_op_thread_pool and self.inter_op_parallelism_threads <= 0:
            return None
        from opkernel.runtime.program.inter_op_pool import InterOpPools  # few sessions have pools

        return InterOpPools(
            self.inter_op_parallelism_threads,
            per_session=self.use_per_session_threads,
            pools=self.session_inter_op_thread_pool,
        )

    def new_jit(self) -> Jit:
        """The engines that a session with these options has; raises as `choose_jit` does."""
        return choose_jit(
            self.jit,
            level=self.global_jit_level,
            min_cluster_size=self.min_cluster_size,
            has_compile_nodes=self.lazy_compilation,
        )


AnyConfig = SessionConfig | Message


def _message(given: Any, name: str, kind: type) -> bytes:
    """A message of any library as bytes; raises TypeError for what is no message."""
    if not hasattr(given, "SerializeToString"):
        raise TypeError(f"{name} must be a {kind.__name__}, not a {type(given).__name__}")
    written: bytes = given.SerializeToString()
    return written


def _from_proto(proto: ConfigProto) -> SessionConfig:
    from opkernel.runtime.program.inter_op_pool import ThreadPoolOption  # few sessions have pools

    experimental = proto.experimental
    metadata = None
    if experimental.HasField("session_metadata"):
        given = experimental.session_metadata
        metadata = SessionMetadata(given.name, given.version)
    return SessionConfig(
        device_count=dict(proto.device_count),
        intra_op_parallelism_threads=proto.intra_op_parallelism_threads,
        inter_op_parallelism_threads=proto.inter_op_parallelism_threads,
        use_per_session_threads=proto.use_per_session_threads,
        session_inter_op_thread_pool=[
            ThreadPoolOption(one.num_threads, one.global_name)
            for one in proto.session_inter_op_thread_pool
        ],
        operation_timeout_in_ms=proto.operation_timeout_in_ms,
        allow_soft_placement=proto.allow_soft_placement,
        log_device_placement=proto.log_device_placement,
        place_pruned_graph=proto.graph_options.place_pruned_graph,
        session_metadata=metadata,
        disable_optimize_for_static_graph=experimental.disable_optimize_for_static_graph,
        disable_output_partition_graphs=experimental.disable_output_partition_graphs,
        build_cost_model=proto.graph_options.build_cost_model,
        build_cost_model_after=proto.graph_options.build_cost_model_after,
        executor_type=experimental.executor_type,
        optimize=_passes(proto.graph_options),
        global_jit_level=_LEVELS.get(
            proto.graph_options.optimizer_options.global_jit_level, "DEFAULT"
        ),
    )


def _passes(options: GraphOptions) -> Passes:
    """The passes that TensorFlow's switches leave on."""
    level = options.optimizer_options.opt_level
    switches = options.rewrite_options
    if level == OptimizerOptions.L0 or switches.disable_meta_optimizer:
        return False
    on_request = {
        "debug_stripper": switches.debug_stripper == RewriterConfig.ON,
        "scoped_allocator": _merges_reductions(switches),
    }
    off = {name for name, is_wanted in on_request.items() if not is_wanted}
    for switch, passes in _SWITCHES.items():
        if getattr(switches, switch) == RewriterConfig.OFF:
            off.update(passes)
    if off == on_request.keys():
        return True
    from opkernel.optimization import optimization_passes  # only where a switch is set

    return frozenset(one.name for one in optimization_passes()) - off


def _merges_reductions(switches: RewriterConfig) -> bool:
    """Whether the pass `scoped_allocator` is wanted, for the op that it knows."""
    if switches.scoped_allocator_optimization != RewriterConfig.ON:
        return False
    from opkernel.optimization.scoped_allocator import MERGED  # only where the switch is on

    ops = switches.scoped_allocator_opts.enable_op
    return not ops or MERGED in ops


class TraceLevel(IntEnum):
    """The amount that is recorded of a step."""

    NO_TRACE = 0
    SOFTWARE_TRACE = 1
    HARDWARE_TRACE = 2
    FULL_TRACE = 3


@dataclass(frozen=True)
class RunOptions:
    """Options of one step. The message `RunOptions` of TensorFlow is taken wherever this is.

    Attributes:
        timeout_in_ms: The step fails with DeadlineExceededError at the first check after this time; 0
            stands for the session's `operation_timeout_in_ms`.
        trace_level: Above NO_TRACE the step's statistics are recorded in its RunMetadata.
        inter_op_thread_pool: Which of the session's pools computes; -1 for the calling thread.
        output_partition_graphs: Put what is run into the RunMetadata, a graph for each device.
        report_tensor_allocations_upon_oom: Record the step's memory, to tell it where there is not
            enough.
        cancellation_manager: Its cancellation cancels the step. One may serve many steps, and is
            spent when it was cancelled.
    """

    timeout_in_ms: int = 0
    trace_level: int = TraceLevel.NO_TRACE
    inter_op_thread_pool: int = 0
    output_partition_graphs: bool = False
    report_tensor_allocations_upon_oom: bool = False
    cancellation_manager: CancellationManager | None = None

    NO_TRACE: ClassVar = TraceLevel.NO_TRACE
    SOFTWARE_TRACE: ClassVar = TraceLevel.SOFTWARE_TRACE
    HARDWARE_TRACE: ClassVar = TraceLevel.HARDWARE_TRACE
    FULL_TRACE: ClassVar = TraceLevel.FULL_TRACE

    @classmethod
    def of(cls, options: AnyRunOptions | None) -> RunOptions:
        """The options from what a caller gave: these, the message of any library, or none.

        Raises:
            TypeError: it is something else.
        """
        if options is None:
            return _NONE
        if isinstance(options, RunOptions):
            return options
        given = RunOptionsProto.FromString(_message(options, "options", cls))
        return cls(
            timeout_in_ms=given.timeout_in_ms,
            trace_level=given.trace_level,
            inter_op_thread_pool=given.inter_op_thread_pool,
            output_partition_graphs=given.output_partition_graphs,
            report_tensor_allocations_upon_oom=given.report_tensor_allocations_upon_oom,
        )


AnyRunOptions = RunOptions | Message

_NONE = RunOptions()


@dataclass(frozen=True)
class CallableOptions:
    """Feeds, fetches and targets by name. TensorFlow's message is taken wherever this is.

    Attributes:
        feed: The tensors that are fed, in the order of the callable's arguments.
        fetch: The tensors that it returns.
        target: The nodes that it runs besides.
        run_options: The options of its steps.
        tensor_connection: Pairs of tensors; what reads the second one gets the first.
        feed_devices: Where fed tensors are, by name; the first device where nothing is said.
        fetch_devices: Where fetched tensors are to be.
    """

    feed: Sequence[str] = ()
    fetch: Sequence[str] = ()
    target: Sequence[str] = ()
    run_options: AnyRunOptions | None = None
    tensor_connection: Sequence[tuple[str, str]] = ()
    feed_devices: Mapping[str, str] = field(default_factory=dict)
    fetch_devices: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: AnyCallableOptions) -> CallableOptions:
        """The options from what a caller gave: these, or the message of any library.

        Raises:
            TypeError: it is neither.
        """
        if isinstance(options, CallableOptions):
            return options
        given = CallableOptionsProto.FromString(_message(options, "callable_options", cls))
        return cls(
            tuple(given.feed),
            tuple(given.fetch),
            tuple(given.target),
            given.run_options if given.HasField("run_options") else None,
            [(one.from_tensor, one.to_tensor) for one in given.tensor_connection],
            dict(given.feed_devices),
            dict(given.fetch_devices),
        )


AnyCallableOptions = CallableOptions | Message


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
        return "traced" if self.is_traced else self.untraced_variant(seconds_left)

    @property
    def is_traced(self) -> bool:
        """Whether the statistics of nodes are recorded."""
        return self.recording.collector is not None

    def untraced_variant(self, seconds_left: float | None) -> Variant:
        """The kind that the step would be if it were not traced."""
        can_stop = seconds_left is not None or self.cancellation_manager is not None
        return "stoppable" if can_stop else ""
