"""ClusterStep: one step on several tasks. The first part that fails ends the others.

Source: MasterSession::ReffedClientGraph::RunPartitions in TensorFlow
core/distributed_runtime/master_session.cc.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.cluster.worker import RunGraphRequest, RunGraphResponse
from opkernel.errors import CancelledError, OpError, UnavailableError, as_op_error
from opkernel.proto import StepStats
from opkernel.runtime.step.run_step import RunStep

if TYPE_CHECKING:
    from opkernel.device.permissions import Permissions
    from opkernel.distributed.cluster.workers import Workers

_CHECK_S = 1.0
"""How often it is looked whether tasks that are done still live, while others are not done."""
_GRACE_S = 2.0
"""How long tasks are waited for that were told that the step has failed."""


class ClusterStep:
    """One step.

    Args:
        workers: The tasks.
        session: The name of the session in the tasks.
        graph: The name of the registered graph in the tasks.
        step: The step as the client has it: its deadline, its cancellation, its statistics.
        permissions: Which files it may read and write; those of the session if None.
    """

    def __init__(
        self,
        workers: Workers,
        session: str,
        graph: str,
        step: RunStep,
        permissions: Permissions | None = None,
    ) -> None:
        self._workers = workers
        self._session = session
        self._graph = graph
        self._step = step
        self._permissions = permissions
        self._key = f"{session}:{step.step_id}"
        self._futures: dict[TaskName, Future[RunGraphResponse]] = {}
        self._events: SimpleQueue[TaskName | None] = SimpleQueue()

    def start(self, task: TaskName, feeds: Sequence[Any]) -> None:
        """Have a task run its part."""
        deadline = self._step.deadline
        timeout_s = None if deadline is None else max(deadline - time.monotonic(), 0)
        is_traced = self._step.stats_collector is not None
        request = RunGraphRequest(
            self._session, self._graph, self._key, feeds, timeout_s, is_traced, self._permissions
        )
        future = self._workers.call(task, "run_graph", request)
        self._futures[task] = future
        future.add_done_callback(lambda _: self._events.put(task))

    def wait(self) -> list[Sequence[Any]]:
        """The fetches of each task, in the order in which they were started.

        Raises:
            OpError: as the first task that failed raised it, or UnavailableError where a task is not there.
            CancelledError, DeadlineExceededError: the step was to stop.
        """
        manager = self._step.cancellation_manager
        token = manager.get_cancellation_token()
        if not manager.register_callback(token, self._wake):
            self._wake()
        try:
            self._wait()
        except Exception as error:
            self._stop(as_op_error(error))
            raise
        except BaseException:
            self._stop(CancelledError("The client was interrupted"))
            raise
        finally:
            manager.try_deregister_callback(token)
        responses = [future.result() for future in self._futures.values()]
        for response in responses:
            self._collect(response)
        return [response.fetches for response in responses]

    def _wake(self) -> None:
        self._events.put(None)

    def _wait(self) -> None:
        """Wait for all parts; raises for the first that fails, or if the step is to stop."""
        for _ in self._futures:
            task = self._next()
            if task is None:
                self._step.check()
                raise CancelledError("Step was cancelled")
            error = self._futures[task].exception()
            if isinstance(error, CancelledError):
                self._step.check()  # which knows whether that is why
            if error is not None:
                if isinstance(error, OpError):
                    add_task(error, task)
                raise error

    def _next(self) -> TaskName | None:
        """The next task whose part is done, or None; meanwhile it is looked after those that are done already.

        What a task has sent at the end of its part is lost where it dies then: nobody but the client would know.
        """
        while True:
            try:
                return self._events.get(timeout=_CHECK_S)
            except Empty:
                self._check_done()

    def _check_done(self) -> None:
        """Raise UnavailableError where a task whose part is done has died since."""
        done = [task for task, future in self._futures.items() if future.done()]
        asked = {task: self._workers.call(task, "get_incarnation") for task in done}
        for task, answer in asked.items():
            if answer.result() != self._futures[task].result().incarnation:
                raise UnavailableError(f"{task} has restarted, and what it has sent may be lost")

    def _stop(self, reason: OpError) -> None:
        """Tell the tasks that still run that the step has failed, and wait for them a little."""
        running = [task for task, future in self._futures.items() if not future.done()]
        for task in running:
            self._workers.call(task, "cancel_step", self._key, reason)
        until = time.monotonic() + _GRACE_S
        while not all(self._futures[task].done() for task in running):
            try:
                self._events.get(timeout=max(until - time.monotonic(), 0))
            except Empty:
                return  # a task that takes no notice is left to itself

    def _collect(self, response: RunGraphResponse) -> None:
        collector = self._step.stats_collector
        if collector is not None and response.step_stats:
            for device in StepStats.FromString(response.step_stats).dev_stats:
                for stats in device.node_stats:
                    collector.save(device.device, stats)
                for thread, name in device.thread_names.items():
                    collector.save_thread_name(device.device, thread, name)


def add_task(error: OpError, task: TaskName) -> None:
    """Say in an error which task it is from, as TensorFlow does."""
    error.message = f"From {task}:\n{error.message}"
    error.args = (error.message,)
