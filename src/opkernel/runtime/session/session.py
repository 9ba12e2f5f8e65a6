"""Session: runs parts of a graph.

Each combination of feeds and fetches is compiled once and kept (`executables`). A step converts the fed
values, runs the compiled program and builds the answer. A session may be used from many threads. When a
kernel is registered anew, the next step has the new kernel; steps under way finish with the old one.
Source: TensorFlow python/client/session.py, core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from opkernel.device.allocation import current_allocation_limit
from opkernel.device.budget import Budget, current_budget
from opkernel.device.local_device import DeviceAttributes
from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from opkernel.graph import Graph, get_default_graph
from opkernel.graph.core.runtime_hooks import notebook_html
from opkernel.interrupts import contextmanager, setting
from opkernel.kernel import (
    CancellationManager,
    choose_providers,
    forget_recycled,
)
from opkernel.messages import shown
from opkernel.proto import GraphDef, Message
from opkernel.records import replace
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.program.feeds import as_feed_dict, as_feed_list
from opkernel.runtime.program.limits import Limits, in_time
from opkernel.runtime.program.request import NO_JIT, Passes, Variant
from opkernel.runtime.session.executables import ExecutableParams, Executables
from opkernel.runtime.session.session_config import AnyConfig, SessionConfig
from opkernel.runtime.session.target import (
    SessionTarget,
    TargetOptions,
    TargetSession,
    ThisProcess,
)
from opkernel.runtime.step.run_step import RunStep, SessionServices
from opkernel.runtime.step.session_state import LocalSessionState

if TYPE_CHECKING:
    from opkernel.kernel import CollectiveExecutor
    from opkernel.runtime.program.shape_specialization import Shapes
    from opkernel.runtime.session.partial_run import PartialRuns
    from opkernel.runtime.session.recording import Recorder
    from opkernel.runtime.session.registered_graph import RegisteredGraph, StepOptions
    from opkernel.runtime.session.run_options import AnyRunOptions, RunOptions
    from opkernel.runtime.step.inter_op_pool import InterOpPool
    from opkernel.runtime.watch.sanitizer import Sanitizer

__all__ = ["Session"]

_session_numbers = itertools.count(1)
_default_sessions: ContextVar[tuple[Session, ...]] = ContextVar("default_sessions", default=())
_open_sessions: weakref.WeakSet[Session] = weakref.WeakSet()
_DEFAULTS = SessionConfig(allow_soft_placement=True)


class Session:
    """Runs operations of a graph and computes its tensors.

        with opkernel.Session(graph) as session:
            y = session.run("y:0", {"x:0": x})

    Within the block, the session is the default session, as by `as_default`. The end of the block closes
    the session.

    The graph may grow between steps. Only the nodes that a step needs must find their device and kernel.
    With several devices (`device_count` of the config), the whole graph is placed.

    Args:
        graph: the graph; the default graph where not given.
        config: a SessionConfig, or TensorFlow's ConfigProto. Where not given, nodes whose device
            does not exist run on one that does (`allow_soft_placement`).
        memory_limit_bytes: the most memory that the constants of the graph and the tensors that a step
            holds at once may take together. Where not given, one tensor may take half of the machine's
            memory. docs/security.md says what counts.
        sanitize: watch the kernels: a step fails with InternalError where one writes to an input or
            beside its memory, leaves an output unwritten, or breaks what its op declares. Slow.
        collective_executor: where the groups of collective ops meet; all sessions of the process
            meet in one where not given.
        executor_type: the `executor_type` of the config, in short.
        inter_op_threads: how many threads of the session's own compute expensive kernels side by side.
            Short for the config's `inter_op_parallelism_threads` with `use_per_session_threads`.
        optimize: the `optimize` of the config, in short.
        permissions: which files the graph may read and write; none where not given.
        providers: the `providers` of the config, in short.
        jit: the `jit` of the config, in short.
        target: where the graph runs, such as an `opkernel.distributed.RayCluster`; in this process where not
            given. The other arguments then hold for the graph's part in each task.

    Raises:
        InvalidArgumentError, NotFoundError: the config makes no sense.
        UnavailableError: the target cannot be reached.
    """

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        config: AnyConfig | None = None,
        memory_limit_bytes: int | None = None,
        sanitize: bool = False,
        collective_executor: CollectiveExecutor | None = None,
        executor_type: str = "",
        inter_op_threads: int = 0,
        optimize: Passes | None = None,
        permissions: Permissions = NO_PERMISSIONS,
        providers: Sequence[str] | None = None,
        jit: str = "",
        target: SessionTarget | None = None,
    ) -> None:
        config = _DEFAULTS if config is None else SessionConfig.of(config)
        if inter_op_threads:
            config = replace(
                config, inter_op_parallelism_threads=inter_op_threads, use_per_session_threads=True
            )
        config = replace(
            config,
            executor_type=executor_type or config.executor_type,
            optimize=config.optimize if optimize is None else optimize,
            providers=config.providers if providers is None else providers,
            jit=jit or config.jit,
        )
        self._config = config
        self._is_closed = False
        self._pools = config.new_pools()
        self._pool = self._pool_for(0)
        self._state = LocalSessionState()
        options = TargetOptions(config, permissions, memory_limit_bytes, sanitize)
        self._target = _new_target(target, options)
        self._devices = self._target.devices
        self._params = self._new_params(options)
        self._cancellation = CancellationManager()
        self._services = SessionServices(
            f"session_{next(_session_numbers)}",
            config.session_metadata,
            self._state,
            self._devices.mgr.cleanup,
            collective_executor,
            None,
            self._cancellation,
            config.log_memory,
            config.inter_op_parallelism_threads < 0,
            self._params.executor_type,
            permissions,
        )
        self._timeout_s = config.operation_timeout_in_ms / 1000 or None
        self._set_graph(get_default_graph() if graph is None else graph)
        _open_sessions.add(self)

    def _new_params(self, options: TargetOptions) -> ExecutableParams:
        """What programs are made with; where others run them, they have the limits, watchers and engines."""
        config, is_here, budget = options.config, not self._target.is_remote, None
        if options.memory_limit_bytes is not None and is_here:
            budget = Budget(options.memory_limit_bytes, outer=current_budget())
        return ExecutableParams(
            self._target,
            self._state,
            Limits(budget, self._devices.client_device.intra_op_threads),
            config.executor_type,
            _new_sanitizer() if options.sanitize and is_here else None,
            self._pool,
            config.log_device_placement,
            config.optimize,
            None if config.providers is None else choose_providers(config.providers),
            config.max_executables,
            not config.place_pruned_graph,
            config.new_jit() if is_here else NO_JIT,
        )

    def _set_graph(self, graph: Graph) -> None:
        """Run this graph from now on; none was run before."""
        if not isinstance(graph, Graph):
            raise TypeError(f"graph must be a Graph, not a {type(graph).__name__}")
        self.graph = graph
        self._executables = Executables(graph, self._params)
        self._services.function_library = self._executables.library

    def _pool_for(self, index: int) -> InterOpPool | None:
        """The pool for a step (`RunOptions.inter_op_thread_pool`); None: the caller's thread."""
        pools = self._pools
        if pools is None:
            if index == 0:
                return None
            from opkernel.runtime.step.inter_op_pools import InterOpPools  # few steps choose

            pools = InterOpPools.none()
        return pools.choose(index)

    # Steps.

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: AnyRunOptions | None = None,
        run_metadata: Message | None = None,
    ) -> Any:
        """Run one step.

        Args:
            fetches: a tensor or operation, by itself or by name, or nested lists, tuples and dicts
                of them.
            feed_dict: values for tensors; any tensor of the graph may be fed. A value is what NumPy
                can make an array of, or a TensorHandle of this session.
            options: the options of this step.
            run_metadata: a message RunMetadata that takes the records for which the options ask.

        Returns:
            The values in the form of `fetches`, None for operations; TensorHandles for outputs of
            GetSessionHandle.

        Raises:
            InvalidArgumentError: a feed or fetch does not fit the graph, or a kernel refused its
                inputs.
            NotFoundError: the graph lacks a feed or fetch, or a needed node has no kernel.
            CancelledError: the step was cancelled, by its options or by `close`.
            DeadlineExceededError: it took longer than it may.
            FailedPreconditionError: the session is closed; or it was finalized, and has not run
                these feeds and fetches before.
        """
        if self._is_closed:
            self._check_open()
        feeds = feed_dict if type(feed_dict) is dict else as_feed_dict(feed_dict)
        if options is not None or run_metadata is not None:
            return self._run_recorded(self._executables, fetches, feeds, options, run_metadata)
        if self._timeout_s is not None or current_budget() is not None:
            return self._run_in_time(fetches, feeds)
        executable = self._executables.find(fetches, tuple(feeds))
        if executable.variables is not None:
            special = executable.variables.current()
            if special is not None:
                return special([*feeds.values()], self._new_step)
        values = [feed(v) for feed, v in zip(executable.feeds, feeds.values(), strict=True)]
        return executable.step(values, RunStep(None, self._services, self._pool))

    def _new_step(self) -> RunStep:
        """A step without options."""
        return RunStep(None, self._services, self._pool)

    def run_saver(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        *,
        saves: str | None = None,
        restores: str | None = None,
    ) -> Any:
        """Run one step whose checkpoint ops may also write or read one checkpoint; otherwise as `run`.

        Args:
            fetches: as for `run`.
            feed_dict: as for `run`.
            saves: the prefix of a checkpoint to write.
            restores: the prefix of a checkpoint to read.
        """
        self._check_open()
        permissions = self._services.permissions
        permissions = permissions if saves is None else permissions.saving(saves)
        permissions = permissions if restores is None else permissions.restoring(restores)
        feeds = as_feed_dict(feed_dict)
        executable = self._executables.find(fetches, tuple(feeds))
        values = [feed(v) for feed, v in zip(executable.feeds, feeds.values(), strict=True)]
        services = replace(self._services, permissions=permissions)
        return executable.step(values, RunStep(None, services, self._pool))

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None
    ) -> Callable[..., Any]:
        """A function that takes the values of `feed_list` in order and returns the fetches.

        It does the work of `run` on names and structures once, not at every call; changes of the
        graph and of registered kernels after that do not reach it. It also takes `options` and
        `run_metadata`, by keyword, as `run` does.

        Raises:
            InvalidArgumentError, NotFoundError, FailedPreconditionError: as `run` does; the
                function raises them too.
        """
        self._check_open()
        return self._callable(self._executables, fetches, as_feed_list(feed_list))

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] = ()) -> str:
        """Prepare a step that is fed and fetched from in parts.

        Args:
            fetches: all that will be fetched, in any form that `run` takes.
            feeds: the tensors that will be fed.

        Returns:
            The handle for `partial_run`.

        Raises:
            InvalidArgumentError, NotFoundError, FailedPreconditionError: as `run` does; also where
                there is nothing to run.
            UnimplementedError: some of the nodes are on another device than that of the caller, or in other
                processes.
        """
        self._check_open()
        if self._target.is_remote:
            raise UnimplementedError("Steps on a cluster cannot be run in parts")
        step = RunStep(None, self._services, self._pool)
        return self._partial_runs.set_up(fetches, as_feed_list(feeds), step)

    def partial_run(
        self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None
    ) -> Any:
        """Go on with a step: feed more of it, and fetch what can be computed by now.

        Each operation of the step runs once. The step ends when all is fed and fetched, or with an
        error.

        Raises:
            InvalidArgumentError: there is no such step, something was not set up, is fed or fetched
                for the second time, or cannot be computed yet.
        """
        self._check_open()
        return self._partial_runs.go_on(handle, fetches, as_feed_dict(feed_dict))

    def plan(
        self, fetches: Any, feeds: Sequence[Any] = (), shapes: Shapes | None = None
    ) -> Executor:
        """The plan that runs the fetches for the feeds, or for feeds of these shapes.

        The `source` of a plan is the model as Python text, that of the dataflow executor a list of
        the nodes, loop by loop.
        """
        self._check_open()
        return self._executables.find(fetches, as_feed_list(feeds)).program.executor_for(shapes)

    # The session.

    def __repr__(self) -> str:
        names = [device.name.rpartition("/")[2] for device in self._devices.mgr.all]
        devices = ", ".join(names).replace("device:", "")
        place = repr(self._target) if self._target.is_remote else devices
        state = "closed, " if self._is_closed else ""
        return f"<opkernel.Session {state}on {place} of {self.graph!r}>"

    def _repr_html_(self) -> str:
        """The drawing of its graph, which notebooks show."""
        return notebook_html(self.graph)

    @property
    def target_session(self) -> TargetSession:
        """The session as its target sees it: what a cluster knows of it, say."""
        return self._target

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices that nodes may be placed on."""
        self._check_open()
        budget = self._params.limits.budget
        limit = (budget and budget.memory_limit_bytes) or current_allocation_limit()
        return [
            DeviceAttributes(device.name, device.device_type, limit, device.incarnation)
            for device in self._devices.mgr.all
        ]

    def finalize(self) -> None:
        """Refuse from now on to compile: only feeds and fetches that ran before can run.

        Raises:
            FailedPreconditionError: it was called before, or the session is closed.
        """
        self._check_open()
        self._executables.finalize()

    def close(self) -> None:
        """Cancel the steps under way and free what the session holds; it cannot run any more."""
        self._is_closed = True
        _open_sessions.discard(self)
        self._cancellation.start_cancel(CancelledError("Session has been closed."))
        if "_partial_runs" in vars(self):
            self._partial_runs.close()
        self._executables.clear()
        if self._pools is not None:
            self._pools.close()
        self._state.clear()
        self._target.close()
        forget_recycled()

    @staticmethod
    def reset(containers: Sequence[str] = ()) -> None:
        """Drop the resources in these containers, or in the default one, and close all sessions."""
        for session in list(_open_sessions):
            session._target.clear_containers(containers)
            session.close()

    @contextmanager
    def as_default(self) -> Iterator[Self]:
        """Within the block, `Operation.run` and `Tensor.eval` of this thread use this session."""
        sessions: tuple[Session, ...] = (*_default_sessions.get(), self)
        with setting(_default_sessions, sessions):
            yield self

    def __enter__(self) -> Self:
        _default_sessions.set((*_default_sessions.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        try:
            others = [session for session in _default_sessions.get() if session is not self]
            _default_sessions.set(tuple(others))
        finally:
            self.close()

    def register_graph(self, graph_def: GraphDef) -> RegisteredGraph:
        """A part of a graph that several sessions run together, ready for its steps.

        It has the devices, resources and kernels with state of this session.

        Raises:
            InvalidArgumentError, NotFoundError: as RegisteredGraph says.
            FailedPreconditionError: the session is closed.
        """
        from opkernel.runtime.session.registered_graph import RegisteredGraph  # of clusters alone

        self._check_open()
        return RegisteredGraph(graph_def, self._executables.for_graph, self._new_part)

    def _new_part(
        self, options: StepOptions, variant: Variant, executables: Executables
    ) -> RunStep:
        """A step of a registered graph."""
        collector = None
        if options.step_stats is not None:
            from opkernel.runtime.traces import StepStatsCollector  # few steps are recorded

            collector = StepStatsCollector(options.step_stats)
        services = replace(
            self._services,
            rendezvous=options.rendezvous,
            collective_executor=options.collective_executor,
            coordination_service_agent=options.coordination_service_agent,
            function_library=executables.library,
            permissions=options.permissions or self._services.permissions,
        )
        library = executables.library.for_steps(variant)
        return RunStep(options.timeout_s, services, self._pool, library, collector)

    def _run_in_time(self, fetches: Any, feeds: Mapping[Any, Any]) -> Any:
        """Run one step without options that has a deadline, from compiling to its answer."""
        with in_time(self._timeout_s) as timeout_s:
            variant: Variant = "" if timeout_s is None else "stoppable"
            executable = self._executables.find(fetches, tuple(feeds), variant)
            values = [feed(v) for feed, v in zip(executable.feeds, feeds.values(), strict=True)]
            return executable.step(values, RunStep(timeout_s, self._services, self._pool))

    def _callable(
        self, executables: Executables, fetches: Any, feed_names: tuple[Any, ...]
    ) -> Callable[..., Any]:
        """The result of `make_callable`; its executables may run a changed copy of the graph."""
        variant: Variant = "" if self._timeout_s is None else "stoppable"
        executable = executables.find(fetches, feed_names, variant)
        feeds, run, answer = executable.feeds, executable.run, executable.answer
        timeout_s, services, pool = self._timeout_s, self._services, self._pool
        count = len(feeds)
        wants_own = executable.program.executor.uses_step or executable.is_limited
        any_step = None if wants_own else RunStep(None, services, pool)
        variables = executable.variables if timeout_s is None else None
        new_step = self._new_step

        def call(
            *values: Any,
            options: AnyRunOptions | None = None,
            run_metadata: Message | None = None,
        ) -> Any:
            if self._is_closed or len(values) != count:
                self._check_open()
                raise InvalidArgumentError(f"Expected {count} feed values, got {len(values)}")
            if options is not None or run_metadata is not None:
                fed = dict(zip(feed_names, values, strict=True))
                return self._run_recorded(executables, fetches, fed, options, run_metadata)
            try:
                if variables is not None:
                    special = variables.current()
                    if special is not None:
                        return special(values, new_step)
                converted = [feed(value) for feed, value in zip(feeds, values)]  # noqa: B905  # as many
                if any_step is not None:
                    return answer(run(any_step, *converted))
                if timeout_s is None:
                    return executable.step(converted, RunStep(None, services, pool))
                with in_time(timeout_s) as seconds_left:
                    return executable.step(converted, RunStep(seconds_left, services, pool))
            except Exception as error:
                # most calls succeed
                from opkernel.runtime.program.error_report import raise_reported

                raise_reported(error, executable.program.request.part.graph)

        return call

    def _run_recorded(
        self,
        executables: Executables,
        fetches: Any,
        feeds: Mapping[Any, Any],
        options: AnyRunOptions | None,
        run_metadata: Message | None,
    ) -> Any:
        """Run one step with options."""
        from opkernel.runtime.session.run_options import RunOptions  # most steps have none

        chosen = RunOptions.of(options)
        timeout_s = chosen.timeout_in_ms / 1000 if chosen.timeout_in_ms > 0 else self._timeout_s
        with in_time(timeout_s) as left_s:
            return self._run_chosen(executables, fetches, feeds, chosen, left_s, run_metadata)

    def _run_chosen(
        self,
        executables: Executables,
        fetches: Any,
        feeds: Mapping[Any, Any],
        chosen: RunOptions,
        timeout_s: float | None,
        run_metadata: Message | None,
    ) -> Any:
        """Run one step with options, in so many seconds."""
        pool = self._pool_for(chosen.inter_op_thread_pool)
        recording = self._recorder.begin(chosen, run_metadata)
        can_stop = timeout_s is not None or chosen.cancellation_manager is not None
        variant: Variant = "stoppable" if can_stop else ""
        if recording.collector is not None:
            variant = "traced"
        executable = executables.find(fetches, tuple(feeds), variant)
        values = [feed(v) for feed, v in zip(executable.feeds, feeds.values(), strict=True)]
        services, library = self._services, executables.library.for_steps(variant)
        if chosen.inter_op_thread_pool < 0:
            services = replace(services, run_all_kernels_inline=True)
        step = RunStep(timeout_s, services, pool, library, recording.collector)
        step.graph_collector = recording.graph_collector
        with step.cancelled_by(chosen.cancellation_manager):
            try:
                answer = executable.step(values, step)
            except ResourceExhaustedError as error:
                recording.explain(error)
                raise
        recording.finish(executable, run_metadata)
        return answer

    @cached_property
    def _partial_runs(self) -> PartialRuns:
        """The partial runs under way."""
        from opkernel.runtime.session.partial_run import PartialRuns  # rarely needed

        return PartialRuns(self.graph, self._executables, self._state, self._params.limits)

    @cached_property
    def _recorder(self) -> Recorder:
        """Records what the options of steps ask for."""
        from opkernel.runtime.session.recording import Recorder  # rarely needed

        return Recorder(self._config)

    def _check_open(self) -> None:
        if self._is_closed:
            raise FailedPreconditionError("Attempted to use a closed Session.")


def _new_target(target: SessionTarget | None, options: TargetOptions) -> TargetSession:
    """A session of a target; of this process where there is none."""
    if target is None:
        return ThisProcess(options.config)
    if not hasattr(target, "new_session"):
        raise TypeError(
            f"target must be a cluster, such as opkernel.distributed.RayCluster, not {shown(target)}"
        )
    return target.new_session(options)


def _new_sanitizer() -> Sanitizer:
    from opkernel.runtime.watch.sanitizer import Sanitizer  # rarely needed

    return Sanitizer()


def run_in_default_session(graph: Graph, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
    """The body of `Operation.run` and `Tensor.eval` without a session."""
    for session in reversed(_default_sessions.get()):
        if session.graph is graph and not session._is_closed:
            return session.run(fetches, feed_dict)
    raise FailedPreconditionError(
        "Cannot run: no default session for this graph. Use `with Session(graph)`, "
        "`with session.as_default()`, or pass a session"
    )
