"""Session: runs parts of a graph.

Each combination of feeds and fetches is compiled once and kept (`executables`). A step converts the fed
values, runs the compiled program and builds the answer. A session may be used from many threads. When a
kernel is registered anew, the next step has the new kernel; steps under way finish with the old one.
Source: TensorFlow python/client/session.py, core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from opkernel.device.allocation import current_allocation_limit
from opkernel.device.local_device import DeviceAttributes
from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import FailedPreconditionError, UnimplementedError
from opkernel.graph import Graph, get_default_graph
from opkernel.graph.core.graph import DRAWING
from opkernel.interrupts import contextmanager, setting
from opkernel.proto import Message
from opkernel.records import replace
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.program.feeds_and_fetches import as_feed_dict, as_feed_list
from opkernel.runtime.program.request import Passes
from opkernel.runtime.session.executables import Executables
from opkernel.runtime.session.session_config import AnyConfig, AnyRunOptions, SessionConfig
from opkernel.runtime.session.session_runtime import (
    SessionRuntime,
    SessionTarget,
    TargetOptions,
    TargetSession,
)
from opkernel.runtime.session.step_runner import StepRunner
from opkernel.tracebacks import entrances, hide_frames, hides_frames

if TYPE_CHECKING:
    from opkernel.kernel import CollectiveExecutor
    from opkernel.runtime.adaptive.adaptive import Finding
    from opkernel.runtime.program.builder import Shapes, StepProgram
    from opkernel.runtime.session.partial_run import PartialRuns

__all__ = ["Session"]

_default_sessions: ContextVar[tuple[Session, ...]] = ContextVar("default_sessions", default=())
_open_sessions: weakref.WeakSet[Session] = weakref.WeakSet()
_DEFAULTS = SessionConfig(allow_soft_placement=True)


@entrances
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
        options = TargetOptions(config, permissions, memory_limit_bytes, sanitize)
        self._runtime = SessionRuntime(options, target, collective_executor)
        self._devices = self._runtime.target.devices
        self._set_graph(get_default_graph() if graph is None else graph)
        _open_sessions.add(self)

    def _set_graph(self, graph: Graph) -> None:
        """Run this graph from now on; none was run before."""
        if not isinstance(graph, Graph):
            raise TypeError(f"graph must be a Graph, not a {type(graph).__name__}")
        self.graph = graph
        self._runner = StepRunner(self._runtime, Executables(graph, self._runtime))

    # Steps.

    @hides_frames
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
        runtime = self._runtime
        try:
            if runtime.is_closed:
                runtime.check_open()
            feeds = feed_dict if type(feed_dict) is dict else as_feed_dict(feed_dict)
            return self._runner.run(fetches, feeds, runtime.options(options, run_metadata))
        except Exception as error:
            hide_frames(error)
            raise

    def warm_up(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, *, seconds: float = 60.0
    ) -> int | None:
        """Run steps until the session has found out how such steps are the fastest.

        It compiles, makes plans for the shapes that are fed and programs for the values of variables, and
        with `jit="auto"` tries the engines. `report` tells what was found out.

        Args:
            fetches: as for `run`.
            feed_dict: as for `run`.
            seconds: no step begins later than this.

        Returns:
            How many steps were run. None where steps change variables or other state, and so none was run.

        Raises:
            As `run` does.
        """
        self._runtime.check_open()
        return self._runner.warm_up(fetches, as_feed_dict(feed_dict), seconds)

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
        runtime = self._runtime
        runtime.check_open()
        permissions = runtime.services.permissions
        permissions = permissions if saves is None else permissions.saving(saves)
        permissions = permissions if restores is None else permissions.restoring(restores)
        options = replace(runtime.defaults, services={"permissions": permissions})
        return self._runner.run(fetches, as_feed_dict(feed_dict), options)

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
        self._runtime.check_open()
        return self._runner.make_callable(fetches, as_feed_list(feed_list))

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
        self._runtime.check_open()
        if self._runtime.target.is_remote:
            raise UnimplementedError("Steps on a cluster cannot be run in parts")
        return self._partial_runs.set_up(fetches, as_feed_list(feeds))

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
        self._runtime.check_open()
        return self._partial_runs.go_on(handle, fetches, as_feed_dict(feed_dict))

    def plan(
        self, fetches: Any, feeds: Sequence[Any] = (), shapes: Shapes | None = None
    ) -> Executor:
        """The plan that runs the fetches for the feeds, or for feeds of these shapes.

        It is the plan of now: once the session has made another program for the values of variables, or has
        chosen an engine for these shapes, it is that program's. Without shapes, it is the plan of the shapes
        that were decided about last.

        The `source` of a plan is the model as Python text, that of the dataflow executor a list of
        the nodes, loop by loop.
        """
        self._runtime.check_open()
        executable = self._runner.executables.find(fetches, as_feed_list(feeds))
        return executable.executor_for(shapes)

    def program(self, fetches: Any, feeds: Sequence[Any] = ()) -> StepProgram:
        """The program that steps come to run: variables that no node assigns to are constants in it.

        Where a node assigns to a variable or a variable has no value, the program that reads variables is given.

        Args:
            fetches: as for `run`.
            feeds: the tensors that steps will feed.

        Returns:
            The program, to be looked at while the variables keep their values: its constants share their memory.
            Its `request.part` is the graph with constants for variables, its `part` what passes made of
            that graph, its `executor` the plan.

        Raises:
            InvalidArgumentError, NotFoundError: as `run` does.
        """
        self._runtime.check_open()
        return self._runner.executables.find(fetches, as_feed_list(feeds)).settled_program

    def report(self) -> list[Finding]:
        """What the session has found out about its steps: what was tried, how long it took, what runs steps since.

        A session tries plans for shapes that repeat, programs for values that variables keep, branches on
        threads, and engines. Each finding is a line of text if it is printed.
        """
        return [*self._runner.executables.findings]

    @property
    def jit(self) -> str:
        """What compiles parts of the graph: `off`, `auto`, or the name of an engine."""
        return self._runtime.jit.name

    @property
    def tries_engines(self) -> bool:
        """Whether steps try engines (`jit="auto"`, `jit="xla"`), unless their time or memory is limited."""
        return self._runtime.jit.is_tried

    # The session.

    def __repr__(self) -> str:
        names = [device.name.rpartition("/")[2] for device in self._devices.mgr.all]
        devices = ", ".join(names).replace("device:", "")
        place = repr(self._runtime.target) if self._runtime.target.is_remote else devices
        state = "closed, " if self._runtime.is_closed else ""
        return f"<opkernel.Session {state}on {place} of {self.graph!r}>"

    def _repr_html_(self) -> str:
        """The drawing of its graph, which notebooks show."""
        return DRAWING.get()(self.graph)

    @property
    def target_session(self) -> TargetSession:
        """The session as its target sees it: what a cluster knows of it, say."""
        return self._runtime.target

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices that nodes may be placed on."""
        self._runtime.check_open()
        budget = self._runtime.limits.budget
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
        self._runtime.check_open()
        self._runner.executables.finalize()

    def close(self) -> None:
        """Cancel the steps under way and free what the session holds; it cannot run any more."""
        _open_sessions.discard(self)
        self._runtime.cancel()
        if "_partial_runs" in vars(self):
            self._partial_runs.close()
        self._runner.executables.clear()
        self._runtime.close()

    @staticmethod
    def reset(containers: Sequence[str] = ()) -> None:
        """Drop the resources in these containers, or in the default one, and close all sessions."""
        for session in list(_open_sessions):
            session._runtime.target.clear_containers(containers)
            session.close()

    @contextmanager
    def as_default(self) -> Iterator[Self]:
        """Within the block, `Operation.run` and `Tensor.eval` of this thread use this session."""
        sessions: tuple[Session, ...] = (*_default_sessions.get(), self)
        with setting({_default_sessions: sessions}):
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

    @cached_property
    def _partial_runs(self) -> PartialRuns:
        """The partial runs under way."""
        from opkernel.runtime.session.partial_run import PartialRuns  # rarely needed

        return PartialRuns(self.graph, self._runner, self._runtime)


def run_in_default_session(graph: Graph, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
    """The body of `Operation.run` and `Tensor.eval` without a session."""
    for session in reversed(_default_sessions.get()):
        if session.graph is graph and not session._runtime.is_closed:
            return session.run(fetches, feed_dict)
    raise FailedPreconditionError(
        "Cannot run: no default session for this graph. Use `with Session(graph)`, "
        "`with session.as_default()`, or pass a session"
    )
