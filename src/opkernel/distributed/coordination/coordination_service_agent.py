"""CoordinationServiceAgent: a task's access to the coordination service.

Source: TensorFlow core/distributed_runtime/coordination/coordination_service_agent.h
(tsl/distributed_runtime).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from opkernel.device.local_device import DeviceAttributes
from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.coordination.coordination_state import (
    CoordinatedTaskState,
    CoordinationConfig,
    TaskStateInfo,
)
from opkernel.errors import (
    FailedPreconditionError,
    OpError,
    UnavailableError,
    UnimplementedError,
    as_op_error,
)

ServiceCall = Callable[..., Future[Any]]
"""Calls a method of the service: `call(method, *args)`."""

_State = CoordinatedTaskState


class Coordination(NamedTuple):
    """A coordination service, as a task knows it.

    Attributes:
        call: Calls it.
        config: How it behaves.
    """

    call: ServiceCall
    config: CoordinationConfig


class CoordinationServiceAgent:
    """A task's access to the coordination service; used from any thread.

    The agent connects its task, and sends heartbeats. When any task of the cluster fails, the agent is in error: it says
    so to its callbacks and to those who come to barriers.

    Args:
        task: The task.
        incarnation: A number that no earlier start of the task had.
        coordination: The service.
    """

    def __init__(self, task: TaskName, incarnation: int, coordination: Coordination) -> None:
        self._task = task
        self._incarnation = incarnation
        self._call, self._config = coordination
        self._state = _State.DISCONNECTED
        self._error: OpError | None = None
        self._callbacks: list[Callable[[OpError], object]] = []
        self._devices: list[DeviceAttributes] = []
        self._lock = threading.RLock()
        self._stopped = threading.Event()

    # The task.

    def connect(self) -> None:
        """Connect the task to the service, and begin to send heartbeats.

        Raises:
            FailedPreconditionError: the agent is connected, or in error.
            AbortedError: the service knows another incarnation of the task, which was not reset.
            UnavailableError: the service is not there.
        """
        with self._lock:
            if self._state is not _State.DISCONNECTED:
                raise FailedPreconditionError(
                    f"Connect() failed: the agent of {self._task} is in state {self._state.name}"
                )
            self._stopped = stopped = threading.Event()
        poll = self._call("poll_for_error", self._task)
        try:
            self._ask("register_task", self._task, self._incarnation)
        except OpError as error:
            self._set_error(error)
            raise
        with self._lock:
            self._state = _State.CONNECTED
        poll.add_done_callback(partial(self._polled, stopped))
        name, send = f"opkernel heartbeats {self._task}", partial(self._send_heartbeats, stopped)
        threading.Thread(target=send, name=name, daemon=True).start()

    def wait_for_all_tasks(self, devices: Sequence[DeviceAttributes]) -> None:
        """Wait until all tasks have called this, each with its devices.

        Raises:
            FailedPreconditionError: the agent is not connected.
            DeadlineExceededError: others have not come within `cluster_register_timeout_s`.
            InternalError: one of them has failed.
        """
        self._check_connected()
        self._devices = self._ask("wait_for_all_tasks", self._task, list(devices))

    def get_cluster_devices(self) -> list[DeviceAttributes]:
        """The devices of all tasks, after `wait_for_all_tasks`."""
        return list(self._devices)

    def get_own_task(self) -> TaskName:
        """The task."""
        return self._task

    def get_task_state(self, tasks: Sequence[TaskName] = ()) -> list[TaskStateInfo]:
        """How tasks fare, as the service sees them; all of them if none is named.

        Raises:
            InvalidArgumentError: the cluster has no such task.
        """
        return list(self._ask("get_task_state", list(tasks)))

    def is_connected(self) -> bool:
        """Whether the task is connected, and nothing is wrong."""
        return self._state is _State.CONNECTED

    def is_error(self) -> bool:
        """Whether the agent is in error."""
        return self._state is _State.ERROR

    def get_error(self) -> OpError | None:
        """The error that the agent is in; None if it is in none."""
        return self._error

    def add_error_callback(self, callback: Callable[[OpError], object]) -> None:
        """Have a function called when the agent comes to be in error."""
        self._callbacks.append(callback)

    def report_error(self, error: OpError) -> None:
        """Say that the task has failed: the agents of all tasks are in error then.

        Raises:
            FailedPreconditionError: the agent is not connected.
        """
        self._check_connected()
        self._set_error(error)
        self._ask("report_task_error", self._task, error)

    def shutdown(self) -> None:
        """Disconnect the task, where the config says so together with all others.

        Raises:
            FailedPreconditionError: the agent is in error; it stops all the same.
            DeadlineExceededError, InternalError: the others do not shut down; the task is disconnected.
        """
        with self._lock:
            before, self._state = self._state, _State.DISCONNECTED
            self._stopped.set()
        if before is _State.ERROR:
            reason = "" if self._error is None else self._error.message
            raise FailedPreconditionError(
                f"Shutdown() was called while the agent of {self._task} is in error: {reason}"
            )
        if before is _State.CONNECTED:
            self._ask("shutdown_task", self._task)

    def reset(self) -> None:
        """Leave the error: the task is disconnected, and may connect again.

        Raises:
            FailedPreconditionError: the agent is in no error.
        """
        if not self.is_error():
            raise FailedPreconditionError(
                f"Reset() failed: the agent of {self._task} is not in error"
            )
        self._stopped.set()
        self._ask("reset_task", self._task)
        with self._lock:
            self._state, self._error = _State.DISCONNECTED, None

    def close(self) -> None:
        """Send no more heartbeats, without a word to the service."""
        self._stopped.set()

    # Values by key.

    def insert_key_value(
        self, key: str, value: str | bytes, *, allow_overwrite: bool = False
    ) -> None:
        """Set the value of a key.

        Raises:
            AlreadyExistsError: it has one, and is not to be overwritten.
        """
        self._ask("values.insert", key, value, allow_overwrite)

    def get_key_value(self, key: str, timeout_s: float | None = None) -> str | bytes:
        """The value of a key; waits until it has one.

        Raises:
            DeadlineExceededError: that takes longer than `timeout_s` seconds.
        """
        return self.get_key_value_async(key, timeout_s).result()

    def get_key_value_async(self, key: str, timeout_s: float | None = None) -> Future[str | bytes]:
        """The same, for those who do not wait."""
        return self._call("values.get", key, timeout_s)

    def try_get_key_value(self, key: str) -> str | bytes:
        """The value of a key.

        Raises:
            NotFoundError: it has none.
        """
        value: str | bytes = self._ask("values.try_get", key)
        return value

    def get_key_value_dir(self, directory: str) -> dict[str, str | bytes]:
        """The values of all keys below a path, by key."""
        return dict(self._ask("values.get_dir", directory))

    def delete_key_value(self, key: str) -> None:
        """Forget a key, and all keys below it."""
        self._ask("values.delete", key)

    # Barriers.

    def wait_at_barrier(self, name: str, timeout_s: float, tasks: Sequence[TaskName] = ()) -> None:
        """Wait until all tasks have come to a barrier.

        A barrier serves once. Who comes to one that is over gets the same answer as the others.

        Args:
            name: Names the barrier.
            timeout_s: The time from the first task's coming to the last's, in seconds.
            tasks: Those that take part, the same for all; all of the cluster if none is named.

        Raises:
            FailedPreconditionError: the agent is in error.
            DeadlineExceededError: a task has not come in time.
            InternalError: a task has failed or disconnected.
            InvalidArgumentError: the tasks differ from those that another has named, lack the own one, or are none of the
                cluster.
            CancelledError: the barrier was cancelled.
        """
        self.wait_at_barrier_async(name, timeout_s, tasks).result()

    def wait_at_barrier_async(
        self, name: str, timeout_s: float, tasks: Sequence[TaskName] = ()
    ) -> Future[None]:
        """The same, for those who do not wait."""
        self._check_no_error()
        return self._call("wait_at_barrier", self._task, name, timeout_s, list(tasks))

    def cancel_barrier(self, name: str) -> None:
        """Fail a barrier for all, even before any task has come to it.

        Raises:
            FailedPreconditionError: it is over, or the agent is in error.
        """
        self._check_no_error()
        self._ask("cancel_barrier", self._task, name)

    # Errors.

    def _ask(self, method: str, *args: Any) -> Any:
        return self._call(method, *args).result()

    def _check_connected(self) -> None:
        self._check_no_error()
        if self._state is not _State.CONNECTED:
            raise FailedPreconditionError(
                f"The agent of {self._task} must be connected, but is in state {self._state.name}"
            )

    def _check_no_error(self) -> None:
        error = self._error
        if error is not None:
            raise FailedPreconditionError(f"The agent of {self._task} is in error: {error.message}")

    def _set_error(self, error: OpError) -> None:
        with self._lock:
            if self._state is _State.ERROR:
                return
            self._state, self._error = _State.ERROR, error
            self._stopped.set()
        for callback in list(self._callbacks):
            callback(error)

    def _polled(self, stopped: threading.Event, answer: Future[TaskStateInfo]) -> None:
        """The service tells of a task that is in error."""
        if stopped.is_set() or answer.exception() is not None:
            return  # of a service that is not there the heartbeats hear
        found = answer.result()
        if found.error is not None:
            self._set_error(_told_of(found.task, found.error))

    def _send_heartbeats(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._config.heartbeat_timeout_s / 2):
            try:
                self._call("record_heartbeat", self._task, self._incarnation).result(
                    self._config.heartbeat_timeout_s
                )
            except OpError as failure:  # which may be a TimeoutError, too
                error: OpError = failure
            except TimeoutError:
                error = UnavailableError("The coordination service does not answer")
            except Exception as failure:
                error = as_op_error(failure)
            else:
                continue
            if not stopped.is_set():
                self._set_error(error)


def _told_of(task: TaskName, error: OpError) -> OpError:
    """An error of a task, as its name must be in it."""
    if str(task) in error.message:
        return error
    return type(error)(f"{task} has failed: {error.message}")


class TaskAgent:
    """Has the methods of CoordinationServiceAgent, and calls those of the task's agent.

    Args:
        call: Calls a method of the task's worker.
    """

    def __init__(self, call: Callable[..., Future[Any]]) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "add_error_callback":
            raise UnimplementedError("Only in its own task does an agent take callbacks")

        def method(*args: Any, **others: Any) -> Any:
            answer = self._call("coordinate", name.removesuffix("_async"), args, others)
            return answer if name.endswith("_async") else answer.result()

        return method
