"""Cluster: the tasks that sessions may be aimed at; LocalCluster: tasks in this process, to try, test and study clusters.

Source: TensorFlow core/distributed_runtime/master.cc, worker_interface.h, worker_cache.h,
core/common_runtime/test_util (test clusters), python/framework/test_util.py (create_local_cluster).
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, cast

import numpy as np

from opkernel.device.local_device import DeviceAttributes, LocalDevice
from opkernel.distributed.cluster.cluster_spec import ClusterSpec, Jobs, TaskName
from opkernel.distributed.cluster.master_session import MasterSession
from opkernel.distributed.cluster.worker import Worker
from opkernel.distributed.collectives.exchange import ObjectStore, TaskLinks
from opkernel.distributed.coordination.coordination_service import CoordinationService
from opkernel.distributed.coordination.coordination_service_agent import (
    Coordination,
    CoordinationServiceAgent,
    TaskAgent,
)
from opkernel.distributed.coordination.coordination_state import CoordinationConfig
from opkernel.errors import InvalidArgumentError, NotFoundError, UnavailableError
from opkernel.interrupts import Closing
from opkernel.runtime import SessionConfig
from opkernel.runtime.session.session_runtime import TargetOptions

_POLL_S = 0.05
"""How long a task that is not there yet is left alone."""


class RemoteDevice(LocalDevice):
    """A device of a task, as those see it who place operations on it from another process."""

    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes.device_type, np)
        self.name = attributes.name
        self.incarnation = attributes.incarnation


class Cluster(Closing, ABC):
    """Tasks that run graphs: the target of sessions.

        with RayCluster({"ps": 1, "worker": 2}) as cluster:
            with opkernel.Session(graph, target=cluster) as session:
                ...

    Operations that name no task, and nothing else that places them, run on the master.

    Args:
        spec: the jobs and their tasks.
        master: the name of the master, such as `/job:worker/task:0`. Where empty, the first task of the job
            `chief`, `master` or `worker`, or of the first job if there is none of them.

    Attributes:
        spec: The jobs and their tasks.
        master: The task of operations that name none.

    Raises:
        InvalidArgumentError: there is no task, or none of the master's name.
    """

    def __init__(self, spec: ClusterSpec | Jobs, master: str = "") -> None:
        self.spec = ClusterSpec(spec)
        self.master = _master(self.spec, master)
        self._devices: dict[TaskName, list[DeviceAttributes]] = {}
        self._late_calls: deque[tuple[Any, ...]] = deque()

    @property
    def tasks(self) -> list[TaskName]:
        """The tasks: job by job, by rising index."""
        return self.spec.tasks

    @abstractmethod
    def close(self) -> None:
        """End all tasks. What runs on them fails."""

    @abstractmethod
    def call(self, task: TaskName, method: str, *args: Any) -> Future[Any]:
        """Call a method of a task's worker.

        The result fails with what the method raises, or UnavailableError, which names the task, where the task
        is not there.
        """

    def call_all(
        self, method: str, *args: Any, tasks: Iterable[TaskName] | None = None
    ) -> list[Any]:
        """Call a method of several workers side by side, of all by default; the results, in order.

        Raises:
            OpError: as the first of them raised it.
        """
        chosen = self.tasks if tasks is None else tasks
        futures = [self.call(task, method, *args) for task in chosen]
        wait(futures)
        return [future.result() for future in futures]

    def call_late(self, task: TaskName, method: str, *args: Any) -> None:
        """Call a method of a task's worker before the next step of any session; nobody waits for the result.

        It is for finalizers: a collection runs them within any call, also one that is at work on the task.
        """
        self._late_calls.append((task, method, *args))

    def make_late_calls(self) -> None:
        """Make the calls that `call_late` has put off."""
        while self._late_calls:
            try:
                call = self._late_calls.popleft()
            except IndexError:  # another thread was faster
                return
            self.call(*call)

    def wait_for_tasks(self, timeout_s: float) -> None:
        """Wait until all tasks are there.

        Raises:
            UnavailableError: one is still not there after that time, in seconds.
        """
        until = time.monotonic() + timeout_s
        while True:
            try:
                self.call_all("get_status")
                return
            except UnavailableError:
                if time.monotonic() > until:
                    raise
            time.sleep(_POLL_S)

    # The target of sessions.

    def new_session(self, options: TargetOptions) -> MasterSession:
        """A session on all tasks, as `Session(graph, target=cluster)` needs it."""
        devices = [RemoteDevice(one) for one in self.list_devices()]
        devices.sort(key=lambda one: TaskName.parse(one.name) != self.master)
        return MasterSession(self, devices, options)

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices of all tasks.

        Raises:
            UnavailableError: a task is not there.
        """
        missing = [task for task in self.spec.tasks if task not in self._devices]
        found = self.call_all("get_status", tasks=missing)
        self._devices.update(zip(missing, found, strict=True))
        return [one for task in self.spec.tasks for one in self._devices[task]]

    def reset(self, containers: Sequence[str] = ()) -> None:
        """Drop the resources of all tasks in some containers; in the default ones if none is named."""
        self.call_all("clear_containers", list(containers))

    def coordination_agent(self, task: TaskName | str) -> CoordinationServiceAgent:
        """The agent of a task, as it may be called from here: all but its callbacks.

        Its methods raise FailedPreconditionError where the cluster was made without `coordination`, and
        UnavailableError where the task is not there.

        Raises:
            NotFoundError: there is no such task.
        """
        found = self.task(task) if isinstance(task, str) else task
        return cast("CoordinationServiceAgent", TaskAgent(partial(self.call, found)))

    def task(self, name: str) -> TaskName:
        """The task of a name, whole or in part: `/job:worker/task:1`.

        Raises:
            NotFoundError: there is no such task.
        """
        task = TaskName.parse(name)
        if task not in self.spec.tasks:
            raise NotFoundError(f"No task {task} in {self.spec!r}")
        return task

    def __repr__(self) -> str:
        return f"<opkernel.distributed.{type(self).__name__} of {self.spec!r}>"


def _master(spec: ClusterSpec, name: str) -> TaskName:
    tasks = spec.tasks
    if not tasks:
        raise InvalidArgumentError("A cluster must have a task")
    if name:
        master = TaskName.parse(name)
        if master not in tasks:
            raise InvalidArgumentError(f"The master {name!r} is no task of {spec!r}")
        return master
    for job in ("chief", "master", "worker"):
        found = [task for task in tasks if task.job == job]
        if found:
            return found[0]
    return tasks[0]


_WAITING = frozenset({"close_session", "coordinate", "run_graph"})
"""The methods of a worker that may wait for something else to happen."""


class LocalCluster(Cluster):
    """A cluster whose tasks are all in this process. They share nothing but its memory.

    Args:
        spec: as for `Cluster`.
        config: the devices of each task, and their threads.
        master: as for `Cluster`.
        coordination: how the coordination service behaves; there is none where not given.
    """

    def __init__(
        self,
        spec: ClusterSpec | Jobs,
        *,
        config: SessionConfig | None = None,
        master: str = "",
        coordination: CoordinationConfig | None = None,
    ) -> None:
        super().__init__(spec, master)
        self._config = SessionConfig() if config is None else config
        self._workers: dict[TaskName, Worker] = {}
        self._service: CoordinationService | None = None
        self._coordination: Coordination | None = None
        if coordination is not None:
            self._service = CoordinationService(self.spec.tasks, coordination)
            self._service.start()
            self._coordination = Coordination(self._service.call, coordination)
        for task in self.spec.tasks:
            self.start(task)

    def call(self, task: TaskName, method: str, *args: Any) -> Future[Any]:
        """Call a method of a task's worker; what may wait runs on a thread of its own."""
        future: Future[Any] = Future()
        worker = self._workers.get(task)
        if worker is None:
            future.set_exception(UnavailableError(f"{task} is not running"))
        elif method in _WAITING:
            target = getattr(worker, method)
            given, name = (future, target, *args), f"opkernel {task}"
            threading.Thread(target=_complete, args=given, name=name, daemon=True).start()
        else:
            _complete(future, getattr(worker, method), *args)
        return future

    def start(self, task: TaskName) -> None:
        """Start a task, which has no state yet."""
        links = TaskLinks(self.spec.tasks[0], self.call, self.call, ObjectStore())
        self._workers[task] = Worker(task, self._config, links, self._coordination)
        self._devices.pop(task, None)

    def stop(self, task: TaskName) -> None:
        """End a task with all its state: its steps fail, and later calls with UnavailableError."""
        worker = self._workers.pop(task, None)
        if worker is not None:
            worker.close()

    def close(self) -> None:
        """End all tasks."""
        for task in self.spec.tasks:
            self.stop(task)
        if self._service is not None:
            self._service.close()


def _complete(future: Future[Any], function: Callable[..., Any], *args: Any) -> None:
    try:
        result = function(*args)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
