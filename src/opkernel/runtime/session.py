"""Session: runs parts of a graph.

Each combination of feeds and fetches is compiled once to a plan and kept; a step then converts the
fed values, runs the plan's function and builds the answer. A session may be used from many threads.
After a kernel is registered anew the next step has it; steps under way finish with what they began.
Source: TensorFlow python/client/session.py, core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from opkernel.errors import CancelledError, FailedPreconditionError, InvalidArgumentError
from opkernel.graph import Graph, Tensor, get_default_graph, install_runtime
from opkernel.kernel import (
    CancellationManager,
    CollectiveExecutor,
    allocation_limit,
    global_kernel_registry,
)
from opkernel.runtime.constants import constant_value
from opkernel.runtime.device import LocalDevice
from opkernel.runtime.error_report import raise_reported
from opkernel.runtime.executors import Executor, ExecutorArgs, new_executor
from opkernel.runtime.feeds import Feed
from opkernel.runtime.fetches import FetchPlan
from opkernel.runtime.functions import FunctionLibraryRuntime
from opkernel.runtime.inter_op_pool import InterOpPool
from opkernel.runtime.kernels import KernelCache
from opkernel.runtime.sanitizer import Sanitizer
from opkernel.runtime.step import RunStep

__all__ = ["RunOptions", "Session"]

_session_numbers = itertools.count(1)
_default_sessions: ContextVar[tuple[Session, ...]] = ContextVar("default_sessions", default=())


@dataclass(frozen=True)
class RunOptions:
    """Options of one step.

    Attributes:
        timeout_in_ms: the step fails with DeadlineExceededError at the first check after this time;
            0 for no limit.
    """

    timeout_in_ms: int = 0


@dataclass(frozen=True, slots=True)
class _Executable:
    """What a session keeps for one combination of feeds and fetches.

    `feeds` convert the fed values; `run` is the plan's function, made quiet and limited; `answer`
    gives the results the form of the fetches.
    """

    plan: Executor
    feeds: tuple[Callable[[Any], Any], ...]
    run: Callable[..., Sequence[Any]]
    answer: Callable[[Sequence[Any]], Any]

    def step(self, values: Sequence[Any], step: RunStep) -> Any:
        """Run one step on converted values."""
        try:
            results = self.run(step, *values)
        except Exception as error:
            raise_reported(error)
        finally:
            step.end()  # and with it the work of deferred kernels
        return self.answer(results)


class Session:
    """Runs operations of a graph and computes its tensors.

        with opkernel.Session(graph) as session:
            y = session.run("y:0", {"x:0": x})

    Args:
        graph: the graph; the default graph where not given.
        memory_limit_bytes: no single tensor may be larger; half of the machine's memory where not
            given.
        sanitize: watch the kernels: a step fails with InternalError where one writes to an input or
            beside its memory, leaves an output unwritten, or breaks what its op declares. Slow.
        collective_executor: where the groups of collective ops meet; all sessions of the process
            meet in one where not given.
        executor_type: the registered name of the executor; the default one where not given.
        inter_op_threads: so many threads compute expensive kernels side by side; where it is 0, the
            thread that runs a step computes all.
    """

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        memory_limit_bytes: int | None = None,
        sanitize: bool = False,
        collective_executor: CollectiveExecutor | None = None,
        executor_type: str = "",
        inter_op_threads: int = 0,
    ) -> None:
        self.graph = get_default_graph() if graph is None else graph
        self._memory_limit_bytes = memory_limit_bytes
        self._executables: dict[Hashable, _Executable] = {}
        self._lock = threading.RLock()
        self._closed = False
        self._registry = global_kernel_registry()
        self._compiled_at = self._versions()
        version = self.graph.graph_def_versions.producer
        self._device = LocalDevice("CPU", np)  # of its own: so are its variables
        self._sanitizer = Sanitizer() if sanitize else None
        self._executor_type = executor_type
        self._inter_op_pool = InterOpPool(inter_op_threads) if inter_op_threads else None
        self._library = FunctionLibraryRuntime(
            self.graph,
            version,
            self._device,
            self._sanitizer,
            executor_type,
            self._inter_op_pool,
        )
        self._kernels = KernelCache(version, self.graph.op_registry, self._device, self._library)
        self._handle = f"session_{next(_session_numbers)}"
        self._collective_executor = collective_executor
        self._cancellation = CancellationManager()

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Any:
        """Run one step.

        Args:
            fetches: a tensor or operation, by itself or by name, or nested lists, tuples and dicts
                of them.
            feed_dict: values for tensors; any tensor of the graph may be fed.
            options: of this step.

        Returns:
            The values in the form of `fetches`, None for operations.

        Raises:
            InvalidArgumentError: a feed or fetch does not fit the graph, or a kernel refused its
                inputs.
            NotFoundError: the graph lacks what is fetched or fed, or a needed node has no kernel.
            FailedPreconditionError: the session is closed.
        """
        feeds = feed_dict or {}
        executable = self._executable(fetches, tuple(feeds))
        values = [feed(v) for feed, v in zip(executable.feeds, feeds.values(), strict=True)]
        timeout_in_ms = 0 if options is None else options.timeout_in_ms
        return executable.step(values, self._new_step(timeout_in_ms / 1000 or None))

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None
    ) -> Callable[..., Any]:
        """A function that takes the values of `feed_list` in order and returns the fetches.

        It does the work of `run` on names and structures once, not at every call; changes of the
        graph and of registered kernels after that do not reach it.

        Raises:
            InvalidArgumentError, NotFoundError, FailedPreconditionError: as `run` does; the
                function raises them too.
        """
        executable = self._executable(fetches, tuple(feed_list or ()))
        feeds, run, answer = executable.feeds, executable.run, executable.answer
        count = len(feeds)
        any_step = None if executable.plan.uses_step else self._new_step()

        def call(*values: Any) -> Any:
            if self._closed or len(values) != count:
                self._check_open()
                raise InvalidArgumentError(f"Expected {count} feed values, got {len(values)}")
            try:
                converted = [feed(value) for feed, value in zip(feeds, values)]  # noqa: B905  # as many
                if any_step is not None:
                    return answer(run(any_step, *converted))
                return executable.step(converted, self._new_step())
            except Exception as error:
                raise_reported(error)

        return call

    def plan(self, fetches: Any, feeds: Sequence[Any] = ()) -> Executor:
        """What runs the fetches, given the feeds: mostly a compiled plan.

        The `source` of a plan is the model as Python text, that of the dataflow executor a list of
        the nodes, loop by loop.
        """
        return self._executable(fetches, tuple(feeds)).plan

    def close(self) -> None:
        """Cancel the steps under way and free the session's plans; it cannot run any more."""
        with self._lock:
            self._closed = True
            self._executables.clear()
        self._cancellation.start_cancel(CancelledError("Session has been closed."))
        if self._inter_op_pool is not None:
            self._inter_op_pool.shutdown()
        self._device.resource_manager.clear()

    @contextmanager
    def as_default(self) -> Iterator[Self]:
        """Within the block, `Operation.run` and `Tensor.eval` of this thread use this session."""
        token = _default_sessions.set((*_default_sessions.get(), self))
        try:
            yield self
        finally:
            _default_sessions.reset(token)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _executable(self, fetches: Any, feeds: tuple[Any, ...]) -> _Executable:
        """The plan for fetches and feeds, from the cache where it is there."""
        self._check_open()
        key = _key(fetches), feeds, self.graph.edits, self._registry.version
        executable = self._executables.get(key)
        return self._compile_once(key, fetches, feeds) if executable is None else executable

    def _versions(self) -> tuple[int, int]:
        """What changes where plans become stale: the graph was edited, or a kernel replaced."""
        return self.graph.edits, self._registry.version

    def _new_step(self, timeout_s: float | None = None) -> RunStep:
        return RunStep(
            timeout_s,
            self._device.resource_manager,
            self._handle,
            self._collective_executor,
            self._library,
            self._cancellation,
        )

    def _check_open(self) -> None:
        if self._closed:
            raise FailedPreconditionError("Attempted to use a closed Session.")

    def _compile_once(self, key: Hashable, fetches: Any, feeds: tuple[Any, ...]) -> _Executable:
        """Compile what another thread has not compiled meanwhile; drop what has become stale."""
        with self._lock:
            versions = self._versions()
            if self._compiled_at != versions:
                self._compiled_at = versions
                self._executables.clear()
            executable = self._executables.get(key)
            if executable is None:
                executable = self._executables[key] = self._compile(fetches, feeds)
        return executable

    def _compile(self, fetches: Any, feeds: Sequence[Any]) -> _Executable:
        fetch_plan = FetchPlan(self.graph, fetches)
        fed = [self.graph.as_graph_element(feed, allow_operation=False) for feed in feeds]
        tensors = [tensor for tensor in fed if isinstance(tensor, Tensor)]
        if len({tensor.name for tensor in tensors}) != len(tensors):
            raise InvalidArgumentError("Tensors to be fed are given more than once")
        args = ExecutorArgs(
            tensors,
            fetch_plan.tensors,
            fetch_plan.targets,
            self._kernels,
            self._library,
            self._sanitizer,
            self._inter_op_pool,
        )
        plan = new_executor(self._executor_type, args)
        run: Callable[..., Sequence[Any]] = np.errstate(all="ignore")(plan.run)
        if self._sanitizer is not None:
            run = self._sanitizer.watched(run)
        if self._memory_limit_bytes is not None:
            run = allocation_limit(self._memory_limit_bytes)(run)
        converters = tuple(Feed(tensor).converter() for tensor in tensors)
        return _Executable(plan, converters, run, fetch_plan.answer())


def _key(fetches: Any) -> Hashable:
    """A hashable form of fetches: equal for equal structures of equal leaves."""
    if isinstance(fetches, list | tuple):
        return type(fetches), tuple(_key(fetch) for fetch in fetches)
    if isinstance(fetches, Mapping):
        return type(fetches), tuple((key, _key(fetch)) for key, fetch in fetches.items())
    leaf: Hashable = fetches  # a name, Tensor or Operation
    return leaf


def _run_in_default_session(graph: Graph, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
    """What `Operation.run` and `Tensor.eval` do where no session is given."""
    for session in reversed(_default_sessions.get()):
        if session.graph is graph:
            return session.run(fetches, feed_dict)
    raise FailedPreconditionError(
        "Cannot run: no default session for this graph. Use `with session.as_default()` or pass "
        "a session"
    )


install_runtime(run=_run_in_default_session, evaluate_constant=constant_value)
