"""StepRunner: runs the steps of a session, whichever way they were asked for.

Source: DirectSession::Run and RunInternal in TensorFlow core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from opkernel.device.budget import current_budget
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from opkernel.graph import Graph
from opkernel.proto import Message
from opkernel.records import replace
from opkernel.runtime.program.executable import Executable
from opkernel.runtime.program.limits import step_time
from opkernel.runtime.program.request import Variant
from opkernel.runtime.session.executables import Executables
from opkernel.runtime.session.session_config import SessionConfig
from opkernel.runtime.step.run_step import RunStep, SessionServices

if TYPE_CHECKING:
    from opkernel.runtime.session.recording import Recorder
    from opkernel.runtime.session.run_options import AnyRunOptions
    from opkernel.runtime.session.step_options import StepOptions
    from opkernel.runtime.step.inter_op_pool import InterOpPool
    from opkernel.runtime.step.inter_op_pools import InterOpPools


class SessionSteps:
    """What all steps of a session share.

    Args:
        config: The options of the session.

    Attributes:
        pools: The threads for expensive kernels, where there are any.
        timeout_s: The time that steps have by default, in seconds; None for no limit.
        is_closed: Whether the session runs no more steps.
        services: The services of the session; set with its first graph.
    """

    services: SessionServices

    def __init__(self, config: SessionConfig) -> None:
        self._config = config
        self.pools: InterOpPools | None = config.new_pools()
        self.timeout_s = config.operation_timeout_in_ms / 1000 or None
        self.is_closed = False

    @cached_property
    def defaults(self) -> StepOptions:
        """The options of steps that have none."""
        from opkernel.runtime.session.step_options import StepOptions  # most steps need none

        return StepOptions(self.timeout_s)

    def pool(self, index: int) -> InterOpPool | None:
        """The pool for a step (`RunOptions.inter_op_thread_pool`); None: the caller's thread."""
        pools = self.pools
        if pools is None:
            if index == 0:
                return None
            from opkernel.runtime.step.inter_op_pools import InterOpPools  # few steps choose

            pools = InterOpPools.none()
        return pools.choose(index)

    def options(
        self, options: AnyRunOptions | None, run_metadata: Message | None
    ) -> StepOptions | None:
        """The options of a step that the caller has given; None where there are none.

        Raises:
            InvalidArgumentError: the session does not allow what is asked for.
            TypeError: one of the arguments is something else.
        """
        if options is None and run_metadata is None:
            return None
        from opkernel.runtime.session.run_options import RunOptions  # most steps have none
        from opkernel.runtime.session.step_options import StepOptions

        chosen = RunOptions.of(options)
        timeout_ms = chosen.timeout_in_ms
        return StepOptions(
            timeout_ms / 1000 if timeout_ms > 0 else self.timeout_s,
            chosen.cancellation_manager,
            chosen.inter_op_thread_pool,
            self._recorder.begin(chosen, run_metadata),
            {"run_all_kernels_inline": True} if chosen.inter_op_thread_pool < 0 else {},
        )

    def check_open(self) -> None:
        """Raise FailedPreconditionError where the session is closed."""
        if self.is_closed:
            raise FailedPreconditionError("Attempted to use a closed Session.")

    @cached_property
    def _recorder(self) -> Recorder:
        """Records what the options of steps ask for."""
        from opkernel.runtime.session.recording import Recorder  # rarely needed

        return Recorder(self._config)


class StepRunner:
    """Runs the steps of one graph of a session; used from any thread.

    Args:
        session: What all steps of the session share.
        executables: What is compiled of the graph.

    Attributes:
        executables: What is compiled of the graph.
        new_step: Makes a step that has no options.
    """

    def __init__(self, session: SessionSteps, executables: Executables) -> None:
        self._session = session
        self.executables = executables
        self.new_step: Callable[[], RunStep] = partial(
            RunStep, None, session.services, session.pool(0), executables.library
        )

    def for_graph(self, graph: Graph) -> StepRunner:
        """Runs the steps of another graph of the session, such as a changed copy of its own."""
        return StepRunner(self._session, self.executables.for_graph(graph))

    def run(
        self, fetches: Any, feeds: Mapping[Any, Any], options: StepOptions | None = None
    ) -> Any:
        """Run one step; it has the time of its options from compiling to its answer.

        Raises:
            As `Session.run`.
        """
        if options is None:
            session = self._session
            if session.timeout_s is None and current_budget() is None:
                return self.executables.find(fetches, tuple(feeds))(feeds.values(), self.new_step)
            options = session.defaults
        with step_time(options.timeout_s) as seconds_left:
            variant = options.variant(seconds_left)
            executable = self.executables.find(fetches, tuple(feeds), variant)
            converted = executable.converted(feeds.values())
            return self._run(executable, converted, options, variant, seconds_left)

    def make_callable(self, fetches: Any, feed_list: tuple[Any, ...]) -> Callable[..., Any]:
        """The function that `Session.make_callable` promises."""
        session, new_step = self._session, self.new_step
        timeout_s, count = session.timeout_s, len(feed_list)
        variant: Variant = "" if timeout_s is None else "stoppable"
        executable = self.executables.find(fetches, feed_list, variant)

        def call(
            *values: Any,
            options: AnyRunOptions | None = None,
            run_metadata: Message | None = None,
        ) -> Any:
            if session.is_closed or len(values) != count:
                session.check_open()
                raise InvalidArgumentError(f"Expected {count} feed values, got {len(values)}")
            if options is not None or run_metadata is not None:
                fed = dict(zip(feed_list, values, strict=True))
                return self.run(fetches, fed, session.options(options, run_metadata))
            if timeout_s is None:
                return executable(values, new_step)
            converted = executable.converted(values)
            with step_time(timeout_s) as seconds_left:
                return self._run(executable, converted, session.defaults, variant, seconds_left)

        return call

    def step(self, options: StepOptions, variant: Variant, seconds_left: float | None) -> RunStep:
        """A step of a kind that has options, and so much time."""
        session, recording, library = self._session, options.recording, self.executables.library
        pool = session.pool(options.inter_op_thread_pool)
        own = options.services
        services = replace(session.services, **own) if own else session.services
        functions = library.for_steps(variant)
        step = RunStep(seconds_left, services, pool, functions, recording.collector)
        if recording.graph_collector is not None:
            step.graph_collector = recording.graph_collector
        return step

    def _run(
        self,
        executable: Executable,
        values: list[Any],
        options: StepOptions,
        variant: Variant,
        seconds_left: float | None,
    ) -> Any:
        """Run one step on converted values."""
        step, recording = self.step(options, variant, seconds_left), options.recording
        if options is self._session.defaults:  # nothing else ends the step, or records it
            return executable.step(values, step)
        with step.cancelled_by(options.cancellation_manager):
            try:
                answer = executable.step(values, step)
            except ResourceExhaustedError as error:
                recording.explain(error)
                raise
        recording.finish(executable)
        return answer
