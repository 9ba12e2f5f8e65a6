"""What the coordination service keeps: the states of tasks, and texts by key, for which tasks may wait.

Futures are completed once the lock of their owner is free, since others may run then (`Outcomes`).

Source: CoordinatedTaskState in TensorFlow's coordination_service.proto, CoordinationServiceConfig
(tsl/protobuf/coordination_config.proto), core/distributed_runtime/coordination/key_value_store
(tsl/distributed_runtime).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from enum import IntEnum
from typing import Any, NamedTuple

from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.errors import AlreadyExistsError, DeadlineExceededError, NotFoundError, OpError
from opkernel.interrupts import contextmanager
from opkernel.records import dataclass


class CoordinatedTaskState(IntEnum):
    """The state of a task, or of its agent, numbered as TensorFlow's."""

    UNINITIALIZED = 1
    DISCONNECTED = 2
    CONNECTED = 3
    ERROR = 4


class TaskStateInfo(NamedTuple):
    """How a task fares.

    Attributes:
        task: The task.
        state: Its state.
        error: What is wrong with it, in the state ERROR.
    """

    task: TaskName
    state: CoordinatedTaskState
    error: OpError | None


@dataclass(frozen=True)
class CoordinationConfig:
    """How the coordination service of a cluster behaves. Times are in seconds.

    Attributes:
        heartbeat_timeout_s: After this time without a heartbeat a task counts as dead; it sends two in this time.
        cluster_register_timeout_s: How long `wait_for_all_tasks` waits.
        shutdown_barrier_timeout_s: How long a task that shuts down waits for all others to do so; 0 for not at all.
        recoverable_jobs: Jobs whose tasks may fail, and connect again, without an error of the others.
    """

    heartbeat_timeout_s: float = 10.0
    cluster_register_timeout_s: float = 3600.0
    shutdown_barrier_timeout_s: float = 0.0
    recoverable_jobs: Collection[str] = ()


def settle(future: Future[Any], error: BaseException | None, result: Any = None) -> None:
    """Complete a future with an error, or where there is none with a result."""
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class Outcomes:
    """A lock, and the futures that are to be completed after it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ready: list[tuple[Future[Any], OpError | None, Any]] = []

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock; then complete what has become ready."""
        try:
            with self._lock:
                yield
        finally:
            with self._lock:
                ready, self._ready = self._ready, []
            for future, error, result in ready:
                with suppress(InvalidStateError):  # who waits has given up
                    settle(future, error, result)

    def complete(self, future: Future[Any], error: OpError | None, result: Any = None) -> None:
        """Have a future completed; to be called under the lock."""
        self._ready.append((future, error, result))


class KeyValueStore:
    """Values by key. A key is a path: slashes at its ends, and empty steps, do not count."""

    def __init__(self) -> None:
        self._values: dict[str, str | bytes] = {}
        self._outcomes = Outcomes()
        self._waiting: defaultdict[str, list[Future[str | bytes]]] = defaultdict(list)

    def insert(self, key: str, value: str | bytes, allow_overwrite: bool) -> None:
        """Set the value of a key.

        Raises:
            AlreadyExistsError: it has one, and is not to be overwritten.
        """
        path = _path(key)
        with self._outcomes.locked():
            if path in self._values and not allow_overwrite:
                raise AlreadyExistsError(f"Config key {key} already exists.")
            self._values[path] = value
            for future in self._waiting.pop(path, ()):
                self._outcomes.complete(future, None, value)

    def get(self, key: str, timeout_s: float | None = None) -> Future[str | bytes]:
        """The value of a key, once it has one.

        The result fails with DeadlineExceededError where that takes too long.
        """
        future: Future[str | bytes] = Future()
        path = _path(key)
        with self._outcomes.locked():
            if path in self._values:
                self._outcomes.complete(future, None, self._values[path])
                return future
            self._waiting[path].append(future)
        if timeout_s is not None:
            timer = threading.Timer(timeout_s, self._give_up, (key, future))
            timer.daemon = True
            timer.start()
            future.add_done_callback(lambda _: timer.cancel())
        return future

    def try_get(self, key: str) -> str | bytes:
        """The value of a key.

        Raises:
            NotFoundError: it has none.
        """
        value = self._values.get(_path(key))
        if value is None:
            raise NotFoundError(f"Config key {key} not found.")
        return value

    def get_dir(self, directory: str) -> dict[str, str | bytes]:
        """The values of all keys below a path, by key."""
        prefix = _path(directory)
        with self._outcomes.locked():
            return {k: v for k, v in self._values.items() if _is_below(k, prefix)}

    def delete(self, key: str) -> None:
        """Forget a key, and all below it; nothing to do where there is none."""
        path = _path(key)
        with self._outcomes.locked():
            for one in [k for k in self._values if k == path or _is_below(k, path)]:
                del self._values[one]

    def _give_up(self, key: str, future: Future[str | bytes]) -> None:
        path = _path(key)
        with self._outcomes.locked():
            waiting = self._waiting.get(path, [])
            if future in waiting:
                waiting.remove(future)
                late = DeadlineExceededError(f"GetKeyValue() timed out with key: {key}")
                self._outcomes.complete(future, late)
            if not waiting:
                self._waiting.pop(path, None)


def _path(key: str) -> str:
    return "/".join(filter(None, key.split("/")))


def _is_below(key: str, path: str) -> bool:
    return not path or key.startswith(path + "/")
