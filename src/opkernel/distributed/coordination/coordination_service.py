"""CoordinationService: knows the tasks of a cluster, brings them together, and tells all of an error of one.

Source: TensorFlow core/distributed_runtime/coordination/coordination_service.cc
(tsl/distributed_runtime).
"""

from __future__ import annotations

import copy
import math
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from operator import attrgetter
from typing import Any

from opkernel.device.local_device import DeviceAttributes
from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.coordination.coordination_state import (
    CoordinatedTaskState,
    CoordinationConfig,
    KeyValueStore,
    Outcomes,
    TaskStateInfo,
    settle,
)
from opkernel.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
    as_op_error,
)
from opkernel.records import dataclass, field

_DISCONNECTED = CoordinatedTaskState.DISCONNECTED
_CONNECTED = CoordinatedTaskState.CONNECTED
_ERROR = CoordinatedTaskState.ERROR


class CoordinationService:
    """The service; used from any thread. What may have to wait gives a future.

    Args:
        tasks: The tasks of the cluster.
        config: How it behaves.
        clock: The time, in seconds.

    Attributes:
        incarnation: A number that no other service has.
        values: The values by key.
    """

    def __init__(
        self,
        tasks: Sequence[TaskName],
        config: CoordinationConfig,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.incarnation = secrets.randbits(63)
        self.values = KeyValueStore()
        self._config = config
        self._clock = clock
        self._tasks = {task: _Task() for task in tasks}
        self._barriers: dict[str, _Barrier] = {}
        self._outcomes = Outcomes()
        self._closed = threading.Event()
        self._changed = threading.Event()

    def start(self) -> None:
        """Look after heartbeats and barriers, on a thread, until the service is closed."""
        thread = threading.Thread(target=self._run, name="opkernel coordination", daemon=True)
        thread.start()

    def close(self) -> None:
        """End the thread; the service takes no more notice of time."""
        self._closed.set()
        self._changed.set()

    def call(self, method: str, *args: Any) -> Future[Any]:
        """The result of a method, such as `values.get`, whether it is one that waits or not."""
        future: Future[Any] = Future()
        try:
            result = attrgetter(method)(self)(*args)
        except Exception as error:
            future.set_exception(as_op_error(error))
        else:
            if isinstance(result, Future):
                return result
            future.set_result(result)
        return future

    # Tasks.

    def register_task(self, task: TaskName, incarnation: int) -> int:
        """Connect a task; the service's incarnation. A task that is connected already may come again.

        Raises:
            InvalidArgumentError: the cluster has no such task.
            AbortedError: the task has restarted, or is in error and was not reset.
        """
        with self._outcomes.locked():
            state = self._known(task)
            may_come_again = task.job in self._config.recoverable_jobs
            if state.state is _CONNECTED and state.incarnation != incarnation:
                error = AbortedError(
                    f"{task} unexpectedly tried to connect with a different incarnation. It has likely "
                    "restarted."
                )
                self._set_error(task, error)
                if not may_come_again:
                    raise copy.copy(error)
            if state.state is _ERROR and not may_come_again:
                raise AbortedError(
                    f"{task} unexpectedly tried to connect while it is already in error: "
                    f"{state.error.message if state.error else ''}. It must be reset first."
                )
            state.state, state.error = _CONNECTED, None
            state.incarnation = incarnation
            state.last_heartbeat = self._clock()
        self._changed.set()
        return self.incarnation

    def record_heartbeat(self, task: TaskName, incarnation: int) -> int:
        """Note that a task lives; the service's incarnation.

        Raises:
            InvalidArgumentError: the task is not connected.
            AbortedError: another incarnation of it is.
            OpError: the error that it is in.
        """
        with self._outcomes.locked():
            state = self._known(task)
            if state.error is not None:
                raise copy.copy(state.error)
            if state.state is _DISCONNECTED:
                raise InvalidArgumentError(f"{task} must be registered before it sends heartbeats")
            if state.incarnation != incarnation:
                error = AbortedError(f"{task} has restarted: another incarnation is connected")
                self._set_error(task, error)
                raise copy.copy(error)
            state.last_heartbeat = self._clock()
        return self.incarnation

    def wait_for_all_tasks(
        self, task: TaskName, devices: Sequence[DeviceAttributes]
    ) -> Future[list[DeviceAttributes]]:
        """The devices of all tasks, once each has called this with its own."""
        with self._outcomes.locked():
            self._known(task).devices = list(devices)
        passed: Future[list[DeviceAttributes]] = Future()
        timeout_s = self._config.cluster_register_timeout_s
        barrier = self.wait_at_barrier(task, f"WaitForAllTasks::{self.incarnation}", timeout_s)

        def complete(answer: Future[None]) -> None:
            found = [one for state in self._tasks.values() for one in state.devices]
            settle(passed, answer.exception(), found)

        barrier.add_done_callback(complete)
        return passed

    def get_task_state(self, tasks: Sequence[TaskName] = ()) -> list[TaskStateInfo]:
        """How tasks fare; all of them if none is named."""
        with self._outcomes.locked():
            states = {task: self._known(task) for task in tasks or self._tasks}
            return [TaskStateInfo(task, one.state, one.error) for task, one in states.items()]

    def report_task_error(self, task: TaskName, error: OpError) -> None:
        """A task says that it is in error: all others hear of it.

        Raises:
            FailedPreconditionError: it is not connected.
        """
        with self._outcomes.locked():
            if self._known(task).state is not _CONNECTED:
                raise FailedPreconditionError(
                    f"{task} is not connected, and cannot report an error"
                )
            self._set_error(task, error)

    def poll_for_error(self, task: TaskName) -> Future[TaskStateInfo]:
        """The next task that is in error, the own one included, once there is one."""
        future: Future[TaskStateInfo] = Future()
        with self._outcomes.locked():
            self._known(task).polls.append(future)
        return future

    def shutdown_task(self, task: TaskName) -> Future[None]:
        """Disconnect a task, where the config says so with all others.

        The result fails, and the task is disconnected all the same, where others do not shut down in time.
        """
        timeout_s = self._config.shutdown_barrier_timeout_s
        future: Future[None] = Future()
        if timeout_s <= 0:
            self.reset_task(task)
            future.set_result(None)
            return future

        def complete(answer: Future[None]) -> None:
            with self._outcomes.locked():
                if self._known(task).state is not _DISCONNECTED:
                    self._disconnect(task)
            settle(future, answer.exception())

        barrier = self.wait_at_barrier(task, f"Shutdown::{self.incarnation}", timeout_s)
        barrier.add_done_callback(complete)
        return future

    def reset_task(self, task: TaskName) -> None:
        """Disconnect a task, so that it may connect again.

        Raises:
            FailedPreconditionError: it is disconnected.
        """
        with self._outcomes.locked():
            if self._known(task).state is _DISCONNECTED:
                raise FailedPreconditionError(f"{task} is already disconnected")
            self._disconnect(task)

    # Barriers.

    def wait_at_barrier(
        self, task: TaskName, name: str, timeout_s: float, tasks: Sequence[TaskName] = ()
    ) -> Future[None]:
        """Done when all tasks have come to a barrier; a barrier that is over answers at once, as it ended.

        Args:
            task: The task that comes.
            name: Names the barrier.
            timeout_s: The time from the first task's coming to the last's, in seconds; the first one's counts.
            tasks: Those that take part; all of the cluster if none is named.
        """
        future: Future[None] = Future()
        with self._outcomes.locked():
            barrier = self._barriers.get(name)
            if barrier is None:
                barrier = self._new_barrier(name, timeout_s, tasks)
            if barrier.is_passed:
                self._outcomes.complete(future, copy.copy(barrier.error))
                return future
            barrier.waiting.append(future)
            self._come(barrier, task, tasks)
        self._changed.set()
        return future

    def cancel_barrier(self, task: TaskName, name: str) -> None:
        """Fail a barrier for all, even before any task has come to it.

        Raises:
            FailedPreconditionError: it is over.
        """
        with self._outcomes.locked():
            barrier = self._barriers.get(name)
            if barrier is None:
                barrier = self._barriers[name] = _Barrier(name, frozenset(), 0.0, math.inf)
            if barrier.is_passed:
                code = "OK" if barrier.error is None else barrier.error.code.name
                raise FailedPreconditionError(
                    f"Barrier ({name}) has already been passed with status code: {code}"
                )
            self._pass(barrier, CancelledError(f"Barrier ({name}) is cancelled by task: {task}"))

    # Time.

    def check(self) -> float:
        """Fail tasks whose heartbeats, and barriers whose tasks, are overdue; the time until the next may be."""
        timeout_s = self._config.heartbeat_timeout_s
        with self._outcomes.locked():
            now = self._clock()
            following = [now + timeout_s]
            for task, state in self._tasks.items():
                if state.state is _CONNECTED:
                    following.append(state.last_heartbeat + timeout_s)
                    if now >= following[-1]:
                        self._set_error(task, _no_heartbeat(task, timeout_s))
            for barrier in self._barriers.values():
                if not barrier.is_passed:
                    following.append(barrier.deadline)
                    if now >= barrier.deadline:
                        self._pass(barrier, _timed_out(barrier))
        return max(min([one for one in following if one > now], default=now) - now, 0.0)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._changed.clear()
            self._changed.wait(self.check())

    # Under the lock.

    def _known(self, task: TaskName) -> _Task:
        found = self._tasks.get(task)
        if found is None:
            raise InvalidArgumentError(f"Unexpected task {task}: it is none of the cluster")
        return found

    def _set_error(self, task: TaskName, error: OpError) -> None:
        """Put a task into error; its barriers fail, and the others hear of it."""
        state = self._tasks[task]
        state.state, state.error = _ERROR, error
        self._fail_barriers(task, f"a task is in error: {task}: {error.message}")
        is_recoverable = task.job in self._config.recoverable_jobs
        info = TaskStateInfo(task, _ERROR, error)
        for other, one in self._tasks.items():
            if other == task or not is_recoverable:
                self._answer_polls(one, None, info)

    def _answer_polls(
        self, state: _Task, error: OpError | None, info: TaskStateInfo | None = None
    ) -> None:
        for poll in state.polls:
            self._outcomes.complete(poll, error, info)
        state.polls.clear()

    def _disconnect(self, task: TaskName) -> None:
        state = self._tasks[task]
        self._answer_polls(state, CancelledError(f"{task} has disconnected"))
        state.state, state.error = _DISCONNECTED, None
        self._fail_barriers(task, f"a task has disconnected: {task}")

    def _fail_barriers(self, task: TaskName, reason: str) -> None:
        for barrier in self._barriers.values():
            if task in barrier.tasks and not barrier.is_passed:
                message = f"Barrier failed because {reason}. Barrier Id: {barrier.name}"
                self._pass(barrier, InternalError(message))

    def _new_barrier(self, name: str, timeout_s: float, tasks: Sequence[TaskName]) -> _Barrier:
        members = frozenset(tasks or self._tasks)
        barrier = _Barrier(name, members, timeout_s, self._clock() + timeout_s)
        self._barriers[name] = barrier
        for one in members:
            if one not in self._tasks:
                error = f"Unexpected task {one} that is not in the cluster is to take part in barrier {name}"
                self._pass(barrier, InvalidArgumentError(error))
            elif self._tasks[one].state is _ERROR:
                error = f"Task {one} is already in error before the barrier was called. Barrier Id: {name}"
                self._pass(barrier, InternalError(error))
        return barrier

    def _come(self, barrier: _Barrier, task: TaskName, tasks: Sequence[TaskName]) -> None:
        """A task has come to a barrier that is not over."""
        if task not in barrier.tasks:
            error = f"A non-participating task ({task}) called the barrier: {barrier.name}"
            self._pass(barrier, InvalidArgumentError(error))
        elif frozenset(tasks or self._tasks) != barrier.tasks:
            error = f"Conflicting tasks specified for the same barrier: {barrier.name}"
            self._pass(barrier, InvalidArgumentError(error))
        else:
            barrier.missing.discard(task)
            if not barrier.missing:
                self._pass(barrier, None)

    def _pass(self, barrier: _Barrier, error: OpError | None) -> None:
        if not barrier.is_passed:
            barrier.is_passed, barrier.error = True, error
            for future in barrier.waiting:
                self._outcomes.complete(future, copy.copy(error))
            barrier.waiting.clear()


@dataclass
class _Task:
    """A task."""

    state: CoordinatedTaskState = _DISCONNECTED
    error: OpError | None = None
    incarnation: int = 0
    last_heartbeat: float = 0.0
    devices: list[DeviceAttributes] = field(default_factory=list)
    polls: list[Future[Any]] = field(default_factory=list)


class _Barrier:
    """Where tasks wait for each other, once: it is passed by all that take part, or with an error.

    Attributes:
        name: Its name.
        tasks: Those that take part.
        timeout_s: The time that it was given, in seconds.
        deadline: By when it must be passed, by the service's clock.
        missing: Those that have not come.
        is_passed: Whether it is over.
        error: Why it failed, if it has.
        waiting: What to complete when it is over.
    """

    def __init__(
        self, name: str, tasks: frozenset[TaskName], timeout_s: float, deadline: float
    ) -> None:
        self.name, self.tasks = name, tasks
        self.timeout_s, self.deadline = timeout_s, deadline
        self.missing = set(tasks)
        self.is_passed = False
        self.error: OpError | None = None
        self.waiting: list[Future[Any]] = []


def _no_heartbeat(task: TaskName, timeout_s: float) -> OpError:
    return UnavailableError(
        f"Task {task} heartbeat timeout: none came for {timeout_s:g} s. The task has died, was preempted, or "
        "cannot be reached"
    )


def _timed_out(barrier: _Barrier) -> OpError:
    return DeadlineExceededError(
        f"Barrier timed out. Id: {barrier.name}, timeout: {barrier.timeout_s:g} s. "
        f"{len(barrier.missing)} of {len(barrier.tasks)} tasks have not come: "
        f"{', '.join(sorted(map(str, barrier.missing)))}"
    )
