"""Partial runs: steps that are fed and fetched from in parts, each operation running once.

Source: PRunSetup and PRun in TensorFlow core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from opkernel.errors import CancelledError, InvalidArgumentError
from opkernel.graph import Graph, Tensor
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.runtime.dataflow.node_item import RootInfo
from opkernel.runtime.dataflow.partial_run import PartialDataflowRun
from opkernel.runtime.dataflow.run import DataflowExecutor
from opkernel.runtime.plan.keys import Key, key_of
from opkernel.runtime.program.error_report import raise_reported
from opkernel.runtime.program.executable import Executable, Limits
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.program.feeds_and_fetches import FetchPlan
from opkernel.runtime.program.run_step import RunStep
from opkernel.runtime.session.executables import as_tensor
from opkernel.runtime.session.session_runtime import SessionRuntime
from opkernel.runtime.session.step_runner import StepRunner

_NO_SETUP = "Must run 'setup' before performing partial runs!"


class PartialRuns:
    """The partial runs of a session that are under way, by handle.

    Args:
        graph: What they run parts of.
        runner: Compiles it, and makes steps.
        session: What all steps of the session share.
    """

    def __init__(self, graph: Graph, runner: StepRunner, session: SessionRuntime) -> None:
        self._graph, self._runner, self._session = graph, runner, session
        self._numbers = itertools.count()
        self._runs: dict[str, _PartialRun] = {}

    def set_up(self, fetches: Any, feeds: tuple[Any, ...]) -> str:
        """Begin a run; its handle.

        Raises:
            InvalidArgumentError, NotFoundError, FailedPreconditionError: as `Session.run` does; also
                where there is nothing to run.
        """
        executable = self._runner.executables.find(fetches, feeds, variant="partial")
        part = executable.program.part
        if not part.fetches and not part.targets:
            raise InvalidArgumentError("Must specify at least one target to fetch or execute.")
        parts = part.feeds, part.fetches, part.targets
        names = [",".join(element.name for element in elements) for elements in parts]
        handle = "{}->{}/{}/1/;{}".format(*names, next(self._numbers))
        self._runs[handle] = _PartialRun(executable, self._runner.new_step(), self._session.limits)
        return handle

    def go_on(self, handle: str, fetches: Any, feeds: Mapping[Any, Any]) -> Any:
        """Feed and fetch some of a run."""
        run = self._runs.get(handle)
        if run is None:
            raise InvalidArgumentError(_NO_SETUP)
        fetch_plan = FetchPlan(self._graph, fetches, self._session.state)
        fed = [(as_tensor(self._graph, feed), value) for feed, value in feeds.items()]
        with run.lock:
            values = run.check(fed, fetch_plan)  # a mistake of the caller's ends nothing
            try:
                return run.go_on(values, fetch_plan)
            finally:
                if run.is_over:
                    self._runs.pop(handle, None)

    def close(self) -> None:
        """End all runs."""
        while self._runs:
            _, run = self._runs.popitem()
            with run.lock:
                run.end(CancelledError("Session has been closed."))


class _PartialRun:
    """One partial run. Its lock is held by whoever calls it.

    Attributes:
        lock: Lets one thread in.
        is_over: Whether all was fed and fetched, or something failed.
    """

    def __init__(self, executable: Executable, step: RunStep, limits: Limits) -> None:
        self.lock = threading.Lock()
        self.is_over = False
        part = self._part = executable.program.part
        roots = [_root(executor) for executor in executable.program.executors]
        self._step = step
        self._run = PartialDataflowRun(roots, step)
        self._advance = limits.enforced(self._run.advance)
        self._finish = limits.enforced(self._run.finish)
        self._converters = executable.feeds
        self._feeds = {key_of(tensor): number for number, tensor in enumerate(part.feeds)}
        self._fetches = {key_of(tensor): number for number, tensor in enumerate(part.fetches)}
        self._targets = {op.name for op in part.targets}
        self._unfed = set(self._feeds)
        self._unfetched = set(self._fetches)

    def check(self, fed: Sequence[tuple[Tensor, Any]], fetch_plan: FetchPlan) -> dict[Key, Any]:
        """The values that are fed, as arrays of the run's own: it goes on when the caller has them.

        Raises:
            InvalidArgumentError: the run is over, a value does not fit, something was not set up, is
                fed or fetched again, or cannot be computed yet.
        """
        if self.is_over:
            raise InvalidArgumentError(_NO_SETUP)
        for tensor, _ in fed:
            _check_pending("feed", "fed", tensor, self._feeds, self._unfed)
        for tensor in fetch_plan.tensors:
            _check_pending("fetch", "fetched", tensor, self._fetches, self._unfetched)
        for op in fetch_plan.targets:
            if op.name not in self._targets:
                raise _not_set_up("fetch", op.name)
        self._check_computable(fetch_plan.tensors, {key_of(tensor) for tensor, _ in fed})
        return {key_of(t): self._converters[self._feeds[key_of(t)]](v).copy() for t, v in fed}

    def go_on(self, fed: Mapping[Key, Any], fetch_plan: FetchPlan) -> Any:
        """Feed and fetch; the run is over with the last of both, or where anything is raised."""
        fetched = [key_of(tensor) for tensor in fetch_plan.tensors]
        try:
            results = self._advance(
                [(self._feeds[key], value) for key, value in fed.items()],
                [self._fetches[key] for key in fetched],
            )
            self._step.save_tensors(fetch_plan.kept)
            self._unfed -= fed.keys()
            self._unfetched.difference_update(fetched)
            if not self._unfed and not self._unfetched:
                self._finish()
                self.end(None)
            return fetch_plan.answer()(results)
        except Exception as error:
            self.end(error)
            raise_reported(error)
        except BaseException as error:
            self.end(error)
            raise

    def end(self, error: BaseException | None) -> None:
        """Free what the run holds, and end the work that waits in it, unless it has ended already."""
        if self.is_over:
            return
        self.is_over = True
        if error is not None:
            self._step.cancel()
        try:
            self._run.stop(error or CancelledError("The step has ended"))
        finally:
            self._step.end()

    def _check_computable(self, fetches: Sequence[Tensor], fed: set[Key]) -> None:
        """Raise InvalidArgumentError where a fetch depends on a feed that is missing yet."""
        missing = self._unfed - fed
        needed = prune_and_order(fetches, (), self._part.feeds)
        for tensor in chain(fetches, *(op.inputs for op in needed)):
            if key_of(tensor) in missing:
                raise InvalidArgumentError(
                    f"Fetch {tensor.name} can't be computed from the feeds that have been fed so "
                    "far.",
                    node=tensor.op.name,
                )


def _root(executor: Executor) -> RootInfo:
    assert isinstance(executor, DataflowExecutor)
    return executor.view.root


def _check_pending(
    kind: str, done: str, tensor: Tensor, all_of_kind: Mapping[Key, int], pending: set[Key]
) -> None:
    if key_of(tensor) not in all_of_kind:
        raise _not_set_up(kind, tensor.name)
    if key_of(tensor) not in pending:
        raise InvalidArgumentError(f"The {kind} {tensor.name} has already been {done}.")


def _not_set_up(kind: str, name: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"The {kind} {name} was not specified in partial_run_setup.")
