"""StepRunner: runs the steps of one graph of a session by what is compiled of it.

Source: DirectSession::Run and RunInternal in TensorFlow core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from opkernel.device.budget import current_budget
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.graph import Graph
from opkernel.proto import Message
from opkernel.records import replace
from opkernel.runtime.program.executable import Executable, step_time
from opkernel.runtime.program.request import Variant
from opkernel.runtime.program.run_step import RunStep
from opkernel.runtime.session.executables import Executables
from opkernel.runtime.session.session_runtime import SessionRuntime

if TYPE_CHECKING:
    from opkernel.runtime.session.session_config import AnyRunOptions, StepOptions

_MOST_STEPS = 64
"""So many steps warm a session up where no trial is under way."""
_PAUSE_S = 0.005


class StepRunner:
    """Runs the steps of one graph of a session; used from any thread.

    Args:
        session: What all steps of the session share.
        executables: What is compiled of the graph.

    Attributes:
        executables: What is compiled of the graph.
        new_step: Makes a step that has no options.
    """

    def __init__(self, session: SessionRuntime, executables: Executables) -> None:
        self._session = session
        self.executables = executables
        self.new_step: Callable[[], RunStep] = partial(
            RunStep, None, session.services, session.pool(), executables.library
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
            untraced = options.untraced_variant(seconds_left)
            executable = self.executables.find(fetches, tuple(feeds), untraced)
            converted = executable.converted(feeds.values())
            if options.is_traced:  # what this one runs
                executable = self.executables.traced(executable, converted)
            return self._run(executable, converted, options, variant, seconds_left)

    def warm_up(self, fetches: Any, feeds: Mapping[Any, Any], seconds: float) -> int | None:
        """Run steps as `Session.warm_up` says."""
        until, steps = time.monotonic() + seconds, 0
        is_limited = self._session.timeout_s is not None or current_budget() is not None
        variant: Variant = "stoppable" if is_limited else ""
        while True:
            executable = self.executables.find(fetches, tuple(feeds), variant)
            if not steps and executable.program.request.part.has_effects:
                return None
            values = executable.converted(feeds.values())
            is_trying = executable.is_trying(values)
            is_over = time.monotonic() >= until or (steps >= _MOST_STEPS and not is_trying)
            if is_over or executable.is_settled(values):
                return steps
            if is_trying:
                time.sleep(_PAUSE_S)  # another thread may compile
            self.run(fetches, feeds)
            steps += 1

    def make_callable(self, fetches: Any, feed_list: tuple[Any, ...]) -> Callable[..., Any]:
        """The function that `Session.make_callable` promises."""
        session, new_step = self._session, self.new_step
        timeout_s, count = session.timeout_s, len(feed_list)
        variant: Variant = "" if timeout_s is None else "stoppable"
        executable = self.executables.find(fetches, feed_list, variant)

        def call(
            *values: Any, options: AnyRunOptions | None = None, run_metadata: Message | None = None
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
